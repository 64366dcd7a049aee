import type { Command } from 'commander';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { confirm } from '../../terminal/confirmation.js';
import { paint, print, printJson } from '../../terminal/output.js';
import { withConnection } from '../../terminal/shared-flags.js';
import type { ImportFlags } from './import.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

/** `lockgate device import|set|reflashed|remove|rejudge|erase`: what comes, changes, goes and is forgotten. */
export function addKeepingCommands(device: Command): void {
  withConnection(device.command('import').description('Add many locks from CSV, all or none; writes their secrets.'))
    .argument('<file>', 'CSV: a MAC in each line, maybe a merchant; a header "mac,merchant" may lead. "-": stdin.')
    .option('--merchant <name>', 'Whose those are that name no merchant; may be left out where there is one only.')
    .option('--simulated', 'A simulator plays them: judged and delivered, never billed.')
    .option('--out <file>', 'Write the secrets there as mac,secret (mode 600, a new file); else to standard output.')
    .addHelpText('after', '\nExample:\n  $ lockgate device import locks.csv --merchant "Amber Bikes" --out secrets.csv')
    .action(async (file: string, flags: ImportFlags) => {
      const { importLocks } = await import('./import.js');
      await importLocks(file, flags);
    });
  withConnection(device.command('set').description('Move a lock to another merchant, or change what it is.'))
    .argument('<mac>', 'Its MAC, in any common spelling.')
    .option('--merchant <name>', 'Whose it is from now on. What it did so far stays with the merchant it had.')
    .option('--simulated', 'A simulator plays it: judged and delivered, never billed.')
    .option('--not-simulated', 'It is a real lock.')
    .addHelpText('after', '\nExample:\n  $ lockgate device set A4:C1:38:F0:E1:D2 --merchant "Basil Bikes"')
    .action(set);
  withConnection(device.command('reflashed').description('Say that a lock’s flash was wiped: a new life begins.'))
    .argument('<mac>', 'Its MAC, in any common spelling.')
    .option('--at <time>', 'Since when its boots count from 1 again, by its clock, in RFC 3339; now, if left out.')
    .addHelpText(
      'after',
      '\nA lock whose boot counter began anew is taken for late data of before: what is known of it stands still, and' +
        '\nthe judge finds boot-back. A notice names the time to give here. What the lock made from then on comes' +
        '\nafter all that it made before; ids of events stay as they are.' +
        '\n\nExample:\n  $ lockgate device reflashed A4:C1:38:F0:E1:D2 --at 2026-11-20T18:00:01Z',
    )
    .action(reflashed);
  withConnection(device.command('remove').description('Take a lock out of service; its history stays for a while.'))
    .argument('<mac>', 'Its MAC, in any common spelling.')
    .addHelpText('after', '\nExample:\n  $ lockgate device remove A4:C1:38:F0:E1:D2')
    .action(remove);
  withConnection(device.command('rejudge').description('Judge a lock again at which the judge failed.'))
    .argument('<mac>', 'Its MAC, in any common spelling.')
    .addHelpText(
      'after',
      '\nA mistake in lockgate can make the judge fail at a lock. Its pings are stored and delivered all the same;' +
        '\na notice says so. This makes its state from its log; another version does so when it starts.' +
        '\n\nExample:\n  $ lockgate device rejudge A4:C1:38:F0:E1:D2',
    )
    .action(rejudge);
  withConnection(device.command('erase').description('Erase a lock’s positions and all that is known of it, for good.'))
    .argument('<mac>', 'Its MAC, in any common spelling; of a lock that was removed too.')
    .option('--yes', 'Don’t ask.')
    .addHelpText(
      'after',
      '\nWhat it sent, what was found, its quarantine and what waits to be delivered again are gone from the store’s' +
        '\nfiles; what is counted for billing stays. The lock stays in service. Backups are yours to look after.' +
        '\n\nExample:\n  $ lockgate device erase A4:C1:38:F0:E1:D2 --yes',
    )
    .action(erase);
}

interface RejudgedJson {
  readonly mac: string;
}

async function rejudge(mac: string, flags: Flags): Promise<void> {
  const answer = await new GatewayClient(flags).post<RejudgedJson>(`/devices/${encodeURIComponent(mac)}/rejudge`, {});
  if (flags.json) return printJson(answer);
  print(`${paint('bold', answer.mac)} is judged again: its state is made from its log.`);
}

interface DeviceJson {
  readonly mac: string;
  readonly merchant: string;
  readonly simulated: boolean;
}

interface SetFlags extends Flags {
  readonly merchant?: string;
  readonly simulated?: boolean;
  readonly notSimulated?: boolean;
}

async function set(mac: string, flags: SetFlags): Promise<void> {
  const { merchant, simulated, notSimulated } = flags;
  if (simulated && notSimulated)
    throw new LockgateError('input-set', '--simulated and --not-simulated exclude each other');
  const device = await new GatewayClient(flags).patch<DeviceJson>(`/devices/${encodeURIComponent(mac)}`, {
    ...(merchant !== undefined && { merchant }),
    ...(simulated && { simulated: true }),
    ...(notSimulated && { simulated: false }),
  });
  if (flags.json) return printJson(device);
  const kind = device.simulated ? 'a simulated lock' : 'a real lock';
  print(`${paint('bold', device.mac)} is ${kind} of ${device.merchant}.`);
}

async function reflashed(mac: string, flags: Flags & { at?: string }): Promise<void> {
  const { at } = flags;
  const answer = await new GatewayClient(flags).post<{ mac: string; reflashed: string[] }>(
    `/devices/${encodeURIComponent(mac)}/reflashed`,
    at === undefined ? {} : { at },
  );
  if (flags.json) return printJson(answer);
  print(`What is known of ${paint('bold', answer.mac)} was made again from its log, with its new life.`);
  print(`It was reflashed at ${answer.reflashed.join(', ')}`);
}

async function remove(mac: string, flags: Flags): Promise<void> {
  const answer = await new GatewayClient(flags).delete<{ mac: string }>(`/devices/${encodeURIComponent(mac)}`);
  if (flags.json) return printJson(answer);
  print(`${paint('bold', answer.mac)} is out of service: it can’t connect any more.`);
}

interface ErasedJson {
  readonly mac: string;
  readonly uplinks: number;
  readonly findings: number;
  readonly quarantined: number;
  readonly pending_deliveries: number;
}

async function erase(mac: string, flags: Flags & { yes?: boolean }): Promise<void> {
  if (!flags.yes)
    await confirm({
      question: `Erase all positions and pings of ${mac} for good? Type yes: `,
      expected: 'yes',
      otherwise: 'erasing is for good, and there is no terminal to ask on: give --yes',
      undone: 'nothing was erased',
    });
  const erased = await new GatewayClient(flags).post<ErasedJson>(`/devices/${encodeURIComponent(mac)}/erase`, {});
  if (flags.json) return printJson(erased);
  const { uplinks, findings, quarantined, pending_deliveries: pending } = erased;
  print(`Erased what was known of ${paint('bold', erased.mac)}:`);
  print(`${uplinks} uplinks, ${findings} findings, ${quarantined} in quarantine, ${pending} deliveries that waited.`);
}
