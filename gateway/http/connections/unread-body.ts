/**
 * What is left of a body when its request has been answered: that of a path there isn't, of a GET, of a wrong key. Node
 * reads it to its end, however long that is, since the next request comes behind it. Strangers could keep the event
 * loop busy with bodies that nobody wants, so only a short rest is read, and the connection ends with a longer one
 * (interfaces.md §2, Fairness: small body limits before anybody is authenticated).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Bytes that are read, and dropped, behind an answer. */
export const UNREAD_BODY_BYTES = 64 * 1024;

/** To be called with each request as it comes. */
export function limitUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  // Before Node's own listener, which would drop the rest unseen.
  response.prependOnceListener('finish', () => {
    if (request.complete) return;
    let left = UNREAD_BODY_BYTES;
    request.on('data', (piece: Buffer) => {
      left -= piece.length;
      if (left < 0) request.socket.destroy();
    });
  });
}
