/**
 * Checks the Host header of a request (RFC 9112 §3.2): HTTP/1.1 requires exactly one. If a request with two were
 * accepted, a proxy might use the first and the server the last, and a client could get another client's answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LockgateError } from '../../../proto/errors.js';

/** A name or an address with an optional port; empty if the request names no host. */
const HOST_FORM = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d{0,5})?$/i;

/**
 * Refuses a request with a wrong Host header and closes its connection: if a proxy and the gateway disagree about one
 * request, they may disagree about the next one too.
 *
 * @throws LockgateError `input-host`
 */
export function checkHost(request: IncomingMessage, response: ServerResponse): void {
  const fault = hostFault(request);
  if (fault === undefined) return;
  response.shouldKeepAlive = false;
  throw new LockgateError('input-host', fault);
}

/** What is wrong with the Host header, in words; undefined if nothing is. */
function hostFault({ rawHeaders, headers, httpVersion }: IncomingMessage): string | undefined {
  let count = 0;
  // Names and values alternate.
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.toLowerCase() === 'host') count += 1;
  if (count > 1) return `the request has ${count} Host headers: expected one`;
  if (count === 0) return httpVersion === '1.0' ? undefined : 'the request has no Host header: expected one';
  if (HOST_FORM.test(headers.host ?? '')) return undefined;
  return 'the Host header is not a host name or address, with or without a port';
}
