/**
 * Opens the embedded engine's store: locks and checks the data folder, migrates the file, and builds the store of its
 * parts.
 */
import SqliteDatabase, { type Database } from 'better-sqlite3';
import { DEFAULT_QUOTA } from '../contract/merchants/quota.js';
import type { Store } from '../contract/store.js';
import type { StoreOptions } from '../contract/store-options.js';
import { Kysely, SqliteDialect } from '../tables/kysely.js';
import type { Tables } from '../tables/schema.js';
import { openDurable } from './durable-file.js';
import { InlineFigures } from './figures/figures-count.js';
import { FiguresThread } from './figures/figures-in-thread.js';
import { takeFolder } from './folder/take-folder.js';
import { closeUnopened, markRunning, numberStore } from './folder/wal-presence.js';
import { InlineLog } from './log/log-backend.js';
import { catchUp } from './log/log-catch-up.js';
import { ThreadLog } from './log/thread-log.js';
import { MAX_WAL_PAGES } from './log/wal-checkpointer.js';
import { migrate } from './migrate.js';
import { refuseMoved } from './moved-marker.js';
import { Scans } from './scan/scans.js';
import { SqliteStore } from './sqlite-store.js';

/**
 * Opens the store in `folder`, creating it if it doesn't exist, and locks the folder for this process.
 *
 * @throws LockgateError what `takeFolder` throws; `store-newer` if a newer version of lockgate wrote it, `store-unsafe`
 * if the file system can't make commits durable, `store-moved` if it is in a database now
 */
export async function openSqliteStore(folder: string, options: StoreOptions = {}): Promise<Store> {
  const {
    logThread = false,
    scanThread = false,
    runSize,
    onCatchUp = () => undefined,
    quota = DEFAULT_QUOTA,
  } = options;
  const { file, isNew, lock, restoreEvidence } = await takeFolder(folder, options);
  const figuresThread = options.figuresThread ? new FiguresThread(file) : undefined;
  let writer: Database | undefined;
  try {
    writer = openDurable(file);
    const tables = new Kysely<Tables>({ dialect: new SqliteDialect({ database: writer }) });
    await migrate(writer, file, isNew ? 'make' : 'open');
    refuseMoved(writer, file);
    await catchUp(writer, onCatchUp);
    // Numbering puts a page into the WAL; marking needs a WAL with content.
    numberStore(writer);
    markRunning(file);
    const reader = new SqliteDatabase(file, { readonly: true });
    // The log thread checkpoints the WAL (write-ahead log); this connection does so only if that can't keep up.
    if (logThread) writer.pragma(`wal_autocheckpoint = ${2 * MAX_WAL_PAGES}`);
    // The figures thread counts rows at its start, while the log opens.
    const figuresOpened = figuresThread?.open();
    const log = logThread ? await ThreadLog.open({ file, runSize }, reader) : new InlineLog(writer, runSize);
    await figuresOpened;
    const figures = figuresThread ?? new InlineFigures(reader);
    const scans = new Scans({ file, reader, memtable: log.memtable, hasThread: scanThread });
    const store = new SqliteStore({ file, lock, writer, reader, tables, log, figures, scans, quota });
    // A killed gateway may have left events that were staged for the log and not moved into it.
    await store.moveStagedEvents();
    return store;
  } catch (error) {
    await figuresThread?.close();
    if (writer !== undefined) closeUnopened(writer, file);
    restoreEvidence();
    lock.release();
    throw error;
  }
}
