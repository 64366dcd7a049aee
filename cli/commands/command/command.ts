/** `lockgate command …`: flags and help. The files next to this one do the work and are loaded on demand. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ConnectionFlags } from '../../client.js';
import { addPageFlags } from '../../terminal/paged-list.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';
import type { ListFlags } from './listing.js';
import type { SendFlags } from './sending.js';

const DEFAULT_LIMIT = 50;
/** The states of a command, for `list --state`. */
const STATES = ['queued', 'sent', 'done', 'rejected', 'failed', 'expired', 'cancelled'];

type Flags = ConnectionFlags & { readonly json?: boolean };

/** Adds the group to the program. */
export function addCommandCommands(program: Command): void {
  const command = program.command('command').description('Send commands to locks.');
  addSend(command);
  addList(command);
  addClientFlags(
    command.command('show').description('Show a command: its times, its state, and what it is waiting for.'),
  )
    .argument('<id>', 'The command’s id.', readWholeNumber)
    .addHelpText('after', '\nExample:\n  $ lockgate command show 7')
    .action(async (id: number, flags: Flags) => {
      const { showCommand } = await import('./listing.js');
      await showCommand(id, flags);
    });
  addClientFlags(command.command('cancel').description('Cancel a command that has not been sent.'))
    .argument('<id>', 'The command’s id.', readWholeNumber)
    .addHelpText('after', '\nExample:\n  $ lockgate command cancel 7')
    .action(async (id: number, flags: Flags) => {
      const { cancelCommand } = await import('./listing.js');
      await cancelCommand(id, flags);
    });
}

const SEND_HELP = `
Types and their parameters:
  unlock, lock, locate-gps, locate-cell, reset
  siren       --seconds
  set-power   --mode, --ride-tracking, --airplane, --recovery, --high-window with --utc-offset; at least one

A lock gets its commands one at a time, in order, when it is next reachable, and executes each once. Unlock, lock and
siren expire after 2 minutes, all other types after 24 hours; --expires overrides this, counted from --at if given.
Nothing is sent while the lock's battery is below 10 %. Airplane mode must be confirmed, because a lock in airplane mode
can't be reached, so no command can switch it off.

Exit codes: 0 queued (with --wait: done), 1 refused for a lock (with --wait: not done), 2 the command line is wrong,
3 the gateway can't be reached or refuses.

Example:
  $ lockgate command send A4:C1:38:F0:E1:D2 unlock --wait
  $ lockgate command send A4C138F0E1D2 A4C138F0E1D3 siren --seconds 20
  $ lockgate command send A4C138F0E1D2 set-power --mode HIGH --high-window 07:00-19:00 --utc-offset +01:00
  $ lockgate command send lock --merchant "Amber Bikes" --all --count 1204 --at 2026-11-21T22:00:00Z --expires 2h`;

function addSend(command: Command): void {
  addClientFlags(command.command('send').description('Send a command to locks; the type comes last.'))
    .usage('[options] <mac...> <type>')
    .argument('<macs-and-type...>', 'MACs in any common spelling, then the type: unlock, lock, siren, locate-gps, …')
    .option('--merchant <name>', 'Instead of MACs, with --all: the locks of this merchant.')
    .option('--all', 'All locks of the merchant; asks for confirmation of their number.')
    .option('--count <n>', 'With --all: the expected number of locks; refused if it differs.', readWholeNumber)
    .option('--yes', 'Don’t ask for confirmation of the number of locks or of airplane mode.')
    .option('--seconds <n>', 'How many seconds the siren sounds.', readNumber)
    .addOption(new Option('--mode <mode>', 'The power mode.').choices(['MID', 'HIGH']))
    .addOption(new Option('--ride-tracking <switch>', 'Switch GPS pings during rides.').choices(['on', 'off']))
    .addOption(new Option('--airplane <switch>', 'Silence the lock permanently.').choices(['on']))
    .addOption(
      new Option('--recovery <switch>', 'Switch recovery mode, which keeps the lock connected.').choices(['on', 'off']),
    )
    .option('--high-window <from-to>', 'The time of day when a lock in HIGH stays connected, such as 07:00-19:00.')
    .option('--utc-offset <offset>', 'The UTC offset of --high-window, such as +01:00 (default: +00:00).')
    .option('--expires <span>', 'How long the command may wait for the lock, such as 90s, 10m, 6h or 2d.')
    .option('--at <date>', 'Don’t send the command before this time (RFC 3339).')
    .option('--wait', 'Wait until the command is done, rejected, failed, expired or cancelled.')
    .addHelpText('after', SEND_HELP)
    .action(async (words: string[], flags: SendFlags) => {
      const { sendCommand } = await import('./sending.js');
      await sendCommand(words, flags);
    });
}

function addList(command: Command): void {
  const list = command.command('list').description('List commands and what they are waiting for, newest first.');
  addPageFlags(addWatchFlag(addClientFlags(list)), DEFAULT_LIMIT)
    .option('--mac <mac>', 'Only commands to this lock.')
    .addOption(new Option('--state <state>', 'Only commands in this state.').choices(STATES))
    .addHelpText('after', '\nExample:\n  $ lockgate command list --mac A4:C1:38:F0:E1:D2 --state queued')
    .action(
      repeatIfWatched(async (flags: ListFlags) => {
        const { listCommands } = await import('./listing.js');
        await listCommands(flags);
      }),
    );
}

function readWholeNumber(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a number.');
}

function readNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number.');
}
