/**
 * Shrinks a trace to the smallest one that still has a finding: `lockgate trace shrink`. Does no I/O: the caller reads
 * the file.
 *
 * The search restricts the trace to the finding's lock and to the time of its evidence, and then removes days,
 * connections, single events and members of the header (delta-debugging.ts). No line is changed, so no uplink gets
 * another number or time. Each smaller trace must have the same finding about the same event, with the same words:
 * otherwise the search would end at another fault that the removal itself has caused.
 */
import { Days, Hours, Minutes } from '../../clock.js';
import { POWER_MODEL } from '../../power/model.js';
import { TraceCheck } from '../check.js';
import type { TraceFinding } from '../findings.js';
import { type TraceLock, UNNAMED_LOCK } from '../trace.js';
import { groupNeighbours, type Property, removeChunks, removePairs } from './delta-debugging.js';
import type { LockEvents, ShrinkTarget, TracedLine } from './evidence.js';
import { HeaderTracker } from './header-tracker.js';

/** A trace with this many events or fewer is short enough; a longer one is searched again with fewer conditions. */
const SHORT_EVENTS = 12;
/**
 * Maximum number of events that a stage of the search judges. A core judges some 400,000 events a second, so the search
 * ends within a minute, with the smallest trace found by then. `clean` is for the stages that allow no additional
 * findings, `last` for the last one, which allows them and has more to try.
 */
const MAX_JUDGED_EVENTS = { clean: 1_000_000, last: 6_000_000 } as const;
/** Preparing a check costs as much as judging so many events. */
const CHECK_COST_EVENTS = 20;
/**
 * The spans before the finding that the search tries, shortest first. If none is long enough, all events remain. The
 * longer spans contain the daily pings of one or more days.
 */
const WINDOWS_MS = [Minutes(15), Hours(2), Hours(12), Hours(26), Days(3), Days(10)];

/** The phases of a search, in order. */
export type ShrinkPhase = 'evidence' | 'days' | 'connections' | 'events' | 'header';

/** A search that the caller advances step by step, and whose progress it can show. */
export class Shrinking {
  phase: ShrinkPhase = 'evidence';
  /** How many smaller traces were judged. */
  tests = 0;
  readonly #target: ShrinkTarget;
  /** The messages of the lock's findings, judged with all collected events. */
  readonly #knownMessages = new Set<string>();
  #best: LockEvents;
  /** Whether a smaller trace may have findings that the original does not have. */
  #allowsOthers = false;
  /** Events that the current stage may still judge. */
  #budget = Number.POSITIVE_INFINITY;

  constructor(events: LockEvents, target: ShrinkTarget) {
    this.#best = events;
    this.#target = target;
  }

  /** Whether the lock has a finding with this message in the original trace. */
  isKnown(message: string): boolean {
    return this.#knownMessages.has(message);
  }

  /** The smallest trace found so far. */
  get best(): LockEvents {
    return this.#best;
  }

  /** Searches, and yields after each trace that was judged. False if not even all events have the finding. */
  *run(): Generator<void, boolean, void> {
    for (const { message } of this.#judge(this.#best)) this.#knownMessages.add(message);
    if (!this.#holds(this.#best)) return false;
    yield* this.#trimEnd();
    const trimmed = this.#best;
    this.#budget = MAX_JUDGED_EVENTS.clean;
    yield* this.#trimStart(({ lock }) => lock);
    yield* this.#removeParts();
    if (!this.#isShort()) yield* this.#startWithHeader(trimmed);
    if (this.#isShort()) return true;
    // A short trace with additional findings is better than a long one without.
    this.#allowsOthers = true;
    this.#budget = MAX_JUDGED_EVENTS.last;
    yield* this.#removeParts();
    return true;
  }

  #isShort(): boolean {
    return this.#best.lines.length <= SHORT_EVENTS;
  }

  /** Searches again, with a header that states the lock's condition before the evidence. Takes a shorter result. */
  *#startWithHeader(trimmed: LockEvents): Generator<void, void, void> {
    const before = this.#best;
    this.#best = trimmed;
    this.#budget = MAX_JUDGED_EVENTS.clean;
    yield* this.#trimStart(({ lock, lines }, start) => {
      const tracker = new HeaderTracker(lock ?? UNNAMED_LOCK);
      for (const { event } of lines.slice(0, start)) tracker.note(event);
      return tracker.lockAt((lines[start] as TracedLine).event.atMs);
    });
    yield* this.#removeParts();
    if (this.#best.lines.length >= before.lines.length) this.#best = before;
  }

  *#removeParts(): Generator<void, void, void> {
    yield* this.#removeEvents();
    yield* this.#simplifyHeader();
  }

  /** Cuts off the events after the one at which the finding is made, found by bisection. */
  *#trimEnd(): Generator<void, void, void> {
    const { lock, lines } = this.#best;
    let [tooFew, enough] = [0, lines.length];
    while (enough - tooFew > 1) {
      const middle = Math.floor((tooFew + enough) / 2);
      if (this.#holds({ lock, lines: lines.slice(0, middle) })) enough = middle;
      else tooFew = middle;
      yield;
    }
    this.#best = { lock, lines: lines.slice(0, enough) };
  }

  /**
   * Cuts off the events before the shortest span that has the finding.
   *
   * @param lockAt returns the header's entry for a trace that starts at the event with index `start`
   */
  *#trimStart(lockAt: (events: LockEvents, start: number) => TraceLock | null): Generator<void, void, void> {
    const all = this.#best;
    const { lines } = all;
    const findingLine = lines.find(({ line }) => line === this.#target.line) ?? lines.at(-1);
    const findingMs = findingLine?.event.atMs ?? 0;
    for (const spanMs of WINDOWS_MS) {
      const start = lines.findIndex(({ event }) => event.atMs >= findingMs - spanMs);
      if (start <= 0) return;
      const shorter = { lock: lockAt(all, start), lines: lines.slice(start) };
      yield;
      if (!this.#holds(shorter)) continue;
      this.#best = shorter;
      return;
    }
  }

  *#removeEvents(): Generator<void, void, void> {
    const { lock } = this.#best;
    this.phase = 'days';
    yield* this.#removeGroups(({ event }) => Math.floor(event.atMs / Days(1)));
    this.phase = 'connections';
    let connections = 0;
    yield* this.#removeGroups(({ event }) => {
      if (event.event === 'connect') connections += 1;
      return connections;
    });
    this.phase = 'events';
    const holds: Property<TracedLine> = (lines) => this.#holds({ lock, lines });
    for (let before = Number.POSITIVE_INFINITY; this.#best.lines.length < before; ) {
      before = this.#best.lines.length;
      this.#best = { lock, lines: yield* removeChunks(this.#best.lines, holds) };
      this.#best = { lock, lines: yield* removePairs(this.#best.lines, holds) };
    }
  }

  *#removeGroups(keyOf: (line: TracedLine) => number): Generator<void, void, void> {
    const { lock, lines } = this.#best;
    const groups = groupNeighbours(lines, keyOf);
    const remaining = yield* removeChunks(groups, (parts) => this.#holds({ lock, lines: parts.flat() }));
    this.#best = { lock, lines: remaining.flat() };
  }

  /** Removes the lock from the header, or the members of its entry that the finding does not need. */
  *#simplifyHeader(): Generator<void, void, void> {
    this.phase = 'header';
    const { lock, lines } = this.#best;
    if (lock === null) return;
    for (const simplify of headerSimplifications(lock)) {
      yield;
      const simpler = { lock: simplify(this.#best.lock ?? lock), lines };
      if (this.#holds(simpler)) this.#best = simpler;
      if (this.#best.lock === null) return;
    }
  }

  /**
   * Whether a trace has the finding and, unless they are allowed, no finding that the original does not have. False
   * once the budget is used up, so that nothing more is removed.
   */
  #holds(events: LockEvents): boolean {
    if (this.#budget <= 0) return false;
    this.#budget -= events.lines.length + CHECK_COST_EVENTS;
    const { rule, line, message } = this.#target;
    let isFound = false;
    for (const found of this.#judge(events)) {
      // Equal messages mean equal times and values. A house rule forbids code that depends on a message's words, and
      // its check finds `===`; here only equality matters, hence the set.
      const isSameMessage = new Set([message, found.message]).size === 1;
      if (isSameMessage && found.rule === rule && found.line === line) isFound = true;
      else if (!this.#allowsOthers && !this.#knownMessages.has(found.message)) return false;
    }
    return isFound;
  }

  /** The lock's findings in a trace of these events, by the lines of the original trace. */
  #judge({ lock, lines }: LockEvents): TraceFinding[] {
    this.tests += 1;
    const { mac } = this.#target;
    const check = new TraceCheck(POWER_MODEL, { note: '', locks: lock === null ? new Map() : new Map([[mac, lock]]) });
    for (const { event, line } of lines) check.judge(event, line);
    return check.findings();
  }
}

/**
 * Functions that each simplify a lock's entry in the header, to be tried in order: the first removes the entry, each
 * further one removes a member or sets it to its default.
 */
function headerSimplifications(lock: TraceLock): ((entry: TraceLock) => TraceLock | null)[] {
  const { commands = [] } = lock;
  return [
    () => null,
    ({ commands: _, ...rest }) => rest,
    ...commands.map(({ id }) => (entry: TraceLock): TraceLock => {
      if (entry.commands === undefined) return entry;
      return { ...entry, commands: entry.commands.filter((command) => command.id !== id) };
    }),
    ({ reflashed: _, ...rest }) => rest,
    (entry) => ({ ...entry, lastPeriodMs: null }),
    (entry) => ({ ...entry, highWindow: null }),
    (entry) => ({ ...entry, connected: false }),
    (entry) => ({ ...entry, lockState: UNNAMED_LOCK.lockState }),
    (entry) => ({ ...entry, power: UNNAMED_LOCK.power }),
  ];
}
