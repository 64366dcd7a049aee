/**
 * `lockgate merchant rotate-notify-secret|test-notify`: commands for the notify URL, to which the gateway reports
 * problems with the merchant's webhook URLs.
 */
import type { Command } from 'commander';
import type { ConnectionFlags } from '../../client.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { addGraceFlags, type RotateFlags, rotateNotifySecret, sendTestMessage } from '../notices/sending.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

/** Adds the commands to the group. */
export function addNotifyUrlCommands(merchant: Command): void {
  addGraceFlags(
    addClientFlags(merchant.command('rotate-notify-secret').description('Replace a notify URL’s signing secret.')),
  )
    .argument('<name>', 'The merchant’s name.')
    .addHelpText('after', '\nExample:\n  $ lockgate merchant rotate-notify-secret "Amber Bikes" --grace 1h')
    .action((name: string, flags: RotateFlags) => rotateNotifySecret(`${pathOf(name)}/rotate-notify-secret`, flags));
  addClientFlags(merchant.command('test-notify').description('Send a test message to a notify URL.'))
    .argument('<name>', 'The merchant’s name.')
    .addHelpText('after', '\nExit codes: 0 it was accepted, 1 it was not, 3 the gateway refuses or can’t be reached.')
    .addHelpText('after', '\nExample:\n  $ lockgate merchant test-notify "Amber Bikes"')
    .action((name: string, flags: Flags) => sendTestMessage(`${pathOf(name)}/test-notify`, flags));
}

/** The merchant's path in the operator interface. */
function pathOf(name: string): string {
  return `/merchants/${encodeURIComponent(name)}`;
}
