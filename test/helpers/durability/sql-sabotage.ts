/**
 * Sabotages that change what a gateway's connections to PostgreSQL send. They take away what keeps gateways
 * that share a database apart, which is below the store's interface. They change the driver of the whole process, so
 * only a gateway in a process of its own may have one.
 */
import pg from 'pg';

/** Sabotages of what PostgreSQL gets. */
export type SqlSabotageName = 'no-fence' | 'unfenced-uplinks';

/** The fence of a commit, as the driver gets it; the numbers are of its parameters. */
const FENCE = /SELECT 1 FROM node WHERE slot = \$1 AND epoch = \$2 AND session = \$3 FOR NO KEY UPDATE/;
/** What takes the fence's place: one row, whatever the claim is. */
const NO_FENCE = 'SELECT 1 WHERE $1::bigint + $2::bigint + $3::bigint IS NOT NULL';
/** The part of a commit that stores uplinks, up to where it joins the fence. */
const UPLINKS = /(INSERT INTO uplink \([^)]*\)\s*SELECT[^;]*?)FROM f, unnest/;

/** Changes each statement. */
function changeStatements(change: (text: string) => string): void {
  const client = pg.Client.prototype as unknown as { query(query: unknown, ...rest: unknown[]): unknown };
  const { query } = client;
  client.query = function (this: unknown, config: unknown, ...rest: unknown[]): unknown {
    const { text } = (config ?? {}) as { text?: unknown };
    const changed = typeof text === 'string' ? { ...(config as object), text: change(text) } : config;
    return query.call(this, changed, ...rest);
  };
}

const SQL_SABOTAGES: Readonly<Record<SqlSabotageName, () => void>> = {
  /** Commits store under a claim that has ended. */
  'no-fence': () => changeStatements((text) => text.replace(FENCE, () => NO_FENCE)),

  /** One part of a commit does not ask whether the claim has ended. */
  'unfenced-uplinks': () => changeStatements((text) => text.replace(UPLINKS, '$1FROM unnest')),
};

/** Whether a sabotage is one of this file. */
export function isSqlSabotage(name: string | undefined): name is SqlSabotageName {
  return name !== undefined && name in SQL_SABOTAGES;
}

/** Sabotages this process. */
export function sabotageSql(name: SqlSabotageName): void {
  SQL_SABOTAGES[name]();
}
