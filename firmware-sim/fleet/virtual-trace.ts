/**
 * Writes a virtual run as a trace (protocol.md §4). The header has each lock's first state, so that `trace check` is
 * right from the first line. The lines are the events that a gateway would have seen and, on request, the ground truth.
 * The last line is a tick, so that the judge also evaluates what was due by the end.
 */
import type { Lock } from '../lock/lock.js';
import { headerLockOf, TraceRecorder } from '../trace/trace-recorder.js';
import { type VirtualOptions, VirtualRun } from './virtual-run.js';

export interface VirtualTraceOptions extends Omit<VirtualOptions, 'sink' | 'diary'> {
  /** A note for readers. The same options must give the same note, so that the bytes are the same. */
  readonly note: string;
  /** Whether to write `world` events, the ground truth that the judge never reads. */
  readonly world: boolean;
}

/** Writes the trace as the run advances, one line at a time, in order. */
export class VirtualTrace {
  readonly #run: VirtualRun;
  readonly #recorder: TraceRecorder;

  /** @param write takes a line without its line break; null where only the counts are wanted */
  constructor(options: VirtualTraceOptions, write: ((line: string) => void) | null) {
    const recorder = new TraceRecorder(write);
    this.#recorder = recorder;
    this.#run = new VirtualRun({
      ...options,
      sink: recorder,
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

  get connections(): number {
    return this.#recorder.connections;
  }

  get uplinks(): number {
    return this.#recorder.uplinks;
  }

  get nowMs(): number {
    return this.#run.nowMs;
  }

  get endMs(): number {
    return this.#run.endMs;
  }

  /** Advances to `untilMs`; at the end of the run it writes the last line. */
  advance(untilMs: number): void {
    this.#run.advance(untilMs);
    if (this.nowMs >= this.endMs) this.#recorder.tick(this.endMs);
  }
}
