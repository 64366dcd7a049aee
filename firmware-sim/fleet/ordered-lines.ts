/** Writes the lines of a chunk of a virtual run, whose locks were simulated one after another, in order of time. */
import type { LineBuilder } from '../../proto/trace/line-builder.js';
import type { FiringLog } from './firing-log.js';

/** So many bytes are put in order at once: they fit into the cache until they are written to the file. */
export const ORDERED_BYTES = 2 * 1024 * 1024;

/**
 * Writes the lines piece by piece, and leaves them in the builder. A piece is collected behind the lines: copying
 * within a buffer takes half as long as from one to another.
 *
 * @param firings where the lines of each firing (one run of a lock's timer) start
 */
export function writeInOrder(builder: LineBuilder, firings: FiringLog, write: (lines: Uint8Array) => void): void {
  const end = builder.length;
  builder.reserve(ORDERED_BYTES);
  const { bytes } = builder;
  // Lines before the first firing: the header, and those of the first lock's start.
  const firstStart = firings.firstStart(end);
  if (firstStart > 0) write(bytes.subarray(0, firstStart));
  let at = end;
  firings.readInOrder(end, (start, next) => {
    const length = next - start;
    if (at + length > end + ORDERED_BYTES) {
      write(bytes.subarray(end, at));
      at = end;
    }
    if (length > ORDERED_BYTES) write(bytes.subarray(start, next));
    else {
      bytes.copyWithin(at, start, next);
      at += length;
    }
  });
  if (at > end) write(bytes.subarray(end, at));
}
