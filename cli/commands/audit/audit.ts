import type { Command } from 'commander';
import { withConnection } from '../../terminal/shared-flags.js';
import { readCount } from '../webhook/flags.js';
import type { AuditFlags } from './listing.js';

const DEFAULT_LIMIT = 50;

const HELP = `
Actions are named group.what: device.set, webhook.rotate-secret, key.revoke. OUTCOME is done, refused or failed (with
why), begun while it is under way, unknown where the gateway ended before it was known. The user and the program are
what the client says of itself. No secret is in the log.

Example:
  $ lockgate audit --since 24h
  $ lockgate audit --object A4:C1:38:F0:E1:D2 --action device --json`;

/** `lockgate audit` */
export function addAuditCommand(program: Command): void {
  withConnection(program.command('audit').description('Show what was changed and by whom, the newest first.'))
    .option('--since <time>', 'From then on: a span such as 24h, or a date.')
    .option('--action <name>', 'This action only, such as device.set; or all of a group, such as device.')
    .option('--object <name>', 'What was done to this only: a MAC, a name or an id.')
    .option('--limit <n>', 'At most so many.', readCount, DEFAULT_LIMIT)
    .addHelpText('after', HELP)
    .action(async (flags: AuditFlags) => {
      const { listAudit } = await import('./listing.js');
      await listAudit(flags);
    });
}
