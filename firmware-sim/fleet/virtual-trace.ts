/**
 * Writes a virtual run as a trace (protocol.md §4). The header has each lock's first state, so that `trace check` knows
 * the state from the first line. The lines are the events that a gateway would have seen and, on request, the ground
 * truth. The last line is a tick, an event that only states the time. So the judge, which checks the locks' behaviour,
 * also sees which pings were due by the end and are missing.
 *
 * Where locks don't affect each other, each is simulated by itself for a chunk of time; then the chunk's lines are put
 * in order (firing-log.ts). The bytes are the same as with one clock for all locks.
 */
import type { Lock } from '../lock/lock.js';
import { LineRecorder } from '../trace/line-recorder.js';
import { headerLockOf } from '../trace/trace-recorder.js';
import { BYTES_A_LOCK_AND_DAY, CHUNK_BYTES, ChunkLength } from './chunk-length.js';
import { FiringLog } from './firing-log.js';
import { ORDERED_BYTES, writeInOrder } from './ordered-lines.js';
import { type VirtualOptions, VirtualRun } from './virtual-run.js';

/** The run to write, and what to write of it. */
export interface VirtualTraceOptions
  extends Omit<VirtualOptions, 'sink' | 'diary' | 'anyOrder' | 'onFiring' | 'range'> {
  /** A note for readers. The same options must give the same note, so that the bytes are the same. */
  readonly note: string;
  /** Whether to write `world` events, the ground truth that the judge never reads. */
  readonly hasWorldEvents: boolean;
}

/** How much larger than planned a chunk may become before its buffer must grow. */
const SPARE_CAPACITY = 1.25;

/** Writes the trace as the run advances. */
export class VirtualTrace {
  readonly #run: VirtualRun;
  readonly #recorder: LineRecorder;
  readonly #write: ((lines: Uint8Array) => void) | null;
  readonly #firings: FiringLog;
  readonly #chunk: ChunkLength;

  /** @param write takes whole lines, as bytes that it must not keep; null if the caller needs only the counts */
  constructor(options: VirtualTraceOptions, write: ((lines: Uint8Array) => void) | null) {
    const bytes = Math.min(CHUNK_BYTES, options.locks * options.days * BYTES_A_LOCK_AND_DAY);
    const recorder = new LineRecorder(write === null ? null : Math.round(bytes * SPARE_CAPACITY) + ORDERED_BYTES);
    const firings = new FiringLog(options.locks);
    this.#recorder = recorder;
    this.#write = write;
    this.#firings = firings;
    this.#chunk = new ChunkLength(options.locks);
    this.#run = new VirtualRun({
      ...options,
      sink: recorder,
      anyOrder: true,
      ...(write !== null && {
        onFiring: (lock: number, dueMs: number) => firings.note(lock, dueMs, recorder.lines?.builder.length ?? 0),
      }),
      ...(options.hasWorldEvents &&
        write !== null && { diary: (mac, atMs, entry) => recorder.world(mac, atMs, entry) }),
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
      do this.#writeChunk(Math.min(endMs, this.nowMs + this.#chunk.ms), this.#write);
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
    if (this.#run.isEachAlone && end > 0) writeInOrder(builder, this.#firings, write);
    else if (end > 0) write(builder.bytes.subarray(0, end));
    builder.clear();
    this.#chunk.fit(this.nowMs - fromMs, end);
    if (this.nowMs < this.endMs) return;
    this.#recorder.tick(this.endMs);
    write(builder.bytes.subarray(0, builder.length));
    builder.clear();
  }
}
