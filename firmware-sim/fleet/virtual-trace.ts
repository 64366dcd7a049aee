/**
 * A virtual run as a trace (protocol.md §4): a header with how each lock begins, so that `trace check` is right from
 * the first line; what a gateway would have seen; where it is asked for, what truly happened around the locks; and a
 * tick at the end, so that what was due by then counts.
 */
import { asNew, TraceRecorder } from './trace-recorder.js';
import { type VirtualOptions, VirtualRun } from './virtual.js';

export interface VirtualTraceOptions extends Omit<VirtualOptions, 'sink' | 'diary'> {
  /** For people; the same options must give the same note. */
  readonly note: string;
  /** Whether to tell what truly happened, which the judge never reads. */
  readonly world: boolean;
}

/** Tells itself as it goes, one line at a time, in order. */
export class VirtualTrace {
  readonly #run: VirtualRun;
  readonly #scribe: TraceRecorder;

  /** @param write takes a line without its end of line; null where nobody wants them and only the counts do */
  constructor(options: VirtualTraceOptions, write: ((line: string) => void) | null) {
    const scribe = new TraceRecorder(write);
    this.#scribe = scribe;
    this.#run = new VirtualRun({
      ...options,
      sink: scribe,
      ...(options.world && write !== null && { diary: (mac, atMs, entry) => scribe.world(mac, atMs, entry) }),
    });
    scribe.begin(options.note, this.nowMs, new Map(this.#run.locks.map(({ mac, state }) => [mac, asNew(state)])));
  }

  get connections(): number {
    return this.#scribe.connections;
  }

  get uplinks(): number {
    return this.#scribe.uplinks;
  }

  get nowMs(): number {
    return this.#run.nowMs;
  }

  get endMs(): number {
    return this.#run.endMs;
  }

  /** Goes on to `untilMs`; at the end of the run it writes the last line. */
  advance(untilMs: number): void {
    this.#run.advance(untilMs);
    if (this.nowMs >= this.endMs) this.#scribe.tick(this.endMs);
  }
}
