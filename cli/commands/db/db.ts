/** `lockgate db …`: names, flags and help. What a command does is loaded when it is called. */
import type { Command } from 'commander';
import { withConnection } from '../../terminal/shared-flags.js';
import type { AcceptFlags } from './accept.js';
import type { BackupFlags } from './backup.js';
import type { CheckFlags } from './check.js';
import type { MigrateFlags } from './migrate.js';

const CHECK_HELP = `
Checks the store in the data folder, also while a gateway runs on it, or a backup. It changes nothing.

A store that was closed and a backup have checksums of every byte beside them (FILE.sums). Where there are none, or the
store is in use, a damaged row is found by its own checksum, and the rest by what SQLite checks.

Exit codes: 0 sound, 1 damaged, 2 there is no such store, 3 a newer version wrote it, 4 ours broke.

Example:
  $ lockgate db check
  $ lockgate db check /backups/monday.sqlite --json`;

const BACKUP_HELP = `
Everything that was acknowledged before it began is in it. It is made by the gateway that runs on the data folder, or
that --gateway names, and sent here; where none runs, of the folder itself. FILE.sums, beside it, has its checksums.

Not in it: the key (key in the data folder, or what --key-file names), without which no secret in it is of use and
serve doesn't start on it. Keep that apart. Nor TLS certificates; the operator's token is made anew.

Example:
  $ lockgate db backup --out /backups/monday.sqlite
  $ lockgate db backup --out monday.sqlite --gateway https://ops.example.com --token "$TOKEN"`;

const MIGRATE_HELP = `
For a store that no gateway runs on. "serve" does the same at its start. Forward only: a copy of the file as it was is
kept beside it, named by its version and the time; it can be deleted once all is well.

Example:
  $ lockgate db migrate --dry-run
  $ lockgate db migrate --data /var/lib/lockgate`;

const ACCEPT_HELP = `
"serve" does not start on a store that its checksums call damaged, or whose write-ahead log a kill left is missing,
damaged or another store's. Restore a backup where you can. Where you can't, this puts what proves the damage aside
(FILE.sums.failed.TIME, FILE-wal.failed.TIME), notes it in the audit log, and the next start takes the store as it is.
No gateway may run on the folder.

Exit codes: 0 accepted, 2 there is no such store, or no --yes, 3 nothing is wrong, or a gateway runs, 4 ours broke.

Example:
  $ lockgate db check
  $ lockgate db accept --data ./data --yes`;

/** Adds the group to the program. */
export function addDbCommands(program: Command): void {
  const db = program
    .command('db')
    .description('The store: check it, back it up, bring it to this version, accept its damage.');
  db.command('check')
    .description('Look for damage and for what contradicts itself.')
    .argument('[file]', 'A store’s file or a backup (default: the one in the data folder).')
    .option('--data <folder>', 'The data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', CHECK_HELP)
    .action(async (file: string | undefined, flags: CheckFlags) => {
      const { checkStore } = await import('./check.js');
      await checkStore(file, flags);
    });
  withConnection(db.command('backup').description('Copy all of it into one file, while the gateway runs.'))
    .requiredOption('--out <file>', 'Where the backup goes; it is yours alone to read (mode 600).')
    .option('--force', 'Take the place of a file that is there.')
    .addHelpText('after', BACKUP_HELP)
    .action(async (flags: BackupFlags) => {
      const { backUp } = await import('./backup.js');
      await backUp(flags);
    });
  db.command('accept')
    .description('Go on with a store that a start refuses as damaged.')
    .option('--data <folder>', 'The data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--yes', 'It is meant: what is damaged stays so, and no start says it again.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', ACCEPT_HELP)
    .action(async (flags: AcceptFlags) => {
      const { acceptStore } = await import('./accept.js');
      await acceptStore(flags);
    });
  db.command('migrate')
    .description('Bring the store to this version of lockgate.')
    .option('--data <folder>', 'The data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--dry-run', 'Say what would be done, and do nothing.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', MIGRATE_HELP)
    .action(async (flags: MigrateFlags) => {
      const { migrateStore } = await import('./migrate.js');
      await migrateStore(flags);
    });
}
