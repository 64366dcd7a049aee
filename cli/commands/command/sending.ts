/**
 * `lockgate command send`: parses the flags, asks for confirmation if necessary, sends the command, and waits for it.
 */
import { commandText } from '../../../gateway/console/wording/command-text.js';
import { Seconds, systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { confirm } from '../../terminal/confirmation.js';
import { EXIT_CODE } from '../../terminal/exit-codes.js';
import { print, printJson, printNote, sanitizeLine } from '../../terminal/output.js';
import { printTable } from '../../terminal/table.js';
import { type CommandJson, STATE_MARKS, stateText } from './listing.js';

/** The flags of `lockgate command send`. */
export interface SendFlags extends ConnectionFlags {
  readonly json?: boolean;
  readonly merchant?: string;
  readonly all?: boolean;
  readonly count?: number;
  readonly yes?: boolean;
  readonly seconds?: number;
  readonly mode?: string;
  readonly rideTracking?: string;
  readonly airplane?: string;
  readonly recovery?: string;
  readonly highWindow?: string;
  readonly utcOffset?: string;
  readonly expires?: string;
  readonly at?: string;
  readonly wait?: boolean;
}

/** The command for one lock, or its refusal. */
type Outcome =
  | CommandJson
  | { readonly mac: string; readonly error: { readonly code: string; readonly detail: string } };

/** The longest name of a person that the gateway accepts. */
const MAX_ASKED_BY_CHARACTERS = 100;
/** The interval at which --wait checks a command. */
const POLL_INTERVAL_MS = Seconds(0.25);

/** Sends a command. `words` are the MACs, then the type. */
export async function sendCommand(words: readonly string[], flags: SendFlags): Promise<void> {
  const client = new GatewayClient(flags);
  const body = await readBody(client, words, flags);
  const { commands } = await post(client, body, flags);
  const outcomes = flags.wait === true ? await waitForAll(client, commands, flags) : commands;
  if (flags.json) printJson({ commands: outcomes });
  else show(outcomes);
  const isSuccess = (outcome: Outcome): boolean => 'id' in outcome && (flags.wait !== true || outcome.state === 'done');
  process.exitCode = outcomes.every(isSuccess) ? EXIT_CODE.done : EXIT_CODE.negativeAnswer;
}

/** The body of the request: the command, and the locks that get it. */
async function readBody(client: GatewayClient, words: readonly string[], flags: SendFlags): Promise<object> {
  const type = words.at(-1) ?? '';
  const macs = words.slice(0, -1);
  const parameters = readParameters(flags);
  return {
    type,
    ...(Object.keys(parameters).length > 0 && { parameters }),
    ...(flags.all === true || flags.merchant !== undefined
      ? await readFleet(client, type, macs, flags)
      : { macs: requireMacs(macs, type), ...(flags.count !== undefined && { expected_count: flags.count }) }),
    ...(flags.expires !== undefined && { expires_in: readSpan(flags.expires) }),
    ...(flags.at !== undefined && { not_before: flags.at }),
    ...(flags.yes === true && { confirm_airplane: true }),
    asked_by: (process.env.USER ?? 'operator').slice(0, MAX_ASKED_BY_CHARACTERS),
  };
}

function requireMacs(macs: readonly string[], type: string): readonly string[] {
  if (macs.length > 0) return macs;
  const expected = `expected MACs and then the type, or --merchant NAME --all`;
  throw new LockgateError('input-command', `the lock is missing: ${expected}; got only ${JSON.stringify(type)}`);
}

/** Selects all locks of a merchant. The user must give their number by --count, or confirm it. */
async function readFleet(
  client: GatewayClient,
  type: string,
  macs: readonly string[],
  { merchant, all, count, yes }: SendFlags,
): Promise<object> {
  if (merchant === undefined || all !== true || macs.length > 0)
    throw new LockgateError('input-command', '--merchant NAME and --all must be used together, and without MACs');
  if (count !== undefined) return { merchant, all, expected_count: count };
  const { locks } = await client.get<{ locks: number }>(`/merchants/${encodeURIComponent(merchant)}/fleet`);
  if (yes !== true) {
    const question = `Send ${type} to ${locks.toLocaleString('en-US')} locks of ${merchant}? Type ${locks}: `;
    const withoutTerminal = `confirm with --count ${locks} that all ${locks} locks of ${merchant} get it`;
    await confirm({ question, expected: String(locks), withoutTerminal, notDone: 'nothing was sent' });
  }
  return { merchant, all, expected_count: locks };
}

/** Sends the command. The gateway requires confirmation of airplane mode and explains why. */
async function post(client: GatewayClient, body: object, flags: SendFlags): Promise<{ commands: Outcome[] }> {
  try {
    return await client.post('/commands', body);
  } catch (error) {
    if (!(error instanceof LockgateError) || error.code !== 'airplane-unconfirmed' || flags.yes === true) throw error;
    const withoutTerminal = `${error.message} (--yes)`;
    if (process.stdin.isTTY) printNote(sanitizeLine(error.message));
    const question = 'Switch airplane mode on? Type airplane: ';
    await confirm({ question, expected: 'airplane', withoutTerminal, notDone: 'nothing was sent' });
    return await client.post('/commands', { ...body, confirm_airplane: true });
  }
}

function readParameters(flags: SendFlags): Readonly<Record<string, unknown>> {
  const isOn = (text: string): boolean => text === 'on';
  if (flags.utcOffset !== undefined && flags.highWindow === undefined)
    throw new LockgateError('input-command', '--utc-offset requires --high-window');
  return {
    ...(flags.seconds !== undefined && { seconds: flags.seconds }),
    ...(flags.mode !== undefined && { mode: flags.mode }),
    ...(flags.rideTracking !== undefined && { ride_tracking: isOn(flags.rideTracking) }),
    ...(flags.airplane !== undefined && { airplane: isOn(flags.airplane) }),
    ...(flags.recovery !== undefined && { recovery: isOn(flags.recovery) }),
    ...(flags.highWindow !== undefined && { high_window: readWindow(flags.highWindow, flags.utcOffset ?? '+00:00') }),
  };
}

function readWindow(text: string, offset: string): object {
  const [from, to, ...more] = text.split('-');
  if (to === undefined || more.length > 0)
    throw new LockgateError(
      'input-command',
      `--high-window is ${JSON.stringify(text)}: expected a window such as 07:00-19:00`,
    );
  return { from, to, utc_offset_minutes: readOffset(offset) };
}

/** Parses an offset such as `+01:00`. Returns minutes. */
function readOffset(text: string): number {
  const match = /^([+-])(\d\d):([0-5]\d)$/.exec(text);
  if (match === null)
    throw new LockgateError(
      'input-command',
      `--utc-offset is ${JSON.stringify(text)}: expected an offset such as +01:00`,
    );
  const minutes = Number(match[2]) * 60 + Number(match[3]);
  return match[1] === '-' ? -minutes : minutes;
}

const SECONDS_PER_UNIT: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Parses a span. Returns seconds. */
function readSpan(text: string): number {
  const match = /^(\d{1,7})([smhd])$/.exec(text);
  if (match !== null) return Number(match[1]) * (SECONDS_PER_UNIT[match[2] ?? ''] ?? 1);
  throw new LockgateError(
    'input-command',
    `--expires is ${JSON.stringify(text)}: expected a span such as 90s, 10m or 6h`,
  );
}

function show(outcomes: readonly Outcome[]): void {
  const [only, ...others] = outcomes;
  if (only === undefined) printNote('No lock matches: nothing was sent.');
  else if (others.length === 0) print(sanitizeLine(outcomeText(only)));
  else showTable(outcomes);
}

function showTable(outcomes: readonly Outcome[]): void {
  printTable(outcomes, [
    { title: 'MAC', show: (row) => row.mac },
    { title: 'ID', show: (row) => ('id' in row ? String(row.id) : '–'), neverCut: true },
    {
      title: 'STATE',
      show: (row) => ('id' in row ? stateText(row) : row.error.detail),
      mark: (row) => ('id' in row ? STATE_MARKS[row.state] : 'bad'),
      prose: true,
    },
  ]);
}

function outcomeText(outcome: Outcome): string {
  if ('error' in outcome) return `${outcome.mac}: ${outcome.error.detail}`;
  return `Command ${outcome.id}, ${commandText(outcome)} for ${outcome.mac}: ${stateText(outcome)}`;
}

/** Waits until every command is finished, and prints each change of what it is waiting for. */
async function waitForAll(client: GatewayClient, commands: Outcome[], flags: SendFlags): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  let lastPrinted = '';
  for (const outcome of commands) {
    let latest = outcome;
    while ('id' in latest && (latest.state === 'queued' || latest.state === 'sent')) {
      const text = stateText(latest);
      if (!flags.json && text !== lastPrinted) printNote(sanitizeLine(`Command ${latest.id}: ${text}`));
      lastPrinted = text;
      await new Promise<void>((resolve) => systemClock.after(POLL_INTERVAL_MS, resolve));
      latest = await client.get<CommandJson>(`/commands/${latest.id}`);
    }
    outcomes.push(latest);
  }
  return outcomes;
}
