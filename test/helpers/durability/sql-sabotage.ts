/**
 * Sabotages that change what a gateway sends to PostgreSQL. Each commit contains a *fence*: a condition that lets it
 * store nothing once the gateway's claim on its part of the database has ended, since other gateways may have taken
 * over by then. The sabotages remove the fence, or make it compare numbers that can occur twice. They change the driver
 * of the whole process, so only a gateway in a process of its own may have one.
 */
import crypto from 'node:crypto';
import pg from 'pg';

/** The sabotages of this file. */
export type SqlSabotageName = 'no-fence' | 'unfenced-uplinks' | 'counted-epochs';

/** The fence of a commit, as the driver gets it. */
const FENCE = /SELECT 1 FROM node WHERE slot = \$1 AND epoch = \$2 AND session = \$3 FOR NO KEY UPDATE/;
/** What replaces the fence: a row in any case, with the same parameters. */
const NO_FENCE = 'SELECT 1 WHERE $1::bigint + $2::bigint + $3::bigint IS NOT NULL';
/** The part of a commit that stores uplinks, up to the place where its rows come from, which joins the fence (`f`). */
const UPLINKS = /(INSERT INTO uplink \([^)]*\)\s*SELECT[^;]*? AS staged_id) FROM f\)/;

/** A second number in the fence, which is new with each connection, and where it is looked for. */
const SESSION = /AND session = (\$\d+)(?= FOR NO KEY UPDATE)/;
const KNOWN_SESSIONS = /AND session = ANY\((\$\d+)\)/;
/** How many random bytes an epoch is made of. */
const EPOCH_BYTES = 7;
/** Counted epochs stay below this, and random numbers are above it. */
const MAX_COUNTED = 1_000_000;

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

/** The highest counted epoch in the database; 0 in a new one. */
async function readLastEpoch(store: string): Promise<number> {
  const client = new pg.Client(store);
  try {
    await client.connect();
    const { rows } = await client.query(
      'SELECT max(epoch) AS last FROM (SELECT epoch FROM node UNION SELECT epoch FROM ended_epoch) e WHERE epoch < $1',
      [MAX_COUNTED],
    );
    return Number((rows[0] as { last: unknown }).last ?? 0);
  } catch {
    return 0;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Lets this process draw, instead of its first random number of an epoch's size, the number after the last counted
 * epoch. The process takes it as its epoch: that is the first one that a claim of a slot draws (node-claim.ts).
 */
async function countEpochs(store: string): Promise<void> {
  const epoch = (await readLastEpoch(store)) + 1;
  const random = crypto.randomBytes;
  let isDrawn = false;
  const draw = (size: number): Buffer => {
    if (isDrawn || size !== EPOCH_BYTES) return random(size);
    isDrawn = true;
    return Buffer.from(epoch.toString(16).padStart(2 * size, '0'), 'hex');
  };
  Object.assign(crypto, { randomBytes: draw });
}

/** How each sabotage changes a statement; one without what it is about stays as it is. */
export const STATEMENT_CHANGES: Readonly<Record<SqlSabotageName, (text: string) => string>> = {
  /** Commits are stored although the claim has ended. */
  'no-fence': (text) => text.replace(FENCE, () => NO_FENCE),

  /** One part of a commit, the uplinks, is stored although the claim has ended. */
  'unfenced-uplinks': (text) => text.replace(UPLINKS, '$1)'),

  /**
   * Epochs are 1, 2, 3 and so on instead of random numbers, so that a database that was set back to an older state
   * gives one out again; and the fence ignores sessions, which would tell the two apart.
   */
  'counted-epochs': (text) =>
    text
      .replace(SESSION, (_, value: string) => `AND ${value}::bigint IS NOT NULL`)
      .replace(KNOWN_SESSIONS, (_, value: string) => `AND ${value}::bigint[] IS NOT NULL`),
};

/** Whether a sabotage is one of this file. */
export function isSqlSabotage(name: string | undefined): name is SqlSabotageName {
  return name !== undefined && Object.hasOwn(STATEMENT_CHANGES, name);
}

/** Sabotages this process, whose store is a database with this URL. */
export async function sabotageSql(name: SqlSabotageName, store: string): Promise<void> {
  if (name === 'counted-epochs') await countEpochs(store);
  changeStatements(STATEMENT_CHANGES[name]);
}
