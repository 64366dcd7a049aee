/** Checks the merchants' statements. Whether one was changed is checked by its row's checksum (rows.ts). */
import { checkStatements, STATEMENT_READS, type StatementRows } from '../../tables/statement-check.js';
import type { CheckContext, CheckOutcome } from './context.js';

/** Checks all statements and all counts. */
export function checkUsage({ db, damage }: CheckContext): CheckOutcome {
  const read = (name: keyof StatementRows) => db.prepare(STATEMENT_READS[name]).all();
  const rows = { statements: read('statements'), overbilled: read('overbilled'), billed: read('billed') };
  return { count: checkStatements(rows as unknown as StatementRows, damage) };
}
