/** Runs a fleet against a gateway over MQTT, shows progress, and reports the result. */
import { FaultNetwork } from '../../../firmware-sim/faults/fault-network.js';
import { Fleet } from '../../../firmware-sim/fleet/fleet.js';
import { mqttLinks } from '../../../firmware-sim/link/mqtt-link.js';
import { readOpenFileLimit } from '../../../gateway/network/descriptor-limit.js';
import { Days, type Milliseconds, RunClock, Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { Interruption } from '../../terminal/interrupt.js';
import { print, printJson, printNote } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { type BugNote, bugNotes, printBugNotes } from './bug-notes.js';
import type { FleetPlan, SimFlags } from './flags.js';
import { findGateway, type SimGateway } from './gateway.js';
import { describeRun, plural, repeatCommand, runToJson } from './summary.js';
import { SimTally } from './tally.js';

/** Locks start one after another, so that they don't all connect at once. The maximum interval in simulated time. */
const MAX_SIMULATED_START_INTERVAL: Milliseconds = Seconds(10);
/** The maximum interval between the starts of two locks in real time. */
const MAX_REAL_START_INTERVAL: Milliseconds = Seconds(0.005);
/** The real time within which all locks start. */
const MAX_STARTING_TIME: Milliseconds = Seconds(30);
/** The number of open files that the process needs in addition to one connection per lock. */
const OTHER_OPEN_FILES = 64;
/** The interval of progress lines if standard error is not a terminal. */
const PROGRESS_INTERVAL_MS = Seconds(10);
/** How long to wait for the gateway's last findings after the locks have stopped. */
const FINDING_REPORT_TIMEOUT_MS = Seconds(0.3);

/** Runs the fleet for --days, or until Ctrl-C. @throws LockgateError as {@link findGateway} */
export async function runLive(flags: SimFlags, plan: FleetPlan, interrupted: Interruption): Promise<void> {
  const gateway = await findGateway(flags, interrupted.signal);
  if (interrupted.signal.aborted) {
    process.exitCode = interrupted.exitCode;
    return;
  }
  if (!flags.json)
    printNote(`${describeRun(flags, gateway.macs.length)}, against ${gateway.url}. Press Ctrl-C to stop.`);
  warnOfOpenFileLimit(gateway.macs.length);
  const memoryBefore = peakMemoryBytes();
  const listening = new AbortController();
  const tally = new SimTally(new Set(gateway.macs.map(formatMac)));
  const clock = new RunClock(gateway.startMs, flags.speed);
  const network =
    plan.faults.length === 0 ? undefined : new FaultNetwork({ seed: flags.seed, clock, faults: plan.faults });
  const fleet = fleetOf({ flags, plan, gateway, clock, tally, network });
  tally.locks = fleet.locks;
  const notes = bugNotes(plan.bugs, fleet.locks, { pace: flags.pace, days: flags.days ?? null, hasGateway: true });
  if (!flags.json) printBugNotes(notes, fleet.locks.length);
  if (gateway.client !== null) await tally.listen(gateway.client, listening.signal);
  const progressDisplay = showProgress(tally);
  fleet.start();
  await waitForEnd(interrupted, clock, flags.days);
  progressDisplay.end();
  network?.stopFaults();
  printNote(`Stopping ${plural(gateway.macs.length, 'lock')}.`);
  const unacknowledged = tally.unacknowledged;
  const memory = peakMemoryBytes() - memoryBefore;
  tally.end();
  await fleet.stop();
  if (gateway.client !== null)
    await new Promise<void>((resolve) => void systemClock.after(FINDING_REPORT_TIMEOUT_MS, resolve));
  listening.abort();
  report(flags, gateway, { tally, notes, unacknowledged, memoryPerLock: Math.round(memory / gateway.macs.length) });
  // Ctrl-C is the normal end of a run without --days.
  if (interrupted.signal.aborted && flags.days !== undefined) process.exitCode = interrupted.exitCode;
}

/** The peak memory of this process. The current memory can't be read when no file descriptor is free. */
function peakMemoryBytes(): number {
  // Node gives the figure in KiB.
  return process.resourceUsage().maxRSS * 1024;
}

/** Warns if the process may not open enough files: each connected lock needs one. */
function warnOfOpenFileLimit(locks: number): void {
  const limit = readOpenFileLimit();
  const needed = locks + OTHER_OPEN_FILES;
  if (limit === undefined || limit >= needed) return;
  const why = `${plural(locks, 'lock')} may need as many connections, but this process may open only ${limit} files`;
  printNote(`${why}: raise the limit with "ulimit -n ${needed}", or some locks can't connect.`);
}

/** What {@link fleetOf} needs. */
interface FleetParts {
  readonly flags: SimFlags;
  readonly plan: FleetPlan;
  readonly gateway: SimGateway;
  readonly clock: RunClock;
  readonly tally: SimTally;
  readonly network: FaultNetwork | undefined;
}

function fleetOf({ flags, plan, gateway, clock, tally, network }: FleetParts): Fleet {
  const openLink = mqttLinks(gateway.address, (mac) => gateway.secrets.get(mac) ?? '');
  return new Fleet({
    seed: flags.seed,
    clock,
    macs: gateway.macs,
    pace: flags.pace,
    openLink: network?.wrap(openLink) ?? openLink,
    // Called with everything that a lock does, such as sending a ping.
    diary: (_mac, _atMs, entry) => tally.note(entry),
    bugs: plan.bugs,
    startEvery: startIntervalOf(gateway.macs.length, flags.speed),
    // Boot numbers are not stored between runs. They start at the current second, which never repeats, because the key
    // (boot and sequence) of an uplink, a message of a lock, must be unique.
    bootsBefore: Math.floor(systemClock.now() / Seconds(1)),
    ...(plan.mix && { mix: plan.mix }),
    ...(plan.city && { city: plan.city }),
    ...(plan.path && { path: plan.path }),
  });
}

/** The interval between the starts of two locks, in simulated time. */
function startIntervalOf(locks: number, speed: number): Milliseconds {
  const realInterval = Math.min(MAX_REAL_START_INTERVAL, MAX_STARTING_TIME / locks);
  return Math.min(MAX_SIMULATED_START_INTERVAL, realInterval * speed);
}

/** Shows progress: a line that changes on a terminal, otherwise a line from time to time. */
export function showProgress(tally: SimTally): { end(): void } {
  if (process.stderr.isTTY) return new ProgressLine(() => tally.progress());
  let timer: Timer;
  const scheduleNext = (): void => {
    timer = systemClock.after(PROGRESS_INTERVAL_MS, () => {
      printNote(tally.progress());
      scheduleNext();
    });
  };
  scheduleNext();
  return { end: () => timer.cancel() };
}

/** Waits until --days have passed, or for Ctrl-C. */
async function waitForEnd({ happened }: Interruption, clock: RunClock, days: number | undefined): Promise<void> {
  if (days === undefined) return await happened;
  let timer: Timer | undefined;
  const endReached = new Promise<void>((resolve) => {
    timer = clock.after(Days(days), resolve);
  });
  await Promise.race([happened, endReached]);
  timer?.cancel();
}

/** What the report shows. */
interface Outcome {
  readonly tally: SimTally;
  readonly notes: readonly BugNote[];
  /** Unacknowledged uplinks of the locks when the run ended. */
  readonly unacknowledged: number;
  /** The growth of the process's memory since before the locks were created, bytes per lock, including garbage. */
  readonly memoryPerLock: number;
}

function report(flags: SimFlags, gateway: SimGateway, { tally, notes, unacknowledged, memoryPerLock }: Outcome): void {
  const locks = gateway.macs.length;
  if (flags.json) {
    printJson({
      ...runToJson(flags, locks),
      bug_locks: notes,
      gateway: gateway.url,
      ...tally.toJson(),
      kept: unacknowledged,
      memory_bytes_per_lock: memoryPerLock,
      repeat: repeatCommand(flags),
    });
    return;
  }
  print(`${describeRun(flags, locks)}: ${tally.line(unacknowledged)}`);
  print(`Memory: ${memoryPerLock.toLocaleString('en-US')} bytes per lock`);
  print(`Repeat with: ${repeatCommand(flags)}`);
}
