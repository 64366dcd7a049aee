/** `lockgate db …`: flags and help. The files next to this one do the work and are loaded on demand. */
import type { Command } from 'commander';
import { addClientFlags } from '../../terminal/shared-flags.js';
import type { AcceptFlags } from './accept.js';
import type { BackupFlags } from './backup.js';
import type { CheckFlags } from './check.js';
import type { MigrateFlags } from './migrate.js';
import type { MoveFlags } from './move.js';

const CHECK_HELP = `
Checks a backup, or the store in the data folder, even while a gateway runs on it. Changes nothing.

For a closed store and a backup, FILE.sums has checksums of every byte. Without FILE.sums, or while the store is in use,
rows are checked by their own checksums, and everything else by SQLite's integrity check.

--store checks a store in PostgreSQL: each uplink by its own checksum, and whether tables contradict each other. Pages
and indexes too, if the extension amcheck is installed in the database.

Exit codes: 0 intact, 1 damaged, 2 the store does not exist, 3 a newer version wrote it, 4 an error in lockgate.

Example:
  $ lockgate db check
  $ lockgate db check /backups/monday.sqlite --json
  $ lockgate db check --store postgres://lockgate@db.example.com/lockgate`;

const BACKUP_HELP = `
The backup contains everything that was acknowledged before it started. The gateway that runs on the data folder, or
that --gateway names, creates and sends the backup. If no gateway runs, the store is copied. FILE.sums has the backup's
checksums.

The backup does not include the key (key in the data folder, or the file that --key-file names). Back it up separately:
without the key the gateway does not start on the backup, and no secret in it can be read. TLS certificates and the
operator's token are not included either; the gateway creates a new token.

Example:
  $ lockgate db backup --out /backups/monday.sqlite
  $ lockgate db backup --out monday.sqlite --gateway https://ops.example.com --token "$TOKEN"`;

const MOVE_HELP = `
Copies every row to an empty database, compares what the database then has with what was sent, and marks the store in
the folder, so that no gateway starts on it any more. No gateway may run on either. Back up first: there is no way back
once a gateway has run on the database. If the move is interrupted, the same command completes it; until the store is
marked, a gateway can also go on with the folder.

The folder keeps the key, which the database needs, and the operator's token: serve with --data and --store.

Example:
  $ createdb lockgate
  $ lockgate db move --data ./data --to postgres://lockgate@db.example.com/lockgate`;

const MIGRATE_HELP = `
No gateway may run on the store; "serve" does the same at its start. The old file is copied first; the name of the copy
has the old version and the time. This copy is the only way back. Delete it when the new version works.

Example:
  $ lockgate db migrate --dry-run
  $ lockgate db migrate --data /var/lib/lockgate`;

const ACCEPT_HELP = `
"serve" does not start on a store whose checksums show damage, or whose write-ahead log (left by a killed gateway) is
missing, damaged or another store's. If you can, restore a backup. Otherwise this command renames the evidence
(FILE.sums.failed.TIME, FILE-wal.failed.TIME) and records it in the audit log; the next start accepts the damaged store.
No gateway may run on the data folder.

Exit codes: 0 accepted, 2 the store does not exist, or no --yes, 3 the store is intact, or a gateway runs,
4 an error in lockgate.

Example:
  $ lockgate db check
  $ lockgate db accept --data ./data --yes`;

/** Adds the group to the program. */
export function addDbCommands(program: Command): void {
  const db = program.command('db').description('Check, back up or migrate the store, or accept its damage.');
  db.command('check')
    .description('Check the store for damage and inconsistencies.')
    .argument('[file]', 'A store file or a backup (default: the store in the data folder).')
    .option('--data <folder>', 'The data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--store <url>', 'A store in PostgreSQL instead: the URL of its database.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', CHECK_HELP)
    .action(async (file: string | undefined, flags: CheckFlags) => {
      const { checkStore } = await import('./check.js');
      await checkStore(file, flags);
    });
  addClientFlags(db.command('backup').description('Back up the store to a file, with or without a running gateway.'))
    .requiredOption('--out <file>', 'The backup file; only you can read it (mode 600).')
    .option('--force', 'Overwrite an existing file.')
    .addHelpText('after', BACKUP_HELP)
    .action(async (flags: BackupFlags) => {
      const { backUp } = await import('./backup.js');
      await backUp(flags);
    });
  db.command('accept')
    .description('Accept a damaged store on which the gateway refuses to start.')
    .option('--data <folder>', 'The data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--yes', 'Confirm that the damage stays and later starts don’t report it.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', ACCEPT_HELP)
    .action(async (flags: AcceptFlags) => {
      const { acceptStore } = await import('./accept.js');
      await acceptStore(flags);
    });
  db.command('migrate')
    .description('Upgrade the store to this version of lockgate.')
    .option('--data <folder>', 'The data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--dry-run', 'Only show the steps.')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', MIGRATE_HELP)
    .action(async (flags: MigrateFlags) => {
      const { migrateStore } = await import('./migrate.js');
      await migrateStore(flags);
    });
  db.command('move')
    .description('Move the store to a PostgreSQL database.')
    .requiredOption('--to <url>', 'The database: postgres://USER@HOST:PORT/DATABASE; it must be empty.')
    .option('--data <folder>', 'The data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', MOVE_HELP)
    .action(async (flags: MoveFlags) => {
      const { move } = await import('./move.js');
      await move(flags);
    });
}
