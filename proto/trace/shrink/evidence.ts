/**
 * Collects from a trace, with bounded memory, the events that a finding can depend on: those of its lock, and moments
 * at which only time passed. `trace shrink` searches among them. Does no I/O: the caller reads the file and passes its
 * events in order.
 */
import type { Mac } from '../../wire/mac.js';
import type { TraceFinding } from '../findings.js';
import { type TraceEvent, type TraceHeader, type TraceLock, UNNAMED_LOCK } from '../trace.js';
import { HeaderTracker } from './header-tracker.js';

/** An event with the line of the original trace that it is from. */
export interface TracedLine {
  readonly event: TraceEvent;
  /** The uplink's bytes, if the line has them. */
  readonly raw: Uint8Array | null;
  readonly line: number;
}

/** The finding that the smaller trace must still have. */
export interface ShrinkTarget extends Pick<TraceFinding, 'rule' | 'line' | 'message'> {
  readonly mac: Mac;
}

/** Events of one lock, and the header's entry for it; null for a lock that the header does not name. */
export interface LockEvents {
  readonly lock: TraceLock | null;
  readonly lines: readonly TracedLine[];
}

/** Maximum number of events before the finding, and after it. Older events go into the header. */
const MAX_LINES_BEFORE = 100_000;
const MAX_LINES_AFTER = 100_000;

/** See the top of this file. */
export class Evidence {
  readonly #target: ShrinkTarget;
  /** Makes the header from the events that were forgotten. */
  readonly #tracker: HeaderTracker;
  /** Whether the trace's header names the lock. */
  readonly #isNamed: boolean;
  #hasForgotten = false;
  #lines: TracedLine[] = [];
  /** How many events came after the finding's line. */
  #linesAfter = 0;
  #lastMs: number | null = null;

  constructor(header: TraceHeader, target: ShrinkTarget) {
    this.#target = target;
    this.#isNamed = header.locks.has(target.mac);
    this.#tracker = new HeaderTracker(header.locks.get(target.mac) ?? UNNAMED_LOCK);
  }

  /** Takes the next event of the trace. */
  add(event: TraceEvent, line: number, raw: Uint8Array | null): void {
    const { mac, line: targetLine } = this.#target;
    this.#lastMs = event.atMs;
    // The finding's own line is kept as a tick even if its event is not the lock's: for the lock, time passed.
    if (event.event === 'world') {
      if (line === targetLine) this.#push({ event: { event: 'tick', atMs: event.atMs }, raw: null, line });
      return;
    }
    const isOfLock = !('mac' in event) || event.mac === mac;
    if (isOfLock) this.#push({ event, raw, line });
    else if (line === targetLine) this.#push({ event: { event: 'tick', atMs: event.atMs }, raw: null, line });
  }

  #push(traced: TracedLine): void {
    if (traced.line > this.#target.line) {
      if (this.#linesAfter < MAX_LINES_AFTER) this.#lines.push(traced);
      this.#linesAfter += 1;
      return;
    }
    this.#lines.push(traced);
    if (this.#lines.length < 2 * MAX_LINES_BEFORE) return;
    const forgotten = this.#lines.splice(0, MAX_LINES_BEFORE);
    for (const { event } of forgotten) this.#tracker.note(event);
    this.#hasForgotten = true;
  }

  /**
   * The collected events. The last one is a tick at the end of the trace, for findings about time that passed.
   *
   * @param lines the number of lines of the trace
   */
  end(lines: number): LockEvents {
    const [first] = this.#lines;
    const lock = first === undefined ? null : this.#tracker.lockAt(first.event.atMs);
    const atMs = this.#lastMs;
    const last: TracedLine[] = atMs === null ? [] : [{ event: { event: 'tick', atMs }, raw: null, line: lines }];
    return { lock: this.#isNamed || this.#hasForgotten ? lock : null, lines: [...this.#lines, ...last] };
  }
}
