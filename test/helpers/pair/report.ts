/** What a pair check says of a run that went wrong: the finding, what happened before it, and how to repeat it. */
import { type Milliseconds, Minutes } from '../../../proto/clock.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { type Case, type Happening, playCase } from './cases.js';
import type { PairRun } from './run.js';
import { heal, pairWalk, WALK_DAYS, wrongWhenHealed } from './walk.js';

/** Walks beyond the first that goes wrong are named, but their events are not shown. */
const EVENTS_SHOWN = 25;

/** What was seen over many runs, so that a check can tell that it has been everywhere. */
export class PairSeen {
  runs = 0;
  steps = 0;
  uplinks = 0;
  readonly kinds = new Set<string>();
  readonly explained = new Map<string, number>();

  note(run: PairRun): void {
    this.runs++;
    this.steps += run.steps;
    this.uplinks += run.judge.received;
    for (const uplink of run.judge.uplinks()) this.kinds.add(kindOf(uplink));
    for (const [rule, count] of run.explained) this.explained.set(rule, (this.explained.get(rule) ?? 0) + count);
  }
}

/** The sort of an uplink: `cellular REASON_THEFT`, `ack rejected`. */
function kindOf({ body }: Uplink): string {
  return body.kind === 'ack' ? `ack ${body.result}` : `${body.kind} ${body.reason}`;
}

/** What is wrong with the walk of a seed, as lines to print; none where nothing is. */
export function wrongOnWalk(seed: number, seen: PairSeen): string[] {
  const repeat = `env PAIR_SEED=${seed} npm test test/proto/power/pair-check.test.ts`;
  return wrongIn(repeat, `seed ${seed}, ${WALK_DAYS} days`, () => {
    const run = heal(pairWalk(seed));
    seen.note(run);
    return { run, further: wrongWhenHealed(run) };
  });
}

/** The same of one case in which one thing happens; null where there is no such case. */
export function wrongInCase(
  place: string,
  one: Case,
  happening: Happening,
  settles: Milliseconds,
  seen: PairSeen,
): string[] | null {
  let isThere = true;
  const repeat = `env PAIR_CASE=${place} npm test test/proto/power/pair-check.test.ts`;
  const wrong = wrongIn(repeat, `${one.name}: ${happening.name}`, () => {
    const run = playCase(one, happening, settles);
    if (run === undefined) {
      isThere = false;
      return undefined;
    }
    seen.note(run);
    return { run, further: leftOver(run) };
  });
  return isThere ? wrong : null;
}

/** What was made and never arrived, though nothing has stood in the way for long. */
function leftOver(run: PairRun): string[] {
  const beforeMs = run.nowMs - Minutes(15);
  return [...run.outstanding.values()]
    .filter(({ timeMs }) => timeMs < beforeMs)
    .map((uplink) => `${kindOf(uplink)} ${uplink.boot}/${uplink.sequence} never arrived`);
}

type Played = { readonly run: PairRun; readonly further: readonly string[] } | undefined;

function wrongIn(repeat: string, title: string, play: () => Played): string[] {
  let played: Played;
  try {
    played = play();
  } catch (error) {
    return [`${title}: ${(error as Error).stack}`, `to repeat it: ${repeat}`];
  }
  if (played === undefined) return [];
  const { run, further } = played;
  const [first] = run.unexplained;
  if (first === undefined && further.length === 0) return [];
  const findings = run.unexplained.map(({ finding }) => `${finding.severity} ${finding.rule}: ${finding.message}`);
  const events = first?.events ?? run.events();
  return [`${title}:`, ...findings, ...further, `to repeat it: ${repeat}`, ...events.slice(-EVENTS_SHOWN)];
}
