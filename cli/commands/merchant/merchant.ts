/** `lockgate merchant add|set|list`: manages merchants; closing.ts has the others. */
import type { Command } from 'commander';
import { systemClock } from '../../../proto/clock.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { paint, print, printJson, printNote } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { type Column, printTable } from '../../terminal/table.js';
import { agoText } from '../../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';
import { addClosingCommands } from './closing.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

interface MerchantJson {
  readonly id: number;
  readonly name: string;
  readonly created_at: string;
  /** Null while it is open. */
  readonly closed_at: string | null;
}

/** Adds the group to the program. */
export function addMerchantCommands(program: Command): void {
  const merchant = program.command('merchant').description('Manage merchants.');
  addClientFlags(merchant.command('add').description('Add a merchant.').argument('<name>', 'A name of your choice.'))
    .addHelpText('after', '\nExample:\n  $ lockgate merchant add "Amber Bikes"')
    .action(add);
  addClientFlags(merchant.command('set').description('Change a merchant’s name.'))
    .argument('<name>', 'The merchant’s name.')
    .requiredOption('--name <name>', 'The new name.')
    .addHelpText('after', '\nExample:\n  $ lockgate merchant set "Amber Bikes" --name "Amber & Sons"')
    .action(set);
  addClosingCommands(merchant);
  addWatchFlag(addClientFlags(merchant.command('list').description('List merchants.')))
    .option('--all', 'Closed merchants too.')
    .addHelpText('after', '\nExample:\n  $ lockgate merchant list')
    .action(repeatIfWatched(list));
}

/** When the merchant was closed. */
const closedColumn: Column<MerchantJson> = {
  title: 'CLOSED',
  show: (row) => (row.closed_at === null ? '–' : agoText(row.closed_at, systemClock.now())),
};

async function add(name: string, flags: Flags): Promise<void> {
  const merchant = await new GatewayClient(flags).post<MerchantJson>('/merchants', { name });
  if (flags.json) return printJson(merchant);
  print(`Added merchant ${paint('bold', merchant.name)}.`);
  printNote('Next: lockgate device add MAC, and lockgate webhook add URL');
}

async function set(name: string, flags: Flags & { readonly name: string }): Promise<void> {
  const body = { name: flags.name };
  const merchant = await new GatewayClient(flags).post<MerchantJson>(`/merchants/${encodeURIComponent(name)}`, body);
  if (flags.json) return printJson(merchant);
  print(`Renamed ${name} to ${paint('bold', merchant.name)}.`);
}

async function list(flags: Flags & { readonly all?: boolean }): Promise<void> {
  const path = flags.all === true ? '/merchants?all=true' : '/merchants';
  const { merchants } = await new GatewayClient(flags).get<{ merchants: MerchantJson[] }>(path);
  if (flags.json) return printJson({ merchants });
  if (merchants.length === 0) return printNote('There is no merchant yet. Add one: lockgate merchant add NAME');
  printTable(merchants, [
    { title: 'NAME', show: (row) => row.name },
    { title: 'ADDED', show: (row) => agoText(row.created_at, systemClock.now()) },
    ...(flags.all === true ? [closedColumn] : []),
  ]);
}
