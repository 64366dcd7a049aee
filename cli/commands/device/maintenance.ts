/** `lockgate device import|set|reflashed|remove|rejudge|erase`: commands that change a lock or its history. */
import type { Command } from 'commander';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { confirm } from '../../terminal/confirmation.js';
import { paint, print, printJson } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import type { ImportFlags } from './import.js';
import { type DeviceJson, labelsText } from './list.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

/** Adds the commands to the group. */
export function addMaintenanceCommands(device: Command): void {
  addClientFlags(device.command('import').description('Add many locks from CSV, all or none, and print their secrets.'))
    .argument(
      '<file>',
      'CSV with a MAC per line, and optionally merchant, name and labels under a header; - for stdin.',
    )
    .option('--merchant <name>', 'The merchant of lines without one; optional if the gateway has only one.')
    .option('--simulated', 'Mark the locks as simulated: judged and delivered, but not billed.')
    .option('--out <file>', 'Write the secrets to this new file as mac,secret (mode 600; default: standard output).')
    .addHelpText('after', '\nExample:\n  $ lockgate device import locks.csv --merchant "Amber Bikes" --out secrets.csv')
    .action(async (file: string, flags: ImportFlags) => {
      const { importLocks } = await import('./import.js');
      await importLocks(file, flags);
    });
  addClientFlags(
    device.command('set').description('Name or label a lock, move it to another merchant, or mark it as simulated.'),
  )
    .argument('<mac>', 'The lock’s MAC, in any common spelling.')
    .option('--merchant <name>', 'The new merchant. The lock’s history stays with the old merchant.')
    .option('--simulated', 'Mark the lock as simulated: judged and delivered, but not billed.')
    .option('--not-simulated', 'Mark the lock as real.')
    .option('--name <name>', 'A name of up to 60 characters; "" removes it.')
    .option('--labels <list>', 'All labels: key=value, separated by commas; "" removes them.')
    .addHelpText('after', '\nExample:\n  $ lockgate device set A4:C1:38:F0:E1:D2 --merchant "Basil Bikes"')
    .addHelpText('after', '  $ lockgate device set A4:C1:38:F0:E1:D2 --name "Harbour 7" --labels city=Hamburg')
    .action(set);
  addClientFlags(
    device.command('reflashed').description('Report that a lock’s flash was wiped and its boot counter restarted.'),
  )
    .argument('<mac>', 'The lock’s MAC, in any common spelling.')
    .option('--at <time>', 'When the boot counter restarted, by the lock’s clock, RFC 3339 (default: now).')
    .addHelpText(
      'after',
      '\nAfter a boot counter restarts, the lock’s uplinks look like late data: its displayed state stops changing,' +
        '\nand the gateway reports the finding boot-back. A notice names the time for --at. Uplinks made from then on' +
        '\nare sorted after all earlier uplinks; event ids do not change.' +
        '\n\nExample:\n  $ lockgate device reflashed A4:C1:38:F0:E1:D2 --at 2026-11-20T18:00:01Z',
    )
    .action(reflashed);
  addClientFlags(
    device.command('remove').description('Take a lock out of service. Its history is stored until it expires.'),
  )
    .argument('<mac>', 'The lock’s MAC, in any common spelling.')
    .addHelpText('after', '\nExample:\n  $ lockgate device remove A4:C1:38:F0:E1:D2')
    .action(remove);
  addClientFlags(device.command('rejudge').description('Resume judging a lock after an error.'))
    .argument('<mac>', 'The lock’s MAC, in any common spelling.')
    .addHelpText(
      'after',
      '\nAfter an error in lockgate a lock may no longer be judged by the rules. Its pings are still stored and' +
        '\ndelivered, and a notice reports the error. This command rebuilds the lock’s state from its log and resumes' +
        '\njudging. A new version of lockgate does so when it starts.' +
        '\n\nExample:\n  $ lockgate device rejudge A4:C1:38:F0:E1:D2',
    )
    .action(rejudge);
  addClientFlags(device.command('erase').description('Erase a lock’s history, including its positions, permanently.'))
    .argument('<mac>', 'The lock’s MAC, in any common spelling. The lock may have been removed.')
    .option('--yes', 'Don’t ask for confirmation.')
    .addHelpText(
      'after',
      '\nErases uplinks, findings, quarantine and pending deliveries from the store’s files, but not billing counts.' +
        '\nThe lock stays in service. Backups are not changed.' +
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
  print(`${paint('bold', answer.mac)} is judged again: its state was rebuilt from its log.`);
}

interface SetFlags extends Flags {
  readonly merchant?: string;
  readonly simulated?: boolean;
  readonly notSimulated?: boolean;
  readonly name?: string;
  readonly labels?: string;
}

async function set(mac: string, flags: SetFlags): Promise<void> {
  const { merchant, simulated, notSimulated, name, labels } = flags;
  if (simulated && notSimulated)
    throw new LockgateError('input-set', '--simulated and --not-simulated exclude each other');
  const device = await new GatewayClient(flags).patch<DeviceJson>(`/devices/${encodeURIComponent(mac)}`, {
    ...(merchant !== undefined && { merchant }),
    ...(simulated && { simulated: true }),
    ...(notSimulated && { simulated: false }),
    ...(name !== undefined && { name }),
    ...(labels !== undefined && { labels: (await import('./labels.js')).readLabels(labels) }),
  });
  if (flags.json) return printJson(device);
  const kind = device.simulated ? 'a simulated lock' : 'a real lock';
  const labelled = labelsText(device.labels);
  const named = device.name === null ? '' : `, named ${JSON.stringify(device.name)}`;
  print(`${paint('bold', device.mac)} is ${kind} of ${device.merchant}${named}.`);
  if (labelled !== '') print(`Labels: ${labelled}`);
}

async function reflashed(mac: string, flags: Flags & { at?: string }): Promise<void> {
  const { at } = flags;
  const answer = await new GatewayClient(flags).post<{ mac: string; reflashed: string[] }>(
    `/devices/${encodeURIComponent(mac)}/reflashed`,
    at === undefined ? {} : { at },
  );
  if (flags.json) return printJson(answer);
  print(`The state of ${paint('bold', answer.mac)} was rebuilt from its log.`);
  print(`It was reflashed at ${answer.reflashed.join(', ')}`);
}

async function remove(mac: string, flags: Flags): Promise<void> {
  const answer = await new GatewayClient(flags).delete<{ mac: string }>(`/devices/${encodeURIComponent(mac)}`);
  if (flags.json) return printJson(answer);
  print(`${paint('bold', answer.mac)} is out of service: it can no longer connect.`);
}

/**
 * What was erased of a lock: how many of each kind. `quarantined` uplinks (messages) are those that can't be decoded.
 */
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
      question: `Erase all positions and pings of ${mac} permanently? Type yes: `,
      expected: 'yes',
      withoutTerminal: 'erasing can’t be undone: confirm with --yes',
      notDone: 'nothing was erased',
    });
  const erased = await new GatewayClient(flags).post<ErasedJson>(`/devices/${encodeURIComponent(mac)}/erase`, {});
  if (flags.json) return printJson(erased);
  const { uplinks, findings, quarantined, pending_deliveries: pending } = erased;
  print(`Erased the history of ${paint('bold', erased.mac)}:`);
  print(`${uplinks} uplinks, ${findings} findings, ${quarantined} quarantined, ${pending} pending deliveries.`);
}
