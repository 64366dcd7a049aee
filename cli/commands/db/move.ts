/** `lockgate db move`: moves the store of a data folder to a database. */
import { moveStore } from '../../../gateway/store/store-move.js';
import { localOwner } from '../../client.js';
import { print, printJson, printNote } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { databaseUrl, dataFolder } from './check.js';

/** The flags of `lockgate db move`. */
export interface MoveFlags {
  readonly data?: string;
  readonly to: string;
  readonly json?: boolean;
}

/** Moves the store, or completes an interrupted move. No gateway may run on the folder or the database. */
export async function move(flags: MoveFlags): Promise<void> {
  const folder = dataFolder(flags);
  const url = databaseUrl('--to', flags.to);
  let progressText = 'Moving';
  const progress = new ProgressLine(() => progressText);
  const { to, tables, replacedRows } = await moveStore(folder, url, {
    who: localOwner(),
    onModesCorrected: printNote,
    report: (what, done) => {
      progressText = done === 0 ? `Moving: ${what}` : `Moving: ${what}, ${done.toLocaleString('en')} rows`;
    },
  }).finally(() => progress.end());
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  if (flags.json) return printJson({ data: folder, to, rows, tables, replaced_rows: replacedRows });
  if (tables.length === 0) print(`The interrupted move to ${to} is complete.`);
  else print(`Moved to ${to}: ${rows.toLocaleString('en')} rows, each compared after it was written.`);
  if (replacedRows > 0)
    printNote(`${replacedRows} rows had texts with the character U+0000, which is U+FFFD in the database.`);
  printNote(`No gateway starts on ${folder} alone any more. Next: lockgate serve --data ${folder} --store URL`);
}
