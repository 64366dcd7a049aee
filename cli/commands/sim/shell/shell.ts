/** `lockgate sim shell`: creates a simulated lock, and lets the user control it. */

import { fleetMacs } from '../../../../firmware-sim/fleet/fleet.js';
import { parseMix } from '../../../../firmware-sim/fleet/mix.js';
import { DATE_EXPECTED, parseDate } from '../../../../proto/date.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import { DEFAULT_POWER } from '../../../../proto/wire/ping.js';
import { formatDate, isDatable } from '../../../../proto/wire/ping-json.js';
import { untilInterrupted } from '../../../terminal/interrupt.js';
import { printNote } from '../../../terminal/output.js';
import type { SimFlags } from '../flags.js';
import { findGateway } from '../gateway.js';
import { liveDevice, type ShellDevice, type ShellInitialState, virtualDevice } from './device.js';
import { ShellSession } from './session.js';
import { runScript, runTerminal } from './terminal.js';
import { ShellTranscript } from './transcript.js';

/** The flags of `lockgate sim shell`. */
export interface ShellFlags
  extends Pick<SimFlags, 'seed' | 'gateway' | 'token' | 'data' | 'speed' | 'secrets' | 'merchant' | 'ca' | 'json'> {
  /** The lock's first power settings, words such as `high+ride`. */
  readonly settings: string;
  /** The battery's first charge in percent. */
  readonly battery: number;
  /** The date at which a lock without a gateway starts, RFC 3339. */
  readonly start?: string;
  /** Whether typed lines are stored for later sessions. */
  readonly history: boolean;
}

/** A fixed Monday morning, so that a session can be repeated. */
const DEFAULT_START = '2026-01-05T08:00:00Z';

/** Runs the shell to its end. @throws LockgateError `input-…` for a wrong flag or line, or the gateway's error */
export async function runShell(flags: ShellFlags): Promise<void> {
  const interrupted = untilInterrupted();
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const asJson = flags.json ?? false;
  let transcript: ShellTranscript | undefined;
  const device = await makeDevice(flags, interrupted.signal, (mac) => {
    transcript = new ShellTranscript(mac, asJson);
    return transcript;
  });
  if (device === null || transcript === undefined) {
    process.exitCode = interrupted.exitCode;
    return;
  }
  transcript.start(device.nowMs(), device.lock.state);
  const session = new ShellSession({ device, transcript, asJson, waitsForQuiet: device.url === null || !isTerminal });
  if (isTerminal && !asJson) greet(device);
  transcript.isShown = true;
  try {
    device.lock.start();
    if (device.url === null) await session.waitUntilQuiet(interrupted.signal);
    if (isTerminal) await runTerminal({ session, transcript, keepsHistory: flags.history, interrupted });
    else await runScript(session, interrupted);
  } finally {
    transcript.isShown = false;
    await device.stop();
  }
}

/** Creates the lock: live if a flag names a gateway, otherwise virtual. Returns null after Ctrl-C. */
async function makeDevice(
  flags: ShellFlags,
  signal: AbortSignal,
  makeTranscript: (mac: Mac) => ShellTranscript,
): Promise<ShellDevice | null> {
  const initialState = readInitialState(flags);
  const isLive = [flags.gateway, flags.data, flags.secrets, flags.merchant, flags.token].some(
    (flag) => flag !== undefined,
  );
  if (!isLive) {
    if (flags.speed !== 1)
      throw new LockgateError(
        'input-shell',
        '--speed requires --gateway: without a gateway time does not pass by itself',
      );
    const mac = fleetMacs(flags.seed, 1)[0] as Mac;
    return virtualDevice(initialState, readStart(flags.start ?? DEFAULT_START), makeTranscript(mac).note);
  }
  if (flags.start !== undefined)
    throw new LockgateError('input-shell', '--start can’t be used with --gateway: a live lock starts now');
  const unusedFlags = { pace: 'everyday', bug: [], fault: [] } as const;
  const gateway = await findGateway({ ...flags, ...unusedFlags, locks: 1 }, signal);
  const mac = gateway.macs[0];
  if (signal.aborted || mac === undefined) return null;
  const { address, url, startMs, client } = gateway;
  const connection = { address, url, mac, secret: gateway.secrets.get(mac) ?? '', startMs, speed: flags.speed, client };
  return liveDevice(initialState, connection, makeTranscript(mac).note);
}

function readInitialState({ settings, battery, seed }: ShellFlags): ShellInitialState {
  const [part, ...more] = parseMix(settings);
  if (part === undefined || more.length > 0)
    throw new LockgateError(
      'input-shell',
      `--settings is "${settings}": expected the settings of one lock, such as high+ride`,
    );
  const { power = DEFAULT_POWER, batteryPercent = battery } = part.initial;
  return { seed, power, batteryPercent };
}

function readStart(text: string): number {
  const startMs = parseDate(text);
  if (!Number.isNaN(startMs) && isDatable(startMs)) return startMs;
  throw new LockgateError('input-shell', `--start is "${text}": expected ${DATE_EXPECTED}`);
}

/** Prints the first lines of an interactive session. */
function greet(device: ShellDevice): void {
  // The time to the minute: `2026-01-05T08:00`.
  const timeOrUrl = device.url === null ? `it is ${formatDate(device.nowMs()).slice(0, 16)}Z` : `at ${device.url}`;
  printNote(`A lock, ${formatMac(device.mac)}; ${timeOrUrl}. Press Ctrl-D to quit.`);
  printNote('Try steal, unlock, ride 2km, battery 9, state. Tab completes, help lists all verbs.');
}
