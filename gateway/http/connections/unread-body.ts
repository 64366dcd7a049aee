/**
 * Limits how much of a request's body is read after the request was answered. The gateway reads no body if the path is
 * unknown, the method is GET or the key is wrong. Node then reads and drops the body to its end, because the next
 * request follows it on the connection. Strangers could keep the event loop busy with long bodies, so beyond the limit
 * the connection is closed (docs/http.md, "How much").
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Maximum number of bytes that are read and dropped after an answer. */
export const MAX_UNREAD_BODY_BYTES = 64 * 1024;

/** Applies the limit to a request. Must be called when the request arrives. */
export function limitUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  // Added before Node's own listener, which would drop the body without counting it.
  response.prependOnceListener('finish', () => {
    if (request.complete) return;
    let remainingBytes = MAX_UNREAD_BODY_BYTES;
    request.on('data', (chunk: Buffer) => {
      remainingBytes -= chunk.length;
      if (remainingBytes < 0) request.socket.destroy();
    });
  });
}
