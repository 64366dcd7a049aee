/**
 * Sabotages that change what a gateway sends to PostgreSQL. Each commit contains a *fence*: a condition that lets it
 * store nothing once the gateway's claim on its part of the database has ended, since other gateways may have taken
 * over by then. The sabotages remove the fence. They change the driver of the whole process, so only a gateway in a
 * process of its own may have one.
 */
import pg from 'pg';

/** The sabotages of this file. */
export type SqlSabotageName = 'no-fence' | 'unfenced-uplinks';

/** The fence of a commit, as the driver gets it. */
const FENCE = /SELECT 1 FROM node WHERE slot = \$1 AND epoch = \$2 AND session = \$3 FOR NO KEY UPDATE/;
/** What replaces the fence: a row in any case, with the same parameters. */
const NO_FENCE = 'SELECT 1 WHERE $1::bigint + $2::bigint + $3::bigint IS NOT NULL';
/** The part of a commit that stores uplinks, up to the place where it joins the fence (`f`). */
const UPLINKS = /(INSERT INTO uplink \([^)]*\)\s*SELECT[^;]*?)FROM f, unnest/;

/** Changes the text of each statement that is given to the driver with its values, as all commits are. */
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
  /** Commits are stored although the claim has ended. */
  'no-fence': () => changeStatements((text) => text.replace(FENCE, () => NO_FENCE)),

  /** One part of a commit, the uplinks, is stored although the claim has ended. */
  'unfenced-uplinks': () => changeStatements((text) => text.replace(UPLINKS, '$1FROM unnest')),
};

/** Whether a sabotage is one of this file. */
export function isSqlSabotage(name: string | undefined): name is SqlSabotageName {
  return name !== undefined && Object.hasOwn(SQL_SABOTAGES, name);
}

/** Sabotages this process. */
export function sabotageSql(name: SqlSabotageName): void {
  SQL_SABOTAGES[name]();
}
