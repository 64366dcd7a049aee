/** `lockgate user add|list`: manages merchants' users. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../client.js';
import { paint, print, printJson, printNote } from '../terminal/output.js';
import { addClientFlags } from '../terminal/shared-flags.js';
import { printTable } from '../terminal/table.js';
import { agoText } from '../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../terminal/watch.js';

type Flags = ConnectionFlags & { readonly json?: boolean; readonly merchant?: string };

interface AddFlags extends Flags {
  readonly email?: string;
  readonly passwordFile?: string;
}

interface UserJson {
  /** An int64, as a string because a JavaScript number can't represent it. */
  readonly id: string;
  readonly username: string | null;
  readonly merchant: string;
  readonly email: string | null;
  readonly has_password: boolean;
  readonly created_at: string;
}

/** The length of generated passwords, in random bytes. */
const PASSWORD_BYTES = 18;

/** Adds the group to the program. */
export function addUserCommands(program: Command): void {
  const user = program.command('user').description('Manage merchants’ users, who log in over HTTP.');
  addClientFlags(user.command('add').description('Add a user, and print a generated password once.'))
    .argument('<username>', 'The login name.')
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .option('--email <address>', 'The user’s email address.')
    .option(
      '--password-file <file>',
      'A file whose first line is the password; - for stdin (default: generate a password).',
    )
    .addHelpText('after', '\nExample:\n  $ lockgate user add ada --merchant "Amber Bikes"')
    .action(add);
  addWatchFlag(addClientFlags(user.command('list').description('List a merchant’s users.')))
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .addHelpText('after', '\nExample:\n  $ lockgate user list --merchant "Amber Bikes"')
    .action(repeatIfWatched(list));
}

async function add(username: string, flags: AddFlags): Promise<void> {
  const { merchant, email, passwordFile } = flags;
  const chosen = passwordFile === undefined ? undefined : readPassword(passwordFile);
  const password = chosen ?? randomBytes(PASSWORD_BYTES).toString('base64url');
  const client = new GatewayClient(flags);
  const user = await client.post<Pick<UserJson, 'username' | 'merchant'>>('/users', {
    username,
    merchant,
    email,
    password,
  });
  if (flags.json) return printJson(chosen === undefined ? { ...user, password } : user);
  print(`Added user ${paint('bold', username)} of ${user.merchant}.`);
  if (chosen !== undefined) return;
  print(`Password: ${paint('bold', password)}`);
  printNote('The password is shown only once.');
}

/**
 * Reads the password from a file or stdin. No flag takes the password itself, because every user of the machine can see
 * a program's arguments.
 *
 * @throws LockgateError `input-password`
 */
function readPassword(file: string): string {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new LockgateError('input-password', `${file} can't be read: ${(error as Error).message}`);
  }
  const [line = ''] = text.split(/\r?\n/, 1);
  if (line === '') throw new LockgateError('input-password', `${file} has no password in its first line`);
  return line;
}

async function list(flags: Flags): Promise<void> {
  const client = new GatewayClient(flags);
  const users: UserJson[] = [];
  // The users come in pages; an empty page is the end.
  for (;;) {
    const query = new URLSearchParams();
    if (flags.merchant !== undefined) query.set('merchant', flags.merchant);
    const last = users.at(-1);
    if (last !== undefined) query.set('after', last.id);
    const page = await client.get<{ users: readonly UserJson[] }>(`/users?${query}`);
    if (page.users.length === 0) break;
    users.push(...page.users);
  }
  if (flags.json) return printJson({ users });
  // Every request is for one merchant, so --merchant is not a filter.
  if (users.length === 0) return printNote('The merchant has no user yet. Add one: lockgate user add NAME');
  printTable(users, [
    { title: 'ID', show: (row) => row.id },
    { title: 'NAME', show: (row) => row.username ?? '–' },
    { title: 'LOGIN', show: (row) => (row.has_password && row.username !== null ? 'yes' : 'no') },
    { title: 'EMAIL', show: (row) => row.email ?? '–', optional: true },
    { title: 'ADDED', show: (row) => agoText(row.created_at, systemClock.now()), optional: true },
  ]);
}
