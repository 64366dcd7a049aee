/**
 * Scripted worlds with what must be seen in them, for the mutation check. What a scenario expects is written from
 * protocol.md §2, with its sentence, and never from what the code does. The network takes no time in them, so that the
 * seconds are the protocol's own.
 */
import { Hours, Minutes } from '../../../proto/clock.js';
import type { PowerModel } from '../../../proto/power/model.js';
import type { Draft } from '../../../proto/power/step/state.js';
import { type Command, DEFAULT_POWER, type PowerSettings } from '../../../proto/wire/ping.js';
import { MIDNIGHT_MS } from '../mqtt/lock-bench.js';
import { type PairOptions, PairRun, type Witnessed } from './run.js';

/** Seconds since the scenario's beginning, and what was seen: `36.001 gps THEFT`. */
export type Story = readonly string[];

export interface Scenario {
  readonly name: string;
  /** The sentence of protocol.md that it is about. */
  readonly says: string;
  /** The hour of the day at which it begins, UTC. */
  readonly hour: number;
  readonly lock?: Partial<PairOptions['lock']>;
  readonly play: (run: PairRun) => void;
  /** The story that must be told, or what is wrong with the one that is. */
  readonly expect: Story | ((story: Story, run: PairRun) => string | undefined);
}

/** How a lock is altered: by its table, or by a fault that no table holds. */
export interface Alteration {
  readonly model?: PowerModel;
  readonly tamper?: (state: Draft, wakeAtMs: number) => number;
}

/** What became of a scenario: what shows that the lock is not as it should be; undefined where nothing does. */
export type Outcome = { readonly by: 'judge' | 'oracle' | 'crash'; readonly what: string } | undefined;

/** Plays the scenario with a lock, altered or not. */
export function playScenario(scenario: Scenario, alteration: Alteration = {}): Outcome {
  const startMs = MIDNIGHT_MS + Math.round(Hours(scenario.hour));
  const story: string[] = [];
  let run: PairRun | undefined;
  const witness = (atMs: number, what: Witnessed): void => {
    const line = tell(what, run?.network.accepts ?? true);
    if (line !== undefined) story.push(`${(atMs - startMs) / 1000} ${line}`);
  };
  try {
    run = new PairRun({
      seed: 1,
      startMs,
      latency: [0, 0],
      lock: { lockState: 'locked', batteryPercent: 80, ...scenario.lock },
      witness,
      ...alteration,
    });
    scenario.play(run);
  } catch (error) {
    return { by: 'crash', what: (error as Error).message };
  }
  const [found] = run.unexplained;
  if (found !== undefined) return { by: 'judge', what: found.finding.rule };
  const { expect } = scenario;
  const wrong = typeof expect === 'function' ? expect(story, run) : firstDifference(story, expect);
  return wrong === undefined ? undefined : { by: 'oracle', what: wrong };
}

function tell(what: Witnessed, accepts: boolean): string | undefined {
  if (what.type === 'connect') return 'connect';
  // What the gateway says shows in what the lock answers.
  if (what.type === 'command') return undefined;
  if (what.type === 'disconnect') return `disconnect ${what.cause}`;
  if (what.type === 'effect') {
    const { effect } = what;
    if (effect.type === 'connect' && !accepts) return 'tries';
    if (effect.type === 'tone' || effect.type === 'siren') return `${effect.type} ${effect.durationMs / 1000} s`;
    return effect.type === 'lock' || effect.type === 'unlock' ? effect.type : undefined;
  }
  const { body } = what.uplink;
  if (body.kind === 'ack') return `ack ${body.commandId} ${body.result}`;
  return body.kind === 'close_connection' ? 'close' : `${body.kind} ${body.reason.replace('REASON_', '')}`;
}

/** Where a story is another one than it must be, in words; undefined where it is not. */
export function firstDifference(story: Story, expected: Story): string | undefined {
  const most = Math.max(story.length, expected.length);
  for (let index = 0; index < most; index++) {
    const [seen, wanted] = [story[index] ?? 'nothing more', expected[index] ?? 'nothing more'];
    if (seen !== wanted) return `${seen}, not ${wanted}`;
  }
  return undefined;
}

/** What stands in a story after the seconds, each once and sorted. */
export function kindsIn(story: Story): string[] {
  return [...new Set(story.map((line) => line.slice(line.indexOf(' ') + 1)))].sort();
}

/** The seconds of the lines that say so. */
export function secondsOf(story: Story, what: string): number[] {
  return story.filter((line) => line.endsWith(` ${what}`)).map((line) => Number(line.split(' ')[0]));
}

/** Sends a command without asking whether a gateway would. It is good for two minutes. */
export function tellLock(run: PairRun, id: number, command: Command): void {
  run.network.send({ id, command, expiresMs: run.nowMs + Minutes(2) });
}

/** When the test's lock makes its Period Ping: the hour of the day that its MAC gives it. */
export const PERIOD_HOUR = 6.35;

/** MID with all switches off, but for what is given. */
export function power(some: Partial<PowerSettings>): PowerSettings {
  return { ...DEFAULT_POWER, ...some };
}

/** The lock moves for `span`, and stands. */
export function moves(run: PairRun, span: number): PairRun {
  return run.give({ type: 'motion', moving: true }).pass(span).give({ type: 'motion', moving: false });
}

export function locks(run: PairRun): PairRun {
  return run.give({ type: 'lock-state', lockState: 'locked' });
}

export function unlocks(run: PairRun): PairRun {
  return run.give({ type: 'lock-state', lockState: 'unlocked' });
}
