/** The format of server-sent events (HTML Living Standard, section 9.2). Pure. */

/** The media type of a stream of events. */
export const EVENT_STREAM_TYPE = 'text/event-stream';

/** A comment, which keeps a silent connection open. */
export const COMMENT = ':\n\n';

/** How long a browser waits before it connects again. */
export const RETRY_FIELD = 'retry: 1000\n\n';

/**
 * One event.
 *
 * @param id when the client connects again, it sends the last id that it got. An empty id clears that id in the client,
 *   undefined leaves it unchanged
 * @param json the data in one line: JSON without line breaks
 */
export function sseEvent(name: string, id: string | undefined, json: string): string {
  return `event: ${name}\n${id === undefined ? '' : `id: ${id}\n`}data: ${json}\n\n`;
}
