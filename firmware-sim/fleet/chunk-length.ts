/** Plans the length of the chunks of simulated time in which a virtual run makes and writes its trace. */
import { Days, type Milliseconds, Minutes } from '../../proto/clock.js';

/** The intended size of a chunk: few enough bytes for the processor's cache, many enough for each lock to do a lot. */
export const CHUNK_BYTES = 32 * 1024 * 1024;
/** The lines of an ordinary lock, from which the length of the first chunk follows. */
export const BYTES_A_LOCK_AND_DAY = 14 * 1024;
const MIN_CHUNK_MS = Minutes(1);
const MAX_CHUNK_MS = Days(7);
/** A chunk may last this many times as long as the one before. */
const MAX_GROWTH = 4;

/** Plans each chunk by the size of the one before. The lengths do not affect the trace. */
export class ChunkLength {
  /** The length of the next chunk. */
  ms: Milliseconds;

  constructor(locks: number) {
    this.ms = withinLimits((Days(1) * CHUNK_BYTES) / (locks * BYTES_A_LOCK_AND_DAY));
  }

  /** Plans the length of the next chunk. The last one had this length and size. */
  fit(chunkMs: number, bytes: number): void {
    const fittingMs = bytes === 0 ? MAX_CHUNK_MS : (chunkMs * CHUNK_BYTES) / bytes;
    this.ms = withinLimits(Math.min(fittingMs, this.ms * MAX_GROWTH));
  }
}

function withinLimits(chunkMs: Milliseconds): Milliseconds {
  return Math.min(MAX_CHUNK_MS, Math.max(MIN_CHUNK_MS, Math.round(chunkMs)));
}
