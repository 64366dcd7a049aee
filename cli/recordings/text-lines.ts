/** Splits the bytes of a text file into lines. Memory is limited: a line that is too long is not stored. */

/** The maximum length of a line. A line with 1,024 bytes of payload in hex and a topic has some 2,200 bytes. */
const MAX_LINE_BYTES = 64 * 1024;
const NEWLINE = 10;

/** @param text the line; null if it is longer than 64 KiB. @param line its number, from 1 */
type LineVisitor = (text: string | null, line: number) => void;

/** Calls `visit` for each line that is not empty, without its line end. Returns the number of lines. Never throws. */
export async function visitLines(chunks: AsyncIterable<Uint8Array>, visit: LineVisitor): Promise<number> {
  const decoder = new TextDecoder();
  // Chunks of a line whose end has not been read yet.
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  let line = 0;
  // Ends a line, given its last bytes; the bytes before are pending.
  const finishLine = (lastBytes: Uint8Array): void => {
    line += 1;
    if (pendingBytes + lastBytes.length > MAX_LINE_BYTES) visit(null, line);
    else {
      const bytes = pending.length === 0 ? lastBytes : Buffer.concat([...pending, lastBytes]);
      const text = decoder.decode(bytes).trim();
      if (text !== '') visit(text, line);
    }
    pending = [];
    pendingBytes = 0;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      finishLine(chunk.subarray(start, end));
      start = end + 1;
    }
    pendingBytes += chunk.length - start;
    if (pendingBytes <= MAX_LINE_BYTES && start < chunk.length) pending.push(chunk.subarray(start));
    else pending = [];
  }
  if (pendingBytes > 0) finishLine(new Uint8Array());
  return line;
}

/** The reason for skipping a line that `visitLines` passes as null. */
export const LINE_TOO_LONG = `a line of more than ${MAX_LINE_BYTES / 1024} KiB`;
