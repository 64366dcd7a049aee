/** `lockgate user add|list|set|set-password|remove`: manages merchants' users. invitations.ts has the invitations. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { DASHBOARD_CHOICES, DASHBOARD_ROLES } from '../../../gateway/store/contract/merchants/dashboard-roles.js';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import type { GatewayClocks } from '../../gateway-clocks.js';
import { paint, print, printJson, printNote } from '../../terminal/output.js';
import { addPageFlags, type PageFlags, printPages, queryOf } from '../../terminal/paged-list.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import type { Column } from '../../terminal/table.js';
import { agoText } from '../../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';
import { addInvitationCommands } from './invitations.js';

type Flags = ConnectionFlags & { readonly json?: boolean; readonly merchant?: string };

interface AddFlags extends Flags {
  readonly email?: string;
  readonly passwordFile?: string;
  readonly dashboard?: string;
}

/** A user, as the operator interface returns it. */
interface UserJson {
  /** An int64, as a string because a JavaScript number can't represent it. */
  readonly id: string;
  /** The login name; null for a user who does not log in. */
  readonly username: string | null;
  readonly merchant: string;
  readonly email: string | null;
  readonly has_password: boolean;
  /** The role on the dashboard; null without access to it. */
  readonly dashboard: string | null;
  readonly created_at: string;
}

const DEFAULT_LIMIT = 100;
/** The gateway answers with at most this many users. */
const PAGE_USERS = 1_000;
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
    .addOption(new Option('--dashboard <role>', 'A role on the dashboard.').choices([...DASHBOARD_ROLES]))
    .addHelpText('after', '\nExample:\n  $ lockgate user add ada --merchant "Amber Bikes" --dashboard owner')
    .action(add);
  addPageFlags(
    addWatchFlag(addClientFlags(user.command('list').description('List a merchant’s users.'))),
    DEFAULT_LIMIT,
  )
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .addHelpText('after', '\nExample:\n  $ lockgate user list --merchant "Amber Bikes"')
    .action(repeatIfWatched(list));
  addClientFlags(user.command('set').description('Change a user’s role on the dashboard.'))
    .argument('<username>', 'The login name.')
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .addOption(
      new Option('--dashboard <role>', 'The new role; none takes it away.')
        .choices([...DASHBOARD_CHOICES])
        .makeOptionMandatory(),
    )
    .addHelpText('after', '\nExample:\n  $ lockgate user set ada --merchant "Amber Bikes" --dashboard staff')
    .action(setRole);
  addClientFlags(user.command('set-password').description('Give a user a new password, and end its sessions.'))
    .argument('<username>', 'The login name.')
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .option(
      '--password-file <file>',
      'A file whose first line is the password; - for stdin (default: generate a password).',
    )
    .addHelpText('after', '\nExample:\n  $ lockgate user set-password ada --merchant "Amber Bikes"')
    .action(setPassword);
  addClientFlags(user.command('remove').description('Remove a user, and end its sessions.'))
    .argument('<username>', 'The login name.')
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .addHelpText('after', '\nExample:\n  $ lockgate user remove ada --merchant "Amber Bikes"')
    .action(remove);
  addInvitationCommands(user);
}

async function setRole(username: string, flags: Flags & { readonly dashboard: string }): Promise<void> {
  const { merchant, dashboard } = flags;
  const requestPath = `/users/${encodeURIComponent(username)}`;
  const user = await new GatewayClient(flags).patch<UserJson>(requestPath, { merchant, dashboard });
  if (flags.json) return printJson(user);
  const role = user.dashboard === null ? 'no role' : `the role ${user.dashboard}`;
  print(`${paint('bold', username)} of ${user.merchant} has ${role} on the dashboard.`);
}

async function setPassword(username: string, flags: AddFlags): Promise<void> {
  const { merchant, passwordFile } = flags;
  const givenPassword = passwordFile === undefined ? undefined : readPassword(passwordFile);
  const password = givenPassword ?? randomBytes(PASSWORD_BYTES).toString('base64url');
  const requestPath = `/users/${encodeURIComponent(username)}`;
  const user = await new GatewayClient(flags).patch<UserJson>(requestPath, { merchant, password });
  if (flags.json) return printJson(givenPassword === undefined ? { ...user, password } : user);
  print(`Changed the password of ${paint('bold', username)} of ${user.merchant}.`);
  if (givenPassword !== undefined) return;
  print(`Password: ${paint('bold', password)}`);
  printNote('The password is shown only once.');
}

async function remove(username: string, flags: Flags): Promise<void> {
  const query = flags.merchant === undefined ? '' : `?merchant=${encodeURIComponent(flags.merchant)}`;
  const requestPath = `/users/${encodeURIComponent(username)}${query}`;
  const user = await new GatewayClient(flags).delete<UserJson>(requestPath);
  if (flags.json) return printJson(user);
  print(`Removed user ${paint('bold', username)} of ${user.merchant}.`);
}

async function add(username: string, flags: AddFlags): Promise<void> {
  const { merchant, email, passwordFile, dashboard } = flags;
  const givenPassword = passwordFile === undefined ? undefined : readPassword(passwordFile);
  const password = givenPassword ?? randomBytes(PASSWORD_BYTES).toString('base64url');
  const client = new GatewayClient(flags);
  const user = await client.post<Pick<UserJson, 'username' | 'merchant'>>('/users', {
    username,
    merchant,
    email,
    password,
    dashboard,
  });
  if (flags.json) return printJson(givenPassword === undefined ? { ...user, password } : user);
  print(`Added user ${paint('bold', username)} of ${user.merchant}.`);
  if (givenPassword !== undefined) return;
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

async function list(flags: Flags & PageFlags): Promise<void> {
  const { merchant, json } = flags;
  const users = { path: '/users', query: queryOf({ merchant }), member: 'users', pageSize: PAGE_USERS };
  const count = await printPages<UserJson>(new GatewayClient(flags), users, flags, json ? undefined : columnsAt);
  // Every request is for one merchant, so --merchant is not a filter.
  if (count === 0 && !json) printNote('The merchant has no user yet. Add one: lockgate user add NAME');
}

const columnsAt = (_users: readonly UserJson[], { dateMs }: GatewayClocks): readonly Column<UserJson>[] => [
  { title: 'ID', show: (row) => row.id },
  { title: 'NAME', show: (row) => row.username ?? '–' },
  { title: 'LOGIN', show: (row) => (row.has_password && row.username !== null ? 'yes' : 'no') },
  { title: 'DASHBOARD', show: (row) => row.dashboard ?? '–' },
  { title: 'EMAIL', show: (row) => row.email ?? '–', optional: true },
  { title: 'ADDED', show: (row) => agoText(row.created_at, dateMs), optional: true },
];
