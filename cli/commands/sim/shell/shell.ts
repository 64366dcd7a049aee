/** What `lockgate sim shell` does: makes a lock, and lets whoever types drive it. */

import { fleetMacs } from '../../../../firmware-sim/fleet/fleet.js';
import { parseMix } from '../../../../firmware-sim/fleet/mix.js';
import { DATE_EXPECTED, parseDate } from '../../../../proto/date.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import { DEFAULT_POWER } from '../../../../proto/wire/ping.js';
import { isDatable, toDate } from '../../../../proto/wire/ping-json.js';
import { untilInterrupted } from '../../../terminal/interrupt.js';
import { note } from '../../../terminal/output.js';
import type { SimFlags } from '../flags.js';
import { findGateway } from '../gateway.js';
import { ShellSession } from './session.js';
import { liveSite, type ShellBeginning, type ShellSite, virtualSite } from './site.js';
import { ShellTape } from './tape.js';
import { runScript, runTerminal } from './terminal.js';

/** What `lockgate sim shell` can be told. */
export interface ShellFlags
  extends Pick<SimFlags, 'seed' | 'gateway' | 'token' | 'data' | 'speed' | 'secrets' | 'merchant' | 'ca' | 'json'> {
  readonly settings: string;
  readonly battery: number;
  readonly start?: string;
  readonly history: boolean;
}

/** A Monday morning, in the high window; not today, so that a session repeats. */
const DEFAULT_START = '2026-01-05T08:00:00Z';

/** Runs the shell to its end. @throws LockgateError `input-…` for a flag or a line, or what the gateway says */
export async function runShell(flags: ShellFlags): Promise<void> {
  const interrupted = untilInterrupted();
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const asJson = flags.json ?? false;
  let tape: ShellTape | undefined;
  const site = await makeSite(flags, interrupted.signal, (mac) => {
    tape = new ShellTape(mac, asJson);
    return tape;
  });
  if (site === null || tape === undefined) {
    process.exitCode = interrupted.exitCode;
    return;
  }
  tape.begin(site.nowMs(), site.lock.state);
  const session = new ShellSession({ site, tape, asJson, waitsForQuiet: site.url === null || !isTerminal });
  if (isTerminal && !asJson) greet(site);
  tape.isShown = true;
  try {
    site.lock.start();
    if (site.url === null) await session.quiet(interrupted.signal);
    if (isTerminal) await runTerminal({ session, tape, keepsHistory: flags.history, interrupted });
    else await runScript(session, interrupted);
  } finally {
    tape.isShown = false;
    await site.stop();
  }
}

async function makeSite(
  flags: ShellFlags,
  signal: AbortSignal,
  makeTape: (mac: Mac) => ShellTape,
): Promise<ShellSite | null> {
  const beginning = readBeginning(flags);
  const isLive = [flags.gateway, flags.data, flags.secrets, flags.merchant, flags.token].some(
    (flag) => flag !== undefined,
  );
  if (!isLive) {
    if (flags.speed !== 1)
      throw new LockgateError('input-shell', '--speed goes with --gateway: without one time jumps');
    const mac = fleetMacs(flags.seed, 1)[0] as Mac;
    return virtualSite(beginning, readStart(flags.start ?? DEFAULT_START), makeTape(mac).told);
  }
  if (flags.start !== undefined)
    throw new LockgateError('input-shell', '--start goes without --gateway: a live lock begins now');
  const none = { pace: 'everyday', bug: [], fault: [] } as const;
  const gateway = await findGateway({ ...flags, ...none, locks: 1 }, signal);
  const mac = gateway.macs[0];
  if (signal.aborted || mac === undefined) return null;
  const { address, url, startMs, client } = gateway;
  const line = { address, url, mac, secret: gateway.secrets.get(mac) ?? '', startMs, speed: flags.speed, client };
  return liveSite(beginning, line, makeTape(mac).told);
}

function readBeginning({ settings, battery, seed }: ShellFlags): ShellBeginning {
  const [part, ...more] = parseMix(settings);
  if (part === undefined || more.length > 0)
    throw new LockgateError(
      'input-shell',
      `--settings is "${settings}": expected those of one lock, such as high+ride`,
    );
  const { power = DEFAULT_POWER, batteryPercent = battery } = part.begins;
  return { seed, power, batteryPercent };
}

function readStart(text: string): number {
  const startMs = parseDate(text);
  if (!Number.isNaN(startMs) && isDatable(startMs)) return startMs;
  throw new LockgateError('input-shell', `--start is "${text}": expected ${DATE_EXPECTED}`);
}

function greet(site: ShellSite): void {
  const where = site.url === null ? `it is ${toDate(site.nowMs()).slice(0, 16)}Z` : `at ${site.url}`;
  note(`A lock, ${formatMac(site.mac)}; ${where}. Ctrl-D ends.`);
  note('Try steal, unlock, ride 2km, battery 9, state. Tab completes, help lists all.');
}
