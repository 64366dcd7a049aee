/**
 * Writes a virtual run as a trace (protocol.md §4). The header has each lock's first state, so that `trace check` knows
 * the state from the first line. The lines are the events that a gateway would have seen and, on request, the ground
 * truth. The last line is a tick, an event that only states the time. So the judge, which checks the locks' behaviour,
 * also sees which pings were due by the end and are missing.
 */
import type { Lock } from '../lock/lock.js';
import { headerLockOf, TraceRecorder } from '../trace/trace-recorder.js';
import { type VirtualOptions, VirtualRun } from './virtual-run.js';

/** The run to write, and what to write of it. */
export interface VirtualTraceOptions extends Omit<VirtualOptions, 'sink' | 'diary' | 'anyOrder'> {
  /** A note for readers. The same options must give the same note, so that the bytes are the same. */
  readonly note: string;
  /** Whether to write `world` events, the ground truth that the judge never reads. */
  readonly world: boolean;
}

/** Writes the trace as the run advances, one line at a time, in order. */
export class VirtualTrace {
  readonly #run: VirtualRun;
  readonly #recorder: TraceRecorder;

  /** @param write takes a line without its line break; null if the caller needs only the counts */
  constructor(options: VirtualTraceOptions, write: ((line: string) => void) | null) {
    const recorder = new TraceRecorder(write);
    this.#recorder = recorder;
    this.#run = new VirtualRun({
      ...options,
      sink: recorder,
      // Without lines the events are only counted.
      anyOrder: write === null,
      ...(options.world && write !== null && { diary: (mac, atMs, entry) => recorder.world(mac, atMs, entry) }),
    });
    recorder.start(
      options.note,
      this.nowMs,
      new Map(this.#run.locks.map(({ mac, state }) => [mac, headerLockOf(state)])),
    );
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
    this.#run.advance(untilMs);
    if (this.nowMs >= this.endMs) this.#recorder.tick(this.endMs);
  }
}
