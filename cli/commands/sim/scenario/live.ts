/**
 * Plays a scenario against a gateway, over MQTT. The operator interface sends the scenario's commands, creates
 * credentials for its phones and reports the gateway's findings. Expectations are checked against the diaries of the
 * simulated locks (their own records of every step), never against what the gateway reports.
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
import { formatDate } from '../../../../proto/wire/ping-json.js';
import type { Interruption } from '../../../terminal/interrupt.js';
import { printNote, sanitizeLine } from '../../../terminal/output.js';
import { ProgressLine } from '../../../terminal/progress-line.js';
import { bugNotes, printBugNotes } from '../bug-notes.js';
import type { SimFlags } from '../flags.js';
import { findGateway, type SimGateway } from '../gateway.js';
import { SimTally } from '../tally.js';
import { LiveActors } from './actors.js';
import type { ScenarioOutcome } from './report.js';

/** The real time until the scenario starts, in which the gateway adds the locks: a fixed part, and a part per lock. */
const PREPARATION_TIME: Milliseconds = Seconds(4);
const PREPARATION_TIME_PER_LOCK: Milliseconds = Seconds(0.05);
/** How long to wait in real time for the last pings to be acknowledged. */
const ARRIVAL_TIMEOUT: Milliseconds = Seconds(5);
const POLL_INTERVAL: Milliseconds = Seconds(0.05);
/** The scenario starts this late at most; daily pings depend on the minute. */
const MAX_START_DELAY: Milliseconds = Minutes(1);
const MINUTES_PER_DAY = Days(1) / Minutes(1);
/** How long to wait for the gateway's last findings after the locks have stopped. */
const FINDING_REPORT_TIMEOUT: Milliseconds = Seconds(0.3);

/** A scenario to play, and how. */
export interface LiveScenario {
  readonly flags: SimFlags;
  readonly scenario: Scenario;
  readonly seed: string;
  readonly bugs: readonly BugAssignment[];
  /** The command that repeats the run. */
  readonly repeat: string;
  readonly interrupted: Interruption;
}

/**
 * Plays the scenario to its end. Returns undefined if Ctrl-C ended it early.
 *
 * @throws LockgateError `input-scenario` if the scenario needs the operator interface but there is none, otherwise as
 * {@link findGateway}
 */
export async function playLive(live: LiveScenario): Promise<ScenarioOutcome | undefined> {
  const { flags, scenario, seed, interrupted } = live;
  const { signal } = interrupted;
  // findGateway calls the function below only if it chooses the MACs; with --secrets startMs stays 0.
  let startMs = 0;
  const gateway = await findGateway({ ...flags, locks: scenario.locks.length }, signal, (runMs) => {
    startMs = startFrom(
      scenario,
      runMs + (PREPARATION_TIME + PREPARATION_TIME_PER_LOCK * scenario.locks.length) * flags.speed,
    );
    return scenarioMacs(scenario, seed, startMs);
  });
  if (startMs === 0) startMs = startFrom(scenario, gateway.startMs);
  if (signal.aborted) return undefined;
  refuseWithoutOperator(scenario, gateway);
  warnOfDailyPingMinutes(scenario, gateway, startMs);
  // Boot numbers start at the current second, which never repeats: an uplink's key (boot and sequence) must be unique.
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
  if (!flags.json) printBugNotes(bugNotes(live.bugs, play.locks, 'scenario'), play.locks.length);
  const isFinished = await playThrough({ play, scenario, clock, startMs, interrupted, flags });
  if (isFinished) await waitForAcknowledgements(play);
  await play.stop();
  await actors.close();
  await after(FINDING_REPORT_TIMEOUT);
  listening.abort();
  if (actors.firstError !== undefined) throw actors.firstError;
  return isFinished ? outcomeOf(live, gateway, play, tally) : undefined;
}

/**
 * The start time of the live run: the scenario's start, shifted as little as possible. The shift is in whole minutes,
 * since daily pings depend on the minute, or in whole days if the scenario depends on the hour.
 */
function startFrom(scenario: Scenario, earliestMs: number): number {
  const unit = scenario.isBoundToHours ? Days(1) : Minutes(1);
  return scenario.startMs + Math.ceil((earliestMs - scenario.startMs) / unit) * unit;
}

/** @throws LockgateError `input-scenario` if an event needs the operator interface but there is none */
function refuseWithoutOperator({ events, file }: Scenario, { client }: SimGateway): void {
  if (client !== null) return;
  const operatorEvent = events.find(({ deviceEvent: { type } }) => type === 'command' || type === 'phone');
  if (operatorEvent === undefined) return;
  const why = `${JSON.stringify(operatorEvent.text)} needs the operator’s interface, unused with --secrets and mqtt://`;
  throw new LockgateError('input-scenario', `${file}:${operatorEvent.line}: ${why}: expected --gateway http://…`);
}

/** Warns if a lock's daily ping comes at another minute than in the scenario: the minute follows from the MAC. */
function warnOfDailyPingMinutes(scenario: Scenario, { macs }: SimGateway, startMs: number): void {
  const shiftMinutes = (startMs - scenario.startMs) / Minutes(1);
  const deviating = scenario.locks.filter(({ dailyPingMinute }, index) => {
    // The minute of the day; the second % makes the result positive if the shift is backwards.
    const minute = (((dailyPingMinute + shiftMinutes) % MINUTES_PER_DAY) + MINUTES_PER_DAY) % MINUTES_PER_DAY;
    return periodMinuteOf(macs[index] as Mac) !== minute;
  });
  if (deviating.length === 0) return;
  const names = deviating.map(({ name }) => name).join(', ');
  printNote(
    sanitizeLine(
      `The daily ping of ${names} comes at the minute that follows from the lock’s MAC, not at the scenario’s.`,
    ),
  );
}

/** What {@link playThrough} needs. */
interface PlayThrough {
  readonly play: ScenarioPlay;
  readonly scenario: Scenario;
  readonly clock: RunClock;
  readonly startMs: number;
  readonly interrupted: Interruption;
  readonly flags: SimFlags;
}

/** Plays the scenario, and returns whether it reached its end. */
async function playThrough({ play, scenario, clock, startMs, interrupted, flags }: PlayThrough): Promise<boolean> {
  if (clock.now() >= startMs + MAX_START_DELAY) {
    const message = 'the gateway took too long to add the locks, so the start has passed: expected a lower --speed';
    throw new LockgateError('gateway-slow', message);
  }
  const waitMs = (startMs - clock.now()) / flags.speed;
  if (waitMs > Seconds(10) && !flags.json)
    printNote(
      `The scenario starts at ${formatDate(startMs)} by the gateway's clock, in ${Math.ceil(waitMs / Seconds(1))} s.`,
    );
  if (!(await until(startMs, clock, interrupted))) return false;
  const progress = new ProgressLine(() => `At ${momentText(scenario, scenario.startMs + clock.now() - startMs)}`);
  play.start();
  const isFinished = await until(play.endMs, clock, interrupted);
  progress.end();
  return isFinished;
}

/** Waits until this time of the run's clock, or Ctrl-C. Returns false after Ctrl-C. */
async function until(atMs: number, clock: RunClock, { signal, happened }: Interruption): Promise<boolean> {
  let cancel = (): void => undefined;
  const reached = new Promise<void>((resolve) => {
    const timer = clock.after(atMs - clock.now(), resolve);
    cancel = () => timer.cancel();
  });
  await Promise.race([reached, happened]);
  cancel();
  return !signal.aborted;
}

/** Waits for the acknowledgements of pings that were made at the end. */
async function waitForAcknowledgements(play: ScenarioPlay): Promise<void> {
  for (let waited = 0; play.unacknowledged > 0 && waited < ARRIVAL_TIMEOUT; waited += POLL_INTERVAL)
    await after(POLL_INTERVAL);
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
