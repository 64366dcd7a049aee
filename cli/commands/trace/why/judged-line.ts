/**
 * Records what the judge believed of the locks of one line of a trace: before the line, after it, and the events
 * around it. It follows a check of the trace (proto/trace/check.ts) and must not change the beliefs.
 */
import type { Belief } from '../../../../proto/power/judge/belief.js';
import { type JudgeEvent, newVerdict, type Verdict } from '../../../../proto/power/judge/event.js';
import type { CheckObserver } from '../../../../proto/trace/check.js';
import type { JudgedHistory } from '../../../../proto/why/history.js';

/** Events of a lock that are kept before the line; after it, only so many are read. */
const MAX_EVENTS_BEFORE = 5_000;
const MAX_EVENTS_AFTER = 500;

interface Recorded {
  before: JudgeEvent[];
  /** The lines of the events before, in the same order. */
  beforeLines: number[];
  isCut: boolean;
  beliefBefore: Belief | null;
  belief: Belief | null;
  event: JudgeEvent | null;
  verdict: Verdict;
  readonly after: JudgeEvent[];
}

/** What the line's event was for one lock, with the history around it. */
export interface JudgedLine {
  /** A `tick` where the line is about another lock or about none. */
  readonly event: JudgeEvent;
  readonly history: JudgedHistory;
  /** The line in which the same uplink came first; null if it is no repeat or that line was not kept. */
  readonly firstLine: number | null;
}

/** See the head of this file. */
export class LineRecorder implements CheckObserver {
  readonly #line: number;
  readonly #locks: Map<string, Recorded>;

  /** @param macs the locks to record, in the form `A4:C1:38:F0:E1:D2` */
  constructor(line: number, macs: Iterable<string>) {
    this.#line = line;
    this.#locks = new Map([...macs].map((mac) => [mac, newRecord()]));
  }

  before(belief: Belief, event: JudgeEvent, line: number): void {
    const lock = this.#locks.get(belief.mac);
    // The tick of a line comes before its own event, which then replaces the tick, but not the belief before both.
    if (lock === undefined || line !== this.#line) return;
    lock.beliefBefore ??= structuredClone(belief);
    if (event.type !== 'tick') lock.beliefBefore = structuredClone(belief);
  }

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

  /** What was recorded of a lock; null if the line was not judged for it. */
  of(mac: string): JudgedLine | null {
    const lock = this.#locks.get(mac);
    if (lock === undefined || lock.event === null || lock.beliefBefore === null || lock.belief === null) return null;
    const { before, isCut, beliefBefore, belief, event, verdict, after } = lock;
    const target = event.type === 'uplink' ? event : null;
    const history = { before, isCut, beliefBefore, target, verdict, belief, after, failures: 0 };
    return { event, history, firstLine: firstLineOf(lock, event) };
  }
}

function newRecord(): Recorded {
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

/** Keeps the last events. It drops the older half at once, so that dropping costs little per event. */
function remember(lock: Recorded, event: JudgeEvent, line: number): void {
  lock.before.push(event);
  lock.beforeLines.push(line);
  if (lock.before.length < 2 * MAX_EVENTS_BEFORE) return;
  lock.before = lock.before.slice(-MAX_EVENTS_BEFORE);
  lock.beforeLines = lock.beforeLines.slice(-MAX_EVENTS_BEFORE);
  lock.isCut = true;
}

function firstLineOf({ before, beforeLines }: Recorded, event: JudgeEvent): number | null {
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
