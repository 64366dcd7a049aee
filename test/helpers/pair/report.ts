/** Reports a failed pair check: the finding, the events before it, and the command that repeats it. */
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
  readonly kinds = new Set<string>();
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

/** Runs the walk of a seed; returns its mistakes as lines to print, empty if there are none. */
export function mistakesOnWalk(seed: number, seen: PairStatistics): string[] {
  const repeat = `env PAIR_SEED=${seed} npm test test/proto/power/pair-check.test.ts`;
  return mistakesIn(repeat, `seed ${seed}, ${WALK_DAYS} days`, () => {
    const run = repairWorld(pairWalk(seed));
    seen.add(run);
    return { run, otherMistakes: mistakesAfterRepair(run) };
  });
}

/** Runs one case with one event; returns its mistakes as lines to print, or null if the case is impossible. */
export function mistakesInCase(
  place: string,
  one: Case,
  happening: CaseEvent,
  settles: Milliseconds,
  seen: PairStatistics,
): string[] | null {
  let caseExists = true;
  const repeat = `env PAIR_CASE=${place} npm test test/proto/power/pair-check.test.ts`;
  const wrong = mistakesIn(repeat, `${one.name}: ${happening.name}`, () => {
    const run = playCase(one, happening, settles);
    if (run === undefined) {
      caseExists = false;
      return undefined;
    }
    seen.add(run);
    return { run, otherMistakes: missingUplinks(run) };
  });
  return caseExists ? wrong : null;
}

/** Uplinks that have not arrived although the lock could have sent them for 15 min. */
function missingUplinks(run: PairRun): string[] {
  const beforeMs = run.nowMs - Minutes(15);
  return [...run.outstanding.values()]
    .filter(({ timeMs }) => timeMs < beforeMs)
    .map((uplink) => `${kindOf(uplink)} ${uplink.boot}/${uplink.sequence} never arrived`);
}

type Played = { readonly run: PairRun; readonly otherMistakes: readonly string[] } | undefined;

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
