/**
 * Writes a virtual run as a trace (protocol.md §4). The header has each lock's first state, so that `trace check` knows
 * the state from the first line. The lines are the events that a gateway would have seen and, on request, the ground
 * truth. The last line is a tick, an event that only states the time. So the judge, which checks the locks' behaviour,
 * also sees which pings were due by the end and are missing.
 *
 * Where locks don't affect each other, each is simulated by itself for a chunk of time; then the chunk's lines are put
 * in order (firing-log.ts). The bytes are the same as with one clock for all locks.
 */
import { Days, type Milliseconds, Minutes } from '../../proto/clock.js';
import type { LineBuilder } from '../../proto/trace/line-builder.js';
import type { Lock } from '../lock/lock.js';
import { LineRecorder } from '../trace/line-recorder.js';
import { headerLockOf } from '../trace/trace-recorder.js';
import { FiringLog } from './firing-log.js';
import { type VirtualOptions, VirtualRun } from './virtual-run.js';

/** The run to write, and what to write of it. */
export interface VirtualTraceOptions extends Omit<VirtualOptions, 'sink' | 'diary' | 'anyOrder' | 'onFiring'> {
  /** A note for readers. The same options must give the same note, so that the bytes are the same. */
  readonly note: string;
  /** Whether to write `world` events, the ground truth that the judge never reads. */
  readonly world: boolean;
}

/** The intended size of a chunk: few enough bytes for the processor's cache, many enough for each lock to do a lot. */
const CHUNK_BYTES = 32 * 1024 * 1024;
/** The lines of an ordinary lock, from which the length of the first chunk follows. */
const BYTES_A_LOCK_AND_DAY = 14 * 1024;
const MIN_CHUNK_MS = Minutes(1);
const MAX_CHUNK_MS = Days(7);
/** A chunk may last this many times as long as the one before. */
const MAX_GROWTH = 4;
/** How much larger than planned a chunk may become before its buffer must grow. */
const SPARE_CAPACITY = 1.25;
/** So many bytes are put in order at once: they fit into the cache until they are written to the file. */
const ORDERED_BYTES = 2 * 1024 * 1024;

/** Writes the trace as the run advances. */
export class VirtualTrace {
  readonly #run: VirtualRun;
  readonly #recorder: LineRecorder;
  readonly #write: ((lines: Uint8Array) => void) | null;
  readonly #firings: FiringLog;
  #chunkMs: Milliseconds;

  /** @param write takes whole lines, as bytes that it must not keep; null if the caller needs only the counts */
  constructor(options: VirtualTraceOptions, write: ((lines: Uint8Array) => void) | null) {
    const bytes = Math.min(CHUNK_BYTES, options.locks * options.days * BYTES_A_LOCK_AND_DAY);
    const recorder = new LineRecorder(write === null ? null : Math.round(bytes * SPARE_CAPACITY) + ORDERED_BYTES);
    const firings = new FiringLog(options.locks);
    this.#recorder = recorder;
    this.#write = write;
    this.#firings = firings;
    this.#chunkMs = withinLimits((Days(1) * CHUNK_BYTES) / (options.locks * BYTES_A_LOCK_AND_DAY));
    this.#run = new VirtualRun({
      ...options,
      sink: recorder,
      anyOrder: true,
      ...(write !== null && {
        onFiring: (lock: number, dueMs: number) => firings.note(lock, dueMs, recorder.lines?.builder.length ?? 0),
      }),
      ...(options.world && write !== null && { diary: (mac, atMs, entry) => recorder.world(mac, atMs, entry) }),
    });
    if (write === null) return;
    const headerLocks = new Map(this.#run.locks.map(({ mac, state }) => [mac, headerLockOf(state)]));
    recorder.start(options.note, this.nowMs, headerLocks);
  }

  /** The simulated locks. */
  get locks(): readonly Lock[] {
    return this.#run.locks;
  }

  /** The number of connections so far. */
  get connections(): number {
    return this.#recorder.connections;
  }

  /** The number of uplinks so far. */
  get uplinks(): number {
    return this.#recorder.uplinks;
  }

  /** The current time of the run, ms since the epoch. */
  get nowMs(): number {
    return this.#run.nowMs;
  }

  /** When the run ends, ms since the epoch. */
  get endMs(): number {
    return this.#run.endMs;
  }

  /** Advances to `untilMs`; at the end of the run it writes the last line. */
  advance(untilMs: number): void {
    const endMs = Math.min(untilMs, this.endMs);
    if (this.#write === null) this.#run.advance(endMs);
    else {
      do this.#writeChunk(Math.min(endMs, this.nowMs + this.#chunkMs), this.#write);
      while (this.nowMs < endMs);
    }
  }

  /** Simulates a chunk of time, and writes its lines. */
  #writeChunk(untilMs: number, write: (lines: Uint8Array) => void): void {
    const { lines } = this.#recorder;
    if (lines === null) return;
    const fromMs = this.nowMs;
    this.#run.advance(untilMs);
    const { builder } = lines;
    const end = builder.length;
    if (this.#run.isEachAlone && end > 0) this.#writeInOrder(builder, write);
    else if (end > 0) write(builder.bytes.subarray(0, end));
    builder.clear();
    this.#fitChunk(this.nowMs - fromMs, end);
    if (this.nowMs < this.endMs) return;
    this.#recorder.tick(this.endMs);
    write(builder.bytes.subarray(0, builder.length));
    builder.clear();
  }

  /**
   * Writes the lines of a chunk in order of time, piece by piece. A piece is collected behind the lines: copying within
   * a buffer takes half as long as from one to another.
   */
  #writeInOrder(builder: LineBuilder, write: (lines: Uint8Array) => void): void {
    const end = builder.length;
    builder.reserve(ORDERED_BYTES);
    const { bytes } = builder;
    // Lines before the first firing: the header, and those of the first lock's start.
    const firstStart = this.#firings.firstStart(end);
    if (firstStart > 0) write(bytes.subarray(0, firstStart));
    let at = end;
    this.#firings.readInOrder(end, (start, next) => {
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

  /** Plans the length of the next chunk. The last one had this length and size. */
  #fitChunk(chunkMs: number, bytes: number): void {
    const fittingMs = bytes === 0 ? MAX_CHUNK_MS : (chunkMs * CHUNK_BYTES) / bytes;
    this.#chunkMs = withinLimits(Math.min(fittingMs, this.#chunkMs * MAX_GROWTH));
  }
}

function withinLimits(chunkMs: Milliseconds): Milliseconds {
  return Math.min(MAX_CHUNK_MS, Math.max(MIN_CHUNK_MS, Math.round(chunkMs)));
}
