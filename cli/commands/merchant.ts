/** `lockgate merchant add|list`: manages merchants. */
import type { Command } from 'commander';
import { systemClock } from '../../proto/clock.js';
import { type ConnectionFlags, GatewayClient } from '../client.js';
import { paint, print, printJson, printNote } from '../terminal/output.js';
import { addClientFlags } from '../terminal/shared-flags.js';
import { printTable } from '../terminal/table.js';
import { agoText } from '../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../terminal/watch.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

interface MerchantJson {
  readonly id: number;
  readonly name: string;
  readonly created_at: string;
}

/** Adds the group to the program. */
export function addMerchantCommands(program: Command): void {
  const merchant = program.command('merchant').description('Manage merchants.');
  addClientFlags(merchant.command('add').description('Add a merchant.').argument('<name>', 'A name of your choice.'))
    .addHelpText('after', '\nExample:\n  $ lockgate merchant add "Amber Bikes"')
    .action(add);
  addWatchFlag(addClientFlags(merchant.command('list').description('List merchants.')))
    .addHelpText('after', '\nExample:\n  $ lockgate merchant list')
    .action(repeatIfWatched(list));
}

async function add(name: string, flags: Flags): Promise<void> {
  const merchant = await new GatewayClient(flags).post<MerchantJson>('/merchants', { name });
  if (flags.json) return printJson(merchant);
  print(`Added merchant ${paint('bold', merchant.name)}.`);
  printNote('Next: lockgate device add MAC, and lockgate webhook add URL');
}

async function list(flags: Flags): Promise<void> {
  const { merchants } = await new GatewayClient(flags).get<{ merchants: MerchantJson[] }>('/merchants');
  if (flags.json) return printJson({ merchants });
  if (merchants.length === 0) return printNote('There is no merchant yet. Add one: lockgate merchant add NAME');
  printTable(merchants, [
    { title: 'NAME', show: (row) => row.name },
    { title: 'ADDED', show: (row) => agoText(row.created_at, systemClock.now()) },
  ]);
}
