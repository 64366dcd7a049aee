/**
 * Sending of notices to a notify URL: `lockgate notices rotate-secret` and `notices test`, and what these share with
 * the commands for merchants' notify URLs.
 */
import type { Command } from 'commander';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { EXIT_CODE } from '../../terminal/exit-codes.js';
import { paint, print, printJson, printNote, sanitizeLine } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { agoText } from '../../terminal/time-text.js';
import { readSpan } from '../webhook/flags.js';

/** The flags of the commands for a notify URL. */
export type NotifyFlags = ConnectionFlags & { readonly json?: boolean };
/** The flags of a command that replaces a notify URL's secret: `grace` in seconds, or `now` for no grace. */
export type RotateFlags = NotifyFlags & { readonly grace?: number; readonly now?: boolean };

/** How sending to a notify URL goes, as the operator interface returns it. */
export interface SendingJson {
  /** The URL without its path, which may contain a secret. */
  readonly origin: string;
  readonly state: string;
  /** How many messages wait to be sent, and how many were given up after all attempts. */
  readonly pending: number;
  readonly dead: number;
  readonly last_success_at: string | null;
  readonly last_error: { readonly at: string; readonly status: number | null; readonly error: string } | null;
}

/** The result of a test message: `status` is null without an answer, `error` if the message was accepted. */
interface TestJson {
  readonly origin: string;
  readonly status: number | null;
  readonly duration_ms: number | null;
  readonly error: string | null;
}

/**
 * Adds the commands for the operators' notify URL to `lockgate notices`. Their actions read all flags of the command
 * line (`optsWithGlobals`), since `notices` itself has the flags --json, --gateway and so on, and gets their values.
 */
export function addSendingCommands(notices: Command): void {
  addGraceFlags(
    addClientFlags(
      notices
        .command('rotate-secret')
        .description('Make a new secret that signs sent notices (serve --notify-url), and print it once.'),
    ),
  )
    .addHelpText('after', '\nExample:\n  $ lockgate notices rotate-secret --grace 1h')
    .action((_flags: RotateFlags, command: Command) => rotate('/notices', command.optsWithGlobals()));
  addClientFlags(notices.command('test').description('Send a test message to the notify URL, and wait for the answer.'))
    .addHelpText('after', '\nExit codes: 0 it was accepted, 1 it was not, 3 the gateway refuses or can’t be reached.')
    .addHelpText('after', '\nExample:\n  $ lockgate notices test')
    .action((_flags: NotifyFlags, command: Command) => sendTestMessage('/notices/test', command.optsWithGlobals()));
}

/** Adds the flags of a command that replaces a secret. */
export function addGraceFlags(command: Command): Command {
  return command
    .option(
      '--grace <span>',
      'How long messages are also signed with the old secret, such as 90s, 1h or 2d (default: 24h).',
      readSpan,
    )
    .option('--now', 'Stop using all older secrets at once.');
}

async function rotate(path: string, flags: RotateFlags): Promise<void> {
  await rotateNotifySecret(`${path}/rotate-secret`, flags);
}

/** Replaces the secret by a request to this path of the operator interface, and prints the new secret. */
export async function rotateNotifySecret(path: string, flags: RotateFlags): Promise<void> {
  const { grace, now } = flags;
  if (now && grace !== undefined) throw new LockgateError('input-grace', '--grace and --now exclude each other');
  const seconds = now ? 0 : grace;
  const answer = await new GatewayClient(flags).post<{ notify_secret: string; old_secrets_until: readonly string[] }>(
    path,
    { ...(seconds !== undefined && { grace_seconds: seconds }) },
  );
  if (flags.json) return printJson(answer);
  print(`New signing secret of the notify URL: ${paint('bold', answer.notify_secret)}`);
  const [until] = answer.old_secrets_until;
  printNote(
    until === undefined
      ? 'The old secret is no longer used.'
      : `Messages are also signed with the old secret until ${until}.`,
  );
  printNote('The new secret is shown only once.');
}

/** Sends a test message by a request to this path. The exit code says whether the message was accepted. */
export async function sendTestMessage(path: string, flags: NotifyFlags): Promise<void> {
  const { origin, status, duration_ms: durationMs, error } = await postTest(path, flags);
  if (error !== null) process.exitCode = EXIT_CODE.negativeAnswer;
  if (flags.json) return printJson({ origin, status, duration_ms: durationMs, error });
  const took = durationMs === null ? '' : ` after ${durationMs} ms`;
  if (error === null) print(`${paint('green', '✓')} ${origin} answered ${status}${took}.`);
  else print(`${paint('red', '✗')} ${origin}: ${sanitizeLine(error)}${took}.`);
}

async function postTest(path: string, flags: NotifyFlags): Promise<TestJson> {
  return await new GatewayClient(flags).post<TestJson>(path, {});
}

/**
 * One line about sending: where to, whether it works, and the last error if it does not. `nowMs` is by the clock of the
 * gateway's machine.
 */
export function sendingText({ origin, state, pending, dead, ...sending }: SendingJson, nowMs: number): string {
  const { last_success_at: successAt, last_error: error } = sending;
  const counts = [pending > 0 ? `${pending} waiting` : '', dead > 0 ? `${dead} given up` : ''].filter(Boolean);
  const waiting = counts.length === 0 ? '' : `; ${counts.join(', ')}`;
  if (state === 'failing' && error !== null)
    return `${paint('red', '✗')} ${origin} fails (${agoText(error.at, nowMs)}): ${sanitizeLine(error.error)}${waiting}`;
  if (successAt === null) return `${origin}, nothing sent yet${waiting}`;
  return `${paint('green', '✓')} ${origin}, last ${agoText(successAt, nowMs)}${waiting}`;
}
