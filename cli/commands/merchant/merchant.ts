/**
 * `lockgate merchant add|set|list`: manages merchants. closing.ts and notify-url.ts have the group's other commands.
 */
import type { Command } from 'commander';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { readClocks } from '../../gateway-clocks.js';
import { paint, print, printJson, printNote } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { type Column, printTable } from '../../terminal/table.js';
import { agoText } from '../../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';
import type { SendingJson } from '../notices/sending.js';
import { addClosingCommands } from './closing.js';
import { addNotifyUrlCommands } from './notify-url.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

interface MerchantJson {
  readonly id: number;
  readonly name: string;
  readonly created_at: string;
  /** Null while it is open. */
  readonly closed_at: string | null;
  readonly notify_url: string | null;
  readonly notify: SendingJson | null;
}

/** `notify_secret` is there if the merchant got its first notify URL. */
type ChangedMerchantJson = MerchantJson & { readonly notify_secret?: string };

type AddFlags = Flags & { readonly notifyUrl?: string };
/** `--no-notify-url` makes it false. */
type SetFlags = Flags & { readonly name?: string; readonly notifyUrl?: string | false };

const NOTIFY_URL_HELP = 'Where the merchant learns that one of its webhook URLs fails, is disabled, or works again.';

/** Adds the group to the program. */
export function addMerchantCommands(program: Command): void {
  const merchant = program.command('merchant').description('Manage merchants.');
  addClientFlags(merchant.command('add').description('Add a merchant.').argument('<name>', 'A name of your choice.'))
    .option('--notify-url <url>', NOTIFY_URL_HELP)
    .addHelpText('after', '\nExample:\n  $ lockgate merchant add "Amber Bikes"')
    .action(add);
  addClientFlags(merchant.command('set').description('Change a merchant’s name or notify URL.'))
    .argument('<name>', 'The merchant’s name.')
    .option('--name <name>', 'The new name.')
    .option('--notify-url <url>', NOTIFY_URL_HELP)
    .option('--no-notify-url', 'Remove the notify URL, and what waits to be sent to it.')
    .addHelpText('after', '\nExample:\n  $ lockgate merchant set "Amber Bikes" --name "Amber & Sons"')
    .addHelpText('after', '  $ lockgate merchant set "Amber Bikes" --notify-url https://amber.example.com/ops')
    .action(set);
  addNotifyUrlCommands(merchant);
  addClosingCommands(merchant);
  addWatchFlag(addClientFlags(merchant.command('list').description('List merchants.')))
    .option('--all', 'Also list closed merchants.')
    .addHelpText('after', '\nExample:\n  $ lockgate merchant list')
    .action(repeatIfWatched(list));
}

/** When the merchant was closed. */
const closedColumn = (dateMs: number): Column<MerchantJson> => ({
  title: 'CLOSED',
  show: (row) => (row.closed_at === null ? '–' : agoText(row.closed_at, dateMs)),
});

async function add(name: string, flags: AddFlags): Promise<void> {
  const { notifyUrl } = flags;
  const body = { name, ...(notifyUrl !== undefined && { notify_url: notifyUrl }) };
  const merchant = await new GatewayClient(flags).post<ChangedMerchantJson>('/merchants', body);
  if (flags.json) return printJson(merchant);
  print(`Added merchant ${paint('bold', merchant.name)}.`);
  printNotifySecret(merchant);
  printNote('Next: lockgate device add MAC, and lockgate webhook add URL');
}

async function set(name: string, flags: SetFlags): Promise<void> {
  const { name: newName, notifyUrl } = flags;
  if (newName === undefined && notifyUrl === undefined)
    throw new LockgateError(
      'input-merchant',
      'nothing to change: give --name NAME, --notify-url URL or --no-notify-url',
    );
  const body = {
    ...(newName !== undefined && { name: newName }),
    ...(notifyUrl !== undefined && { notify_url: notifyUrl === false ? '' : notifyUrl }),
  };
  const path = `/merchants/${encodeURIComponent(name)}`;
  const merchant = await new GatewayClient(flags).post<ChangedMerchantJson>(path, body);
  if (flags.json) return printJson(merchant);
  if (newName !== undefined) print(`Renamed ${name} to ${paint('bold', merchant.name)}.`);
  if (notifyUrl === undefined) return;
  const { notify_url: url } = merchant;
  print(`${paint('bold', merchant.name)} ${url === null ? 'has no notify URL.' : `is notified at ${url}.`}`);
  printNotifySecret(merchant);
  if (url !== null) printNote(`To try it: lockgate merchant test-notify ${JSON.stringify(merchant.name)}`);
}

/** Prints the secret of a merchant's first notify URL. */
function printNotifySecret({ notify_secret: secret }: ChangedMerchantJson): void {
  if (secret === undefined) return;
  print(`Signing secret of its notify URL: ${paint('bold', secret)}`);
  printNote('The secret is shown only once. The receiver needs it to verify messages (Standard Webhooks).');
}

async function list(flags: Flags & { readonly all?: boolean }): Promise<void> {
  const path = flags.all === true ? '/merchants?all=true' : '/merchants';
  const client = new GatewayClient(flags);
  const { merchants } = await client.get<{ merchants: MerchantJson[] }>(path);
  if (flags.json) return printJson({ merchants });
  if (merchants.length === 0) return printNote('There is no merchant yet. Add one: lockgate merchant add NAME');
  const { dateMs } = await readClocks(client);
  printTable(merchants, [
    { title: 'NAME', show: (row) => row.name },
    { title: 'ADDED', show: (row) => agoText(row.created_at, dateMs) },
    ...(flags.all === true ? [closedColumn(dateMs)] : []),
    {
      title: 'NOTIFIED AT',
      show: ({ notify }) => (notify === null ? '–' : `${notify.origin} (${notify.state})`),
      style: ({ notify }) => (notify?.state === 'failing' ? 'red' : undefined),
    },
  ]);
}
