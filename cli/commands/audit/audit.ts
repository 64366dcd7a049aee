import type { Command } from 'commander';
import { withConnection } from '../../terminal/shared-flags.js';
import { readCount } from '../webhook/flags.js';
import type { AuditFlags } from './listing.js';

const DEFAULT_LIMIT = 50;

const HELP = `
Actions have names such as device.set, webhook.rotate-secret, key.revoke. OUTCOME is "done"; "refused" or "failed", with
the reason; "begun" for a change still in progress; or "unknown" if the gateway was killed during it. The names of the
user and the program are reported by the client and not verified. The log contains no secrets.

Example:
  $ lockgate audit --since 24h
  $ lockgate audit --object A4:C1:38:F0:E1:D2 --action device --json`;

/** `lockgate audit` */
export function addAuditCommand(program: Command): void {
  withConnection(program.command('audit').description('Show who changed what, newest first.'))
    .option('--since <time>', 'Only changes since this time: a span such as 24h (ago), or a date.')
    .option('--action <name>', 'Only this action, such as device.set, or this group of actions, such as device.')
    .option('--object <name>', 'Only changes of this object: a MAC, a name or an id.')
    .option('--limit <n>', 'How many changes to list at most.', readCount, DEFAULT_LIMIT)
    .addHelpText('after', HELP)
    .action(async (flags: AuditFlags) => {
      const { listAudit } = await import('./listing.js');
      await listAudit(flags);
    });
}
