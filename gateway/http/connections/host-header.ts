/**
 * The Host header of a request (RFC 9112 §3.2): HTTP/1.1 has to have one, and nobody may send two. A proxy that goes by
 * the first and a server that goes by the last would serve one client what is another's.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LockgateError } from '../../../proto/errors.js';

/** A name or an address, with a port where there is one; empty where the request names no host. */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d{0,5})?$/i;

/**
 * Refuses a request whose Host header is wrong. Its connection ends with the answer: where a proxy and we differ over
 * one request, the next one is not to be believed either.
 *
 * @throws LockgateError `input-host`
 */
export function checkHost(request: IncomingMessage, response: ServerResponse): void {
  const why = hostFault(request);
  if (why === undefined) return;
  response.shouldKeepAlive = false;
  throw new LockgateError('input-host', why);
}

function hostFault({ rawHeaders, headers, httpVersion }: IncomingMessage): string | undefined {
  let count = 0;
  // Names and values stand in turn.
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === 'host') count += 1;
  if (count > 1) return `the request has ${count} Host headers: expected one`;
  if (count === 0) return httpVersion === '1.0' ? undefined : 'the request has no Host header: expected one';
  if (HOST.test(headers.host ?? '')) return undefined;
  return 'the Host header is not a host name or address, with or without a port';
}
