/**
 * A scenario scripts what happens to a simulated lock, and lists the events that a correct lock then shows. The
 * mutation check plays all scenarios with faulty locks, and at least one scenario must reveal each fault. The expected
 * events follow from protocol.md §2, whose sentence each scenario cites, and never from the code. The network has no
 * latency, so that times are those of the protocol.
 */

import type { StepWrapper } from '../../../firmware-sim/faults/bug-wrappers.js';
import { Hours, Minutes } from '../../../proto/clock.js';
import type { PowerModel } from '../../../proto/power/model.js';
import type { Draft } from '../../../proto/power/step/state.js';
import { type Command, DEFAULT_POWER, type PowerSettings } from '../../../proto/wire/ping.js';
import { MIDNIGHT_MS } from './model-lock.js';
import { type ObservedEvent, type PairOptions, PairRun } from './run.js';

/** The observed events, as lines of seconds since the start and the event: `36.001 gps THEFT`. */
export type EventLines = readonly string[];

/** What happens to a lock, and what the lock must do. */
export interface Scenario {
  readonly name: string;
  /** The sentence of protocol.md that the scenario checks. */
  readonly citation: string;
  /** The hour of the UTC day at which the scenario starts. */
  readonly hour: number;
  readonly lock?: Partial<PairOptions['lock']>;
  readonly play: (run: PairRun) => void;
  /** The expected lines, or a function that returns what is wrong with the observed lines. */
  readonly expect: EventLines | ((eventLines: EventLines, run: PairRun) => string | undefined);
}

/** How a lock is altered: by another power model, or by faults outside the model (the same members as PairOptions). */
export interface Alteration {
  readonly model?: PowerModel;
  readonly tamper?: (state: Draft, wakeAtMs: number) => number;
  readonly wrapStep?: StepWrapper;
}

/**
 * How a scenario revealed that the lock is altered: by an unexplained finding of the judge, by an unexpected event line
 * (`oracle`), or by a crash. Undefined if it did not.
 */
export type Outcome = { readonly by: 'judge' | 'oracle' | 'crash'; readonly symptom: string } | undefined;

/** Plays the scenario with a correct or altered lock. */
export function playScenario(scenario: Scenario, alteration: Alteration = {}): Outcome {
  const startMs = MIDNIGHT_MS + Math.round(Hours(scenario.hour));
  const eventLines: string[] = [];
  let run: PairRun | undefined;
  const observe = (atMs: number, event: ObservedEvent): void => {
    const line = lineOf(event, run?.network.accepts ?? true);
    if (line !== undefined) eventLines.push(`${(atMs - startMs) / 1000} ${line}`);
  };
  try {
    run = new PairRun({
      seed: 1,
      startMs,
      latency: [0, 0],
      lock: { lockState: 'locked', batteryPercent: 80, ...scenario.lock },
      observe,
      ...alteration,
    });
    scenario.play(run);
  } catch (error) {
    return { by: 'crash', symptom: (error as Error).message };
  }
  const [unexplained] = run.unexplained;
  if (unexplained !== undefined) return { by: 'judge', symptom: unexplained.finding.rule };
  const { expect } = scenario;
  const difference = typeof expect === 'function' ? expect(eventLines, run) : firstDifference(eventLines, expect);
  return difference === undefined ? undefined : { by: 'oracle', symptom: difference };
}

/** The event as a line without its time; undefined for an event that is not listed. */
function lineOf(event: ObservedEvent, accepts: boolean): string | undefined {
  if (event.type === 'connect') return 'connect';
  // Commands are not listed, since the lock's answers show them.
  if (event.type === 'command') return undefined;
  if (event.type === 'disconnect') return `disconnect ${event.cause}`;
  if (event.type === 'effect') {
    const { effect } = event;
    // An attempt to connect while the gateway does not listen.
    if (effect.type === 'connect' && !accepts) return 'tries';
    if (effect.type === 'tone' || effect.type === 'siren') return `${effect.type} ${effect.durationMs / 1000} s`;
    return effect.type === 'lock' || effect.type === 'unlock' ? effect.type : undefined;
  }
  const { body } = event.uplink;
  if (body.kind === 'ack') return `ack ${body.commandId} ${body.result}`;
  return body.kind === 'close_connection' ? 'close' : `${body.kind} ${body.reason.replace('REASON_', '')}`;
}

/** The first difference between observed and expected lines, as a sentence; undefined if there is none. */
export function firstDifference(eventLines: EventLines, expected: EventLines): string | undefined {
  const length = Math.max(eventLines.length, expected.length);
  for (let index = 0; index < length; index++) {
    const [observed, expectedLine] = [eventLines[index] ?? 'nothing more', expected[index] ?? 'nothing more'];
    if (observed !== expectedLine) return `${observed}, not ${expectedLine}`;
  }
  return undefined;
}

/** The different events of the lines, without seconds, sorted. */
export function kindsIn(eventLines: EventLines): string[] {
  return [...new Set(eventLines.map((line) => line.slice(line.indexOf(' ') + 1)))].sort();
}

/** The seconds of the lines with this event. */
export function secondsOf(eventLines: EventLines, event: string): number[] {
  return eventLines.filter((line) => line.endsWith(` ${event}`)).map((line) => Number(line.split(' ')[0]));
}

/** Sends a command that is valid for two minutes, even if a gateway would not send it now. */
export function sendCommand(run: PairRun, id: number, command: Command): void {
  run.forceCommand({ id, command, expiresMs: run.nowMs + Minutes(2) });
}

/** The hour of the UTC day at which the test's lock sends its daily Period Ping. Firmware derives it from the MAC. */
export const PERIOD_HOUR = 6.35;

/** The given settings; by default MID with all switches off. */
export function power(settings: Partial<PowerSettings>): PowerSettings {
  return { ...DEFAULT_POWER, ...settings };
}

/** The lock moves for `span` ms, and then stands still. */
export function moveFor(run: PairRun, span: number): PairRun {
  return run.input({ type: 'motion', moving: true }).advance(span).input({ type: 'motion', moving: false });
}

/** A person locks the lock. */
export function lockManually(run: PairRun): PairRun {
  return run.input({ type: 'lock-state', lockState: 'locked' });
}

/** A person unlocks the lock. */
export function unlockManually(run: PairRun): PairRun {
  return run.input({ type: 'lock-state', lockState: 'unlocked' });
}
