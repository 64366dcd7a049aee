/** Writes the bytes of a POST request (RFC 9112 §3). Pure. */
import { validateHeaderName, validateHeaderValue } from 'node:http';

export interface PostRequest {
  readonly url: URL;
  /** Of two names that are equal in HTTP, the later one counts. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What to write to a socket: text whose characters are bytes, or bytes. */
export type RequestBytes = { readonly latin1: string } | { readonly bytes: Buffer };

/**
 * The request with all of its headers.
 *
 * @throws Error if a header is not valid in HTTP: it might otherwise end the head, or begin another request
 */
export function postRequestBytes({ url, headers, body }: PostRequest): RequestBytes {
  const lines = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    lines.set(name.toLowerCase(), `${name}: ${value}\r\n`);
  }
  const length = Buffer.byteLength(body);
  let head = `POST ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: keep-alive\r\n`;
  for (const line of lines.values()) head += line;
  head += `content-length: ${length}\r\n\r\n`;
  // A text of as many bytes as characters is ASCII, so head and body have the same encoding.
  if (length === body.length) return { latin1: head + body };
  return { bytes: Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]) };
}
