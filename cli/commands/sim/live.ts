/** A fleet against a running gateway, over MQTT: how it stands, all the while, and how it went. */
import { FaultNetwork } from '../../../firmware-sim/faults/fault-network.js';
import { Fleet } from '../../../firmware-sim/fleet/fleet.js';
import { mqttLinks } from '../../../firmware-sim/link/mqtt-link.js';
import { mostOpenFiles } from '../../../gateway/network/descriptor-limit.js';
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
 * Between one lock's start and the next, so that they don't all connect at once: at most, in real time, and so that the
 * largest fleet has started within half a minute.
 */
const START_EVERY: { readonly mostOfRun: Milliseconds; readonly real: Milliseconds; readonly all: Milliseconds } = {
  mostOfRun: Seconds(10),
  real: 5,
  all: Seconds(30),
};
/** Files that the process has open besides one connection for each lock. */
const OTHER_FILES = 64;
/** How often the state of things is told where no terminal shows it all the time. */
const TOLD_EVERY = Seconds(10);
/** How long findings may take to be told of once the locks are silent. */
const FINDINGS_SETTLE = Seconds(0.3);

/** Runs until the days are over, or Ctrl-C. @throws LockgateError as {@link findGateway} */
export async function runLive(flags: SimFlags, plan: FleetPlan, interrupted: Interruption): Promise<void> {
  const gateway = await findGateway(flags, interrupted.signal);
  if (interrupted.signal.aborted) {
    process.exitCode = interrupted.exitCode;
    return;
  }
  if (!flags.json) note(`${describeRun(flags, gateway.macs.length)}, against ${gateway.url}. Ctrl-C ends it.`);
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
  const shown = showing(tally);
  fleet.start();
  await overOr(interrupted, clock, flags.days);
  shown.end();
  network?.calm();
  note(`Stopping ${plural(gateway.macs.length, 'lock')}.`);
  const kept = tally.kept;
  const memory = peakMemoryBytes() - memoryBefore;
  await fleet.stop();
  if (gateway.client !== null) await new Promise<void>((resolve) => void systemClock.after(FINDINGS_SETTLE, resolve));
  listening.abort();
  report(flags, gateway, { tally, kept, memoryPerLock: Math.round(memory / gateway.macs.length) });
  // A run without days has no other end: this one is as it should be.
  if (interrupted.signal.aborted && flags.days !== undefined) process.exitCode = interrupted.exitCode;
}

/** The most that this process has had in memory. What it has now is read from a file, and there may be none to open. */
function peakMemoryBytes(): number {
  return process.resourceUsage().maxRSS * 1024;
}

/** A lock that is connected is an open file: says what to do where they can't all be. */
function warnOfFiles(locks: number): void {
  const most = mostOpenFiles();
  const needed = locks + OTHER_FILES;
  if (most === undefined || most >= needed) return;
  const why = `${plural(locks, 'lock')} may need as many connections at once, and this process may open ${most} files`;
  note(`${why}: raise the limit with "ulimit -n ${needed}", or those beyond it can't connect.`);
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
    // Their flash is gone with the process, and a name that was used must not be used again: seconds never repeat.
    bootsBefore: Math.floor(systemClock.now() / Seconds(1)),
    ...(plan.mix && { mix: plan.mix }),
    ...(plan.city && { city: plan.city }),
    ...(plan.path && { path: plan.path }),
  });
}

/** A terminal sees it all the time, a log now and then. */
export function showing(tally: SimTally): { end(): void } {
  if (process.stderr.isTTY) return new ProgressLine(() => tally.progress());
  let timer: Timer;
  const tell = (): void => {
    timer = systemClock.after(TOLD_EVERY, () => {
      note(tally.progress());
      tell();
    });
  };
  tell();
  return { end: () => timer.cancel() };
}

async function overOr({ happened }: Interruption, clock: RunClock, days: number | undefined): Promise<void> {
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
  /** By how many bytes the process has grown since before there were locks, for each: the garbage of the run too. */
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
  print(`Again: ${repeatCommand(flags)}`);
}
