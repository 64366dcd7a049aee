/**
 * Records for one line of a trace what the judge believed about the line's locks before and after it, and their events
 * around it. The judge is the code that applies the rules; a belief is its estimate of a lock's state. The recorder
 * observes a check of the trace (proto/trace/check.ts) and must not change the beliefs.
 */
import type { Belief } from '../../../../proto/power/judge/belief.js';
import { type JudgeEvent, newVerdict, type Verdict } from '../../../../proto/power/judge/event.js';
import type { CheckObserver } from '../../../../proto/trace/check.js';
import type { JudgedHistory } from '../../../../proto/why/history.js';

/**
 * The maximum numbers of events per lock that are recorded before and after the line: a trace may exceed the memory.
 */
const MAX_EVENTS_BEFORE = 5_000;
const MAX_EVENTS_AFTER = 500;

/** The record of one lock. */
interface LockRecord {
  /** The last events before the line. */
  before: JudgeEvent[];
  /** The lines of the events before, in the same order. */
  beforeLines: number[];
  /** Whether earlier events were dropped. */
  isCut: boolean;
  /** The belief before the line; null until the line is judged. */
  beliefBefore: Belief | null;
  /** The belief after the line; null until the line is judged. */
  belief: Belief | null;
  /** The line's event. */
  event: JudgeEvent | null;
  /** The findings that the line made and withdrew. */
  verdict: Verdict;
  /** The first events after the line. */
  readonly after: JudgeEvent[];
}

/** The line's event for one lock, with the history around it. */
export interface JudgedLine {
  /** A `tick` (passing of time) if the line is not about this lock. */
  readonly event: JudgeEvent;
  readonly history: JudgedHistory;
  /** For a repeated uplink (a message of a lock), the line of its first occurrence; null if it was not recorded. */
  readonly firstLine: number | null;
}

/** Records one line while the trace is checked. */
export class LineRecorder implements CheckObserver {
  readonly #line: number;
  readonly #locks: Map<string, LockRecord>;

  /** @param macs the locks to record, in the form `A4:C1:38:F0:E1:D2` */
  constructor(line: number, macs: Iterable<string>) {
    this.#line = line;
    this.#locks = new Map([...macs].map((mac) => [mac, newRecord()]));
  }

  /** Called before an event is judged. */
  before(belief: Belief, event: JudgeEvent, line: number): void {
    const lock = this.#locks.get(belief.mac);
    // The check judges a line as a tick up to its time, then as its event. The belief before the event is recorded, or
    // that before the tick if the line has no event for this lock.
    if (lock === undefined || line !== this.#line) return;
    lock.beliefBefore ??= structuredClone(belief);
    if (event.type !== 'tick') lock.beliefBefore = structuredClone(belief);
  }

  /** Called after an event is judged. */
  after(belief: Belief, event: JudgeEvent, verdict: Verdict, line: number): void {
    const lock = this.#locks.get(belief.mac);
    if (lock === undefined) return;
    if (line < this.#line) {
      if (event.type !== 'tick') remember(lock, event, line);
    } else if (line > this.#line) {
      if (event.type !== 'tick' && lock.after.length < MAX_EVENTS_AFTER) lock.after.push(event);
    } else {
      lock.belief = structuredClone(belief);
      lock.event = event;
      lock.verdict.findings.push(...verdict.findings);
      lock.verdict.withdrawn.push(...verdict.withdrawn);
    }
  }

  /** The record of a lock; null if the line was not judged for it. */
  of(mac: string): JudgedLine | null {
    const lock = this.#locks.get(mac);
    if (lock === undefined || lock.event === null || lock.beliefBefore === null || lock.belief === null) return null;
    const { before, isCut, beliefBefore, belief, event, verdict, after } = lock;
    const target = event.type === 'uplink' ? event : null;
    // `failures` counts errors of a gateway's judge, of which a trace has none.
    const history = { before, isCut, beliefBefore, target, verdict, belief, after, failures: 0 };
    return { event, history, firstLine: firstLineOf(lock, event) };
  }
}

function newRecord(): LockRecord {
  return {
    before: [],
    beforeLines: [],
    isCut: false,
    beliefBefore: null,
    belief: null,
    event: null,
    verdict: newVerdict(),
    after: [],
  };
}

/** Stores an event. When twice the maximum is reached, drops the older half at once, which costs little per event. */
function remember(lock: LockRecord, event: JudgeEvent, line: number): void {
  lock.before.push(event);
  lock.beforeLines.push(line);
  if (lock.before.length < 2 * MAX_EVENTS_BEFORE) return;
  lock.before = lock.before.slice(-MAX_EVENTS_BEFORE);
  lock.beforeLines = lock.beforeLines.slice(-MAX_EVENTS_BEFORE);
  lock.isCut = true;
}

/** The line of the earlier uplink that has the same source, boot and sequence; null if there is none in the record. */
function firstLineOf({ before, beforeLines }: LockRecord, event: JudgeEvent): number | null {
  if (event.type !== 'uplink' || event.novelty === 'new') return null;
  const { boot, sequence } = event.uplink;
  const index = before.findIndex(
    (each) =>
      each.type === 'uplink' &&
      each.source === event.source &&
      each.uplink.boot === boot &&
      each.uplink.sequence === sequence,
  );
  return beforeLines[index] ?? null;
}
