/**
 * A share of the locks of a virtual run, so that several threads can make one trace. A share gives the lines of a chunk
 * of time as bytes, lock after lock, and where the lines of each firing start. {@link SharedTrace} joins the chunks of
 * all shares, and writes them in order of time (firing-log.ts): the bytes are those of a run in one thread.
 */
import type { TraceLock } from '../../proto/trace/trace.js';
import type { Mac } from '../../proto/wire/mac.js';
import { LineRecorder } from '../trace/line-recorder.js';
import { headerLockOf } from '../trace/trace-recorder.js';
import { BYTES_A_LOCK_AND_DAY, CHUNK_BYTES } from './chunk-length.js';
import { type FiringColumns, FiringLog } from './firing-log.js';
import { ORDERED_BYTES, writeInOrder } from './ordered-lines.js';
import { VirtualRun } from './virtual-run.js';
import type { VirtualTraceOptions } from './virtual-trace.js';

/** Which locks a share has, by their indexes in the fleet: from `first` up to `end`, exclusive. */
export interface LockRange {
  readonly first: number;
  readonly end: number;
}

/** What a share made in a chunk of time. Its buffers can be passed to another thread. */
export interface ShareChunk {
  readonly lines: Uint8Array<ArrayBuffer>;
  readonly firings: FiringColumns;
  /** The numbers so far, from the start of the run. */
  readonly connections: number;
  readonly uplinks: number;
}

/** The shares of a fleet: as many as `shares`, but none without a lock, and of equal size. */
export function lockRanges(locks: number, shares: number): LockRange[] {
  const count = Math.min(locks, shares);
  return Array.from({ length: count }, (_, index) => ({
    first: Math.floor((locks * index) / count),
    end: Math.floor((locks * (index + 1)) / count),
  }));
}

/** The lines of one share. */
export class TraceShare {
  readonly #run: VirtualRun;
  readonly #recorder: LineRecorder;
  readonly #firings: FiringLog;

  /** @param options of a run whose locks don't affect each other */
  constructor(options: VirtualTraceOptions, range: LockRange) {
    const recorder = new LineRecorder(Math.min(CHUNK_BYTES, options.days * options.locks * BYTES_A_LOCK_AND_DAY));
    const firings = new FiringLog(options.locks);
    this.#recorder = recorder;
    this.#firings = firings;
    this.#run = new VirtualRun({
      ...options,
      range,
      sink: recorder,
      anyOrder: true,
      onFiring: (lock, dueMs) => firings.note(lock, dueMs, recorder.lines?.builder.length ?? 0),
      ...(options.hasWorldEvents && { diary: (mac, atMs, entry) => recorder.world(mac, atMs, entry) }),
    });
    if (!this.#run.isEachAlone) throw new Error('locks that affect each other cannot be shared between threads');
  }

  /** The entries of this share's locks in the trace's header. To be asked for before the first chunk. */
  headerLocks(): ReadonlyMap<Mac, TraceLock> {
    return new Map(this.#run.locks.map(({ mac, state }) => [mac, headerLockOf(state)]));
  }

  /** Advances to `untilMs`, and returns what this chunk has. */
  advance(untilMs: number): ShareChunk {
    this.#run.advance(untilMs);
    const { connections, uplinks, lines } = this.#recorder;
    const builder = lines?.builder;
    const bytes = new Uint8Array(builder?.bytes.subarray(0, builder.length) ?? []);
    builder?.clear();
    return { lines: bytes, firings: this.#firings.take(), connections, uplinks };
  }
}

/** Joins the chunks of all shares, and writes the trace. */
export class SharedTrace {
  readonly #recorder = new LineRecorder(CHUNK_BYTES + ORDERED_BYTES);
  readonly #firings: FiringLog;
  readonly #write: (lines: Uint8Array) => void;

  /** @param write takes whole lines, as bytes that it must not keep */
  constructor(locks: number, write: (lines: Uint8Array) => void) {
    this.#firings = new FiringLog(locks);
    this.#write = write;
  }

  /** Starts the trace. `locks` has the header's entries in the order of the fleet. */
  start(note: string, atMs: number, locks: ReadonlyMap<Mac, TraceLock>): void {
    this.#recorder.start(note, atMs, locks);
  }

  /** Writes a chunk of time: what each share made, in the order of the shares. */
  write(chunks: readonly ShareChunk[]): void {
    const builder = this.#recorder.lines?.builder;
    if (builder === undefined) return;
    for (const { lines, firings } of chunks) {
      builder.reserve(lines.length);
      this.#firings.noteAll(firings, builder.length);
      builder.bytes.set(lines, builder.length);
      builder.length += lines.length;
    }
    if (builder.length > 0) writeInOrder(builder, this.#firings, this.#write);
    builder.clear();
  }

  /** Writes the last line, the event that states the end of the run. */
  end(atMs: number): void {
    this.#recorder.tick(atMs);
    const builder = this.#recorder.lines?.builder;
    if (builder !== undefined) this.#write(builder.bytes.subarray(0, builder.length));
  }
}
