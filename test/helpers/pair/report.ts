/**
 * Reports a failed pair check, which runs a simulated lock against the judge (run.ts): the finding, the events before
 * it, and the command that repeats it.
 */
import { type Milliseconds, Minutes } from '../../../proto/clock.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { type Case, type CaseEvent, playCase } from './cases.js';
import type { PairRun } from './run.js';
import { mistakesAfterRepair, pairWalk, repairWorld, WALK_DAYS } from './walk.js';

/** Maximum number of events that a report shows. */
const MAX_SHOWN_EVENTS = 25;

/** Statistics over many runs, so that a test can check that they cover everything. */
export class PairStatistics {
  runs = 0;
  steps = 0;
  uplinks = 0;
  /** The kinds of uplinks that arrived, such as `cellular REASON_THEFT`. */
  readonly kinds = new Set<string>();
  /** How many findings an event of the simulated world explains, by rule. */
  readonly explained = new Map<string, number>();

  add(run: PairRun): void {
    this.runs++;
    this.steps += run.steps;
    this.uplinks += run.judge.received;
    for (const uplink of run.judge.uplinks()) this.kinds.add(kindOf(uplink));
    for (const [rule, count] of run.explained) this.explained.set(rule, (this.explained.get(rule) ?? 0) + count);
  }
}

/** The kind of an uplink, such as `cellular REASON_THEFT` or `ack rejected`. */
function kindOf({ body }: Uplink): string {
  return body.kind === 'ack' ? `ack ${body.result}` : `${body.kind} ${body.reason}`;
}

/** Runs the walk of a seed (walk.ts: days of random events); returns its mistakes as lines to print, if any. */
export function mistakesOnWalk(seed: number, statistics: PairStatistics): string[] {
  const repeat = `env PAIR_SEED=${seed} npm test test/proto/power/pair-check.slow.test.ts`;
  return mistakesIn(repeat, `seed ${seed}, ${WALK_DAYS} days`, () => {
    const run = repairWorld(pairWalk(seed));
    statistics.add(run);
    return { run, otherMistakes: mistakesAfterRepair(run) };
  });
}

/**
 * Runs one case (cases.ts: a state of a lock) with one event; returns its mistakes as lines to print, or null if the
 * case is impossible. `caseNumber` is what PAIR_CASE takes.
 */
export function mistakesInCase(
  caseNumber: string,
  testCase: Case,
  event: CaseEvent,
  settleMs: Milliseconds,
  statistics: PairStatistics,
): string[] | null {
  let caseExists = true;
  const repeat = `env PAIR_CASE=${caseNumber} npm test test/proto/power/pair-check.slow.test.ts`;
  const mistakes = mistakesIn(repeat, `${testCase.name}: ${event.name}`, () => {
    const run = playCase(testCase, event, settleMs);
    if (run === undefined) {
      caseExists = false;
      return undefined;
    }
    statistics.add(run);
    return { run, otherMistakes: missingUplinks(run) };
  });
  return caseExists ? mistakes : null;
}

/** Uplinks that have not arrived although the lock could have sent them for 15 min. */
function missingUplinks(run: PairRun): string[] {
  const beforeMs = run.nowMs - Minutes(15);
  return [...run.outstanding.values()]
    .filter(({ timeMs }) => timeMs < beforeMs)
    .map((uplink) => `${kindOf(uplink)} ${uplink.boot}/${uplink.sequence} never arrived`);
}

/** A run, and its mistakes that are not findings of the judge. */
type Played = { readonly run: PairRun; readonly otherMistakes: readonly string[] } | undefined;

/**
 * The lines of a report about a run: what is wrong, how to repeat it, and the events before it. Empty if nothing is.
 */
function mistakesIn(repeat: string, title: string, play: () => Played): string[] {
  let played: Played;
  try {
    played = play();
  } catch (error) {
    return [`${title}: ${(error as Error).stack}`, `to repeat it: ${repeat}`];
  }
  if (played === undefined) return [];
  const { run, otherMistakes } = played;
  const [first] = run.unexplained;
  if (first === undefined && otherMistakes.length === 0) return [];
  const findings = run.unexplained.map(({ finding }) => `${finding.severity} ${finding.rule}: ${finding.message}`);
  const events = first?.events ?? run.events();
  return [`${title}:`, ...findings, ...otherMistakes, `to repeat it: ${repeat}`, ...events.slice(-MAX_SHOWN_EVENTS)];
}
