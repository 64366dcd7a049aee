/**
 * `db check --store`: checks that a store in PostgreSQL is consistent, and unchanged where it has checksums of ours.
 * Reads one snapshot, also while gateways run, and changes nothing.
 */
import { LockgateError } from '../../../../proto/errors.js';
import type { CheckReport, CheckResult, Damage } from '../../contract/check-report.js';
import { StoreFailure } from '../../contract/errors.js';
import { shownStoreUrl } from '../../store-url.js';
import { checkStatements, STATEMENT_READS, type StatementRows } from '../../tables/statement-check.js';
import { connectFailure } from '../connections/connect-failure.js';
import { withClient } from '../connections/connections.js';
import { STEPS } from '../migrations.js';
import { QueryableSql, type Sql } from '../sql.js';
import type { CheckContext, CheckOutcome } from './context.js';
import { checkLog } from './log.js';
import { checkOutbox } from './outbox.js';
import { checkPages } from './pages.js';
import { checkQuotaCounts } from './quota-counts.js';

/** Maximum number of damaged places that one check lists; further ones are only counted. */
const MAX_DAMAGE_LISTED = 100;
/** PostgreSQL's codes for a page or an index that is not what was written. */
const DAMAGE_CODE = /^XX00[12]$/;

interface Check {
  readonly name: string;
  readonly unit: string;
  readonly run: (context: CheckContext) => Promise<CheckOutcome>;
}

const CHECKS: readonly Check[] = [
  { name: 'log', unit: 'rows', run: checkLog },
  { name: 'outbox', unit: 'events', run: checkOutbox },
  { name: 'usage', unit: 'rows', run: checkUsage },
  { name: 'kept', unit: 'merchants', run: checkQuotaCounts },
  { name: 'pages', unit: 'tables and indexes', run: checkPages },
];

/**
 * Checks the store in a database.
 *
 * @param report called with the check's name and how many items are done
 * @throws LockgateError `store-unreachable`, `store-refused`, `store-newer`, `input-database` if the database has no
 * store
 * @throws StoreFailure if it can't be read
 */
export async function checkPostgres(url: string, report: (check: string, done: number) => void): Promise<CheckReport> {
  try {
    return await withClient(url, async (client) => {
      const sql = new QueryableSql(client);
      await sql.run('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const schema = await readSchema(sql, url);
      const size = await sql.get<{ bytes: number }>('SELECT pg_database_size(current_database()) AS bytes');
      const [checks, damage]: [CheckResult[], Damage[]] = [[], []];
      for (const check of CHECKS) checks.push(await runCheck(check, sql, report, damage));
      return { file: shownStoreUrl(url), bytes: size?.bytes ?? 0, schema, walBytes: 0, checks, damage };
    });
  } catch (error) {
    const failure = connectFailure(error, url);
    const isOurs = failure instanceof LockgateError || failure instanceof StoreFailure;
    throw isOurs ? failure : new StoreFailure(`check ${shownStoreUrl(url)}`, error);
  }
}

/** Returns the last applied step. */
async function readSchema(sql: Sql, url: string): Promise<string> {
  const where = shownStoreUrl(url);
  const found = await sql.get<{ ours: boolean }>(`SELECT to_regclass('lockgate_migration') IS NOT NULL AS ours`);
  if (found?.ours !== true)
    throw new LockgateError('input-database', `${where} is not a lockgate store: it has no such tables`);
  const rows = await sql.all<{ name: string }>('SELECT name FROM lockgate_migration ORDER BY name');
  const names = rows.map(({ name }) => name);
  if (names.some((name) => STEPS.every((step) => step.name !== name)))
    throw new LockgateError('store-newer', `${where} was written by a newer version of lockgate; run that version`);
  if (names.length < STEPS.length)
    throw new LockgateError(
      'input-database',
      `${where} has the schema of an older version, ${names.at(-1) ?? 'none'}: start a gateway on it first`,
    );
  return names.at(-1) ?? '';
}

async function runCheck(
  { name, unit, run }: Check,
  sql: Sql,
  report: (check: string, done: number) => void,
  listed: Damage[],
): Promise<CheckResult> {
  let damaged = 0;
  const damage: CheckContext['damage'] = (table, row, what) => {
    damaged += 1;
    if (damaged <= MAX_DAMAGE_LISTED) listed.push({ check: name, table, row: row === null ? null : String(row), what });
  };
  report(name, 0);
  let outcome: CheckOutcome = { count: 0 };
  await sql.run('SAVEPOINT before_check');
  try {
    outcome = await run({ sql, damage, progress: (done) => report(name, done) });
  } catch (error) {
    if (!DAMAGE_CODE.test(String((error as { code?: unknown }).code))) throw error;
    await sql.run('ROLLBACK TO before_check');
    damage(null, null, `it can't be read any further: ${(error as Error).message}`);
  }
  return { name, count: outcome.count, unit, damaged, note: outcome.note ?? null };
}

async function checkUsage({ sql, damage }: CheckContext): Promise<CheckOutcome> {
  const rows: StatementRows = {
    statements: await sql.all(STATEMENT_READS.statements),
    overbilled: await sql.all(STATEMENT_READS.overbilled),
    billed: await sql.all(STATEMENT_READS.billed),
  };
  return { count: checkStatements(rows, damage) };
}
