/**
 * Limits the rest of a body whose request has already been answered: an unknown path, a GET, a wrong key. Node reads it
 * to its end, because the next request follows it. Strangers could keep the event loop busy with such bodies, so only a
 * short rest is read; a longer one closes the connection (interfaces.md §2, Fairness: small body limits before
 * authentication).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** The most bytes that are read and dropped after an answer. */
export const UNREAD_BODY_BYTES = 64 * 1024;

/** Call this with each request as it arrives. */
export function limitUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  // Before Node's own listener, which would drop the rest without counting it.
  response.prependOnceListener('finish', () => {
    if (request.complete) return;
    let left = UNREAD_BODY_BYTES;
    request.on('data', (piece: Buffer) => {
      left -= piece.length;
      if (left < 0) request.socket.destroy();
    });
  });
}
