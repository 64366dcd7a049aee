/** `lockgate audit`: flags and help. listing.ts does the work and is loaded on demand. */
import type { Command } from 'commander';
import { addPageFlags } from '../../terminal/paged-list.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import type { AuditFlags } from './listing.js';

const DEFAULT_LIMIT = 50;

const HELP = `
Actions have names such as device.set, webhook.rotate-secret, key.revoke. OUTCOME is "done"; "refused" or "failed", with
the reason; "begun" for a change still in progress; or "unknown" if the gateway was killed during the change. The client
reports the names of the user and the program; the gateway does not verify them. The log contains no secrets.

Example:
  $ lockgate audit --since 24h
  $ lockgate audit --merchant "Amber Bikes"
  $ lockgate audit --object A4:C1:38:F0:E1:D2 --action device --json`;

/** Adds the command to the program. */
export function addAuditCommand(program: Command): void {
  const audit = program.command('audit').description('Show who changed what, newest first.');
  addPageFlags(addClientFlags(audit), DEFAULT_LIMIT)
    .option('--since <time>', 'Only changes since this time: a date, or a span such as 24h for 24 hours ago.')
    .option('--action <name>', 'Only this action, such as device.set, or group of actions, such as device.')
    .option('--object <name>', 'Only changes of this object: a MAC, a name or an id.')
    .option('--merchant <name>', 'Only what this merchant’s users and API keys did, and changes that name it.')
    .addHelpText('after', HELP)
    .action(async (flags: AuditFlags) => {
      const { listAudit } = await import('./listing.js');
      await listAudit(flags);
    });
}
