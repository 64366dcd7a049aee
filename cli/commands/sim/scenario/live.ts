/**
 * Plays a scenario against a gateway, over MQTT. The operator's interface sends its commands, creates credentials for
 * its phones and reports the judge's findings. The expectations are checked against the locks' diaries, never against
 * the gateway's account.
 */
import type { BugAssignment } from '../../../../firmware-sim/faults/bugs.js';
import { mqttLinks } from '../../../../firmware-sim/link/mqtt-link.js';
import { checkScenario } from '../../../../firmware-sim/scenario/check.js';
import { ScenarioPlay, scenarioMacs } from '../../../../firmware-sim/scenario/play.js';
import { momentText, type Scenario } from '../../../../firmware-sim/scenario/scenario.js';
import { Days, type Milliseconds, Minutes, RunClock, Seconds, systemClock } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { periodMinuteOf } from '../../../../proto/power/step/reading.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import { toDate } from '../../../../proto/wire/ping-json.js';
import type { Interruption } from '../../../terminal/interrupt.js';
import { note, oneLine } from '../../../terminal/output.js';
import { ProgressLine } from '../../../terminal/progress-line.js';
import type { SimFlags } from '../flags.js';
import { findGateway, type SimGateway } from '../gateway.js';
import { SimTally } from '../tally.js';
import { LiveActors } from './actors.js';
import type { ScenarioOutcome } from './report.js';

/** The time, in real time, until the gateway knows the locks and they have their secrets … */
const PREPARED_WITHIN: Milliseconds = Seconds(4);
/** … and for each of them. */
const PREPARED_EACH: Milliseconds = Seconds(0.05);
/** How long the last pings may take to arrive after the end, in real time. */
const ARRIVED_WITHIN: Milliseconds = Seconds(5);
const LOOK_EVERY: Milliseconds = Seconds(0.05);
/** How long findings may take to be reported after the locks have stopped. */
const FINDINGS_SETTLE: Milliseconds = Seconds(0.3);

export interface LiveScenario {
  readonly flags: SimFlags;
  readonly scenario: Scenario;
  readonly seed: string;
  readonly bugs: readonly BugAssignment[];
  /** The command that plays it again. */
  readonly repeat: string;
  readonly interrupted: Interruption;
}

/**
 * Plays it to its end; undefined where Ctrl-C ended it early.
 *
 * @throws LockgateError `input-scenario` where it needs the operator's interface and there is none, or as `findGateway`
 */
export async function playLive(live: LiveScenario): Promise<ScenarioOutcome | undefined> {
  const { flags, scenario, seed, interrupted } = live;
  const { signal } = interrupted;
  let startMs = 0;
  const gateway = await findGateway({ ...flags, locks: scenario.locks.length }, signal, (runMs) => {
    startMs = startFrom(scenario, runMs + (PREPARED_WITHIN + PREPARED_EACH * scenario.locks.length) * flags.speed);
    return scenarioMacs(scenario, seed, startMs);
  });
  if (startMs === 0) startMs = startFrom(scenario, gateway.startMs);
  if (signal.aborted) return undefined;
  refuseWithoutOperator(scenario, gateway);
  noteOtherMinutes(scenario, gateway, startMs);
  const bootsBefore = Math.floor(systemClock.now() / Seconds(1));
  const clock = new RunClock(gateway.startMs, flags.speed);
  const tally = new SimTally(new Set(gateway.macs.map(formatMac)));
  const listening = new AbortController();
  if (gateway.client !== null) await tally.listen(gateway.client, listening.signal);
  const actors = new LiveActors(gateway, bootsBefore);
  await actors.prepare(scenario);
  const play = new ScenarioPlay({
    scenario,
    seed,
    clock,
    startMs,
    macs: gateway.macs,
    openLink: mqttLinks(gateway.address, (mac) => gateway.secrets.get(mac) ?? ''),
    actors,
    bootsBefore,
    bugs: live.bugs,
    diary: (_mac, _atMs, entry) => tally.note(entry),
  });
  tally.locks = play.locks;
  const isOver = await playThrough({ play, scenario, clock, startMs, interrupted, flags });
  if (isOver) await arrived(play);
  await play.stop();
  await actors.close();
  await after(FINDINGS_SETTLE);
  listening.abort();
  if (actors.trouble !== undefined) throw actors.trouble;
  return isOver ? outcomeOf(live, gateway, play, tally) : undefined;
}

/**
 * When it starts: as soon as possible, shifted by whole minutes, since daily pings depend on the minute; or by whole
 * days where it depends on the hour.
 */
function startFrom(scenario: Scenario, earliestMs: number): number {
  const unit = scenario.isBoundToHours ? Days(1) : Minutes(1);
  return scenario.startMs + Math.ceil((earliestMs - scenario.startMs) / unit) * unit;
}

function refuseWithoutOperator({ events, file }: Scenario, { client }: SimGateway): void {
  if (client !== null) return;
  const needs = events.find(({ deviceEvent: { type } }) => type === 'command' || type === 'phone');
  if (needs === undefined) return;
  const why = `${JSON.stringify(needs.text)} needs the operator’s interface, unused with --secrets and mqtt://`;
  throw new LockgateError('input-scenario', `${file}:${needs.line}: ${why}: expected --gateway http://…`);
}

/** Locks of a file of secrets have their daily ping at the minute of their own MAC. */
function noteOtherMinutes(scenario: Scenario, { macs }: SimGateway, startMs: number): void {
  const shift = (startMs - scenario.startMs) / Minutes(1);
  const others = scenario.locks.filter(({ dailyPingMinute }, index) => {
    const minute = (((dailyPingMinute + shift) % 1440) + 1440) % 1440;
    return periodMinuteOf(macs[index] as Mac) !== minute;
  });
  if (others.length === 0) return;
  const names = others.map(({ name }) => name).join(', ');
  note(oneLine(`The daily ping of ${names} comes at the minute of the lock’s own MAC, not when the scenario says.`));
}

interface Through {
  readonly play: ScenarioPlay;
  readonly scenario: Scenario;
  readonly clock: RunClock;
  readonly startMs: number;
  readonly interrupted: Interruption;
  readonly flags: SimFlags;
}

/** Whether it reached its end. */
async function playThrough({ play, scenario, clock, startMs, interrupted, flags }: Through): Promise<boolean> {
  if (clock.now() >= startMs + Minutes(1)) {
    const message = 'the gateway took too long to add the locks, and the start has passed: expected a lower --speed';
    throw new LockgateError('gateway-slow', message);
  }
  const waits = (startMs - clock.now()) / flags.speed;
  if (waits > Seconds(10) && !flags.json)
    note(`It begins at ${toDate(startMs)} by the gateway's clock, in ${Math.ceil(waits / Seconds(1))} s.`);
  if (!(await until(startMs, clock, interrupted))) return false;
  const progress = new ProgressLine(() => `At ${momentText(scenario, scenario.startMs + clock.now() - startMs)}`);
  play.start();
  const isOver = await until(play.endMs, clock, interrupted);
  progress.end();
  return isOver;
}

async function until(atMs: number, clock: RunClock, { signal, happened }: Interruption): Promise<boolean> {
  let cancel = (): void => undefined;
  const come = new Promise<void>((resolve) => {
    const timer = clock.after(atMs - clock.now(), resolve);
    cancel = () => timer.cancel();
  });
  await Promise.race([come, happened]);
  cancel();
  return !signal.aborted;
}

/** Waits for pings that were made at the end and are still on their way. */
async function arrived(play: ScenarioPlay): Promise<void> {
  for (let waited = 0; play.unacknowledged > 0 && waited < ARRIVED_WITHIN; waited += LOOK_EVERY)
    await after(LOOK_EVERY);
}

async function after(span: Milliseconds): Promise<void> {
  await new Promise<void>((resolve) => void systemClock.after(span, resolve));
}

function outcomeOf(
  { flags, scenario, seed, repeat }: LiveScenario,
  gateway: SimGateway,
  play: ScenarioPlay,
  tally: SimTally,
): ScenarioOutcome {
  const pings = [...play.records.values()].reduce((sum, record) => sum + record.pings.length, 0);
  return {
    scenario,
    verdicts: checkScenario(scenario, play.records),
    findings: tally.findings,
    pings,
    unacknowledged: play.unacknowledged,
    records: play.records,
    run: { seed, virtual: false, speed: flags.speed, gateway: gateway.url },
    repeat,
  };
}
