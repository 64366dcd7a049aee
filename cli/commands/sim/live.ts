/** Runs a fleet against a gateway over MQTT, with its progress, and reports the result. */
import { FaultNetwork } from '../../../firmware-sim/faults/fault-network.js';
import { Fleet } from '../../../firmware-sim/fleet/fleet.js';
import { mqttLinks } from '../../../firmware-sim/link/mqtt-link.js';
import { readOpenFileLimit } from '../../../gateway/network/descriptor-limit.js';
import { Days, type Milliseconds, RunClock, Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { Interruption } from '../../terminal/interrupt.js';
import { note, print, printJson } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import type { FleetPlan, SimFlags } from './flags.js';
import { findGateway, type SimGateway } from './gateway.js';
import { describeRun, plural, repeatCommand, runToJson } from './summary.js';
import { SimTally } from './tally.js';

/**
 * The interval between the starts of two locks, so that they don't all connect at once: its maximum in the run's time,
 * its value in real time, and the real time within which the largest fleet has started.
 */
const START_EVERY: { readonly mostOfRun: Milliseconds; readonly real: Milliseconds; readonly all: Milliseconds } = {
  mostOfRun: Seconds(10),
  real: 5,
  all: Seconds(30),
};
/** Open files of the process besides one connection per lock. */
const OTHER_FILES = 64;
/** How often the progress is logged where standard error is not a terminal. */
const NOTED_EVERY = Seconds(10);
/** How long findings may take to be reported after the locks have stopped. */
const FINDINGS_SETTLE = Seconds(0.3);

/** Runs until the days are over, or Ctrl-C. @throws LockgateError as {@link findGateway} */
export async function runLive(flags: SimFlags, plan: FleetPlan, interrupted: Interruption): Promise<void> {
  const gateway = await findGateway(flags, interrupted.signal);
  if (interrupted.signal.aborted) {
    process.exitCode = interrupted.exitCode;
    return;
  }
  if (!flags.json) note(`${describeRun(flags, gateway.macs.length)}, against ${gateway.url}. Press Ctrl-C to stop.`);
  warnOfFiles(gateway.macs.length);
  const memoryBefore = peakMemoryBytes();
  const listening = new AbortController();
  const tally = new SimTally(new Set(gateway.macs.map(formatMac)));
  const clock = new RunClock(gateway.startMs, flags.speed);
  const network =
    plan.faults.length === 0 ? undefined : new FaultNetwork({ seed: flags.seed, clock, faults: plan.faults });
  const fleet = fleetOf({ flags, plan, gateway, clock, tally, network });
  tally.locks = fleet.locks;
  if (gateway.client !== null) await tally.listen(gateway.client, listening.signal);
  const progressDisplay = showProgress(tally);
  fleet.start();
  await waitForEnd(interrupted, clock, flags.days);
  progressDisplay.end();
  network?.stopFaults();
  note(`Stopping ${plural(gateway.macs.length, 'lock')}.`);
  const kept = tally.kept;
  const memory = peakMemoryBytes() - memoryBefore;
  await fleet.stop();
  if (gateway.client !== null) await new Promise<void>((resolve) => void systemClock.after(FINDINGS_SETTLE, resolve));
  listening.abort();
  report(flags, gateway, { tally, kept, memoryPerLock: Math.round(memory / gateway.macs.length) });
  // Ctrl-C is the normal end of a run without --days.
  if (interrupted.signal.aborted && flags.days !== undefined) process.exitCode = interrupted.exitCode;
}

/**
 * The peak memory of this process. Its current memory would have to be read from a file, which needs a free descriptor.
 */
function peakMemoryBytes(): number {
  return process.resourceUsage().maxRSS * 1024;
}

/** Each connected lock needs an open file: warns where the limit is too low. */
function warnOfFiles(locks: number): void {
  const most = readOpenFileLimit();
  const needed = locks + OTHER_FILES;
  if (most === undefined || most >= needed) return;
  const why = `${plural(locks, 'lock')} may need as many connections at once, and this process may open ${most} files`;
  note(`${why}: raise the limit with "ulimit -n ${needed}", or some locks can't connect.`);
}

interface FleetParts {
  readonly flags: SimFlags;
  readonly plan: FleetPlan;
  readonly gateway: SimGateway;
  readonly clock: RunClock;
  readonly tally: SimTally;
  readonly network: FaultNetwork | undefined;
}

function fleetOf({ flags, plan, gateway, clock, tally, network }: FleetParts): Fleet {
  const open = mqttLinks(gateway.address, (mac) => gateway.secrets.get(mac) ?? '');
  return new Fleet({
    seed: flags.seed,
    clock,
    macs: gateway.macs,
    pace: flags.pace,
    openLink: network?.wrap(open) ?? open,
    diary: (_mac, _atMs, entry) => tally.note(entry),
    bugs: plan.bugs,
    startEvery: Math.min(
      START_EVERY.mostOfRun,
      Math.min(START_EVERY.real, START_EVERY.all / gateway.macs.length) * flags.speed,
    ),
    // Their flash is lost with the process, and an uplink key must never be used twice: the current second never
    // repeats.
    bootsBefore: Math.floor(systemClock.now() / Seconds(1)),
    ...(plan.mix && { mix: plan.mix }),
    ...(plan.city && { city: plan.city }),
    ...(plan.path && { path: plan.path }),
  });
}

/** Shows the progress: continuously on a terminal, from time to time in a log. */
export function showProgress(tally: SimTally): { end(): void } {
  if (process.stderr.isTTY) return new ProgressLine(() => tally.progress());
  let timer: Timer;
  const noteNext = (): void => {
    timer = systemClock.after(NOTED_EVERY, () => {
      note(tally.progress());
      noteNext();
    });
  };
  noteNext();
  return { end: () => timer.cancel() };
}

async function waitForEnd({ happened }: Interruption, clock: RunClock, days: number | undefined): Promise<void> {
  if (days === undefined) return await happened;
  let timer: Timer | undefined;
  const over = new Promise<void>((resolve) => {
    timer = clock.after(Days(days), resolve);
  });
  await Promise.race([happened, over]);
  timer?.cancel();
}

interface Outcome {
  readonly tally: SimTally;
  readonly kept: number;
  /** The growth of the process since before there were locks, bytes per lock, the run's garbage included. */
  readonly memoryPerLock: number;
}

function report(flags: SimFlags, gateway: SimGateway, { tally, kept, memoryPerLock }: Outcome): void {
  const locks = gateway.macs.length;
  if (flags.json) {
    printJson({
      ...runToJson(flags, locks),
      gateway: gateway.url,
      ...tally.toJson(),
      kept,
      memory_bytes_per_lock: memoryPerLock,
      repeat: repeatCommand(flags),
    });
    return;
  }
  print(`${describeRun(flags, locks)}: ${tally.line(kept)}`);
  print(`Memory: ${memoryPerLock.toLocaleString('en-US')} bytes per lock`);
  print(`Repeat with: ${repeatCommand(flags)}`);
}
