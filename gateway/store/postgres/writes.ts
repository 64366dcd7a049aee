/**
 * Transactions other than commits of uplinks, each behind the fence (fence.ts): a transaction fails once another
 * process has taken over this one's slot. Exclusive ones run one at a time over all gateways, by a lock of the
 * database, so that a limit can be counted and then written.
 */
import { afterThisTurn } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { failureKind, isUnstorableText, StoreFailure, unstorableText } from '../contract/errors.js';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresDialect,
  PostgresDriver,
  type TransactionSettings,
} from '../tables/kysely.js';
import type { Tables } from '../tables/schema.js';
import type { ExclusiveWrites } from '../tables/table-parts.js';
import type { Connections } from './connections/connections.js';
import { takeSharedFence } from './fence.js';
import { ADVISORY_LOCKS } from './migrate.js';
import type { Claim } from './node-claim.js';
import { numbered, type Sql, type Values } from './sql.js';

/** The advisory lock of exclusive writes; merchants' locks are of another kind, by the merchant's id. */
const EXCLUSIVE_LOCK = 2;
const MERCHANT_LOCKS = ADVISORY_LOCKS + 1;

/** What a transaction excludes: other exclusive ones, others for the same merchant, or none. */
export type Excludes = 'exclusive' | { readonly merchantId: number } | undefined;
/** Two transactions waited for each other, and this one was undone: it can run again. */
const DEADLOCK_CODES: ReadonlySet<unknown> = new Set(['40P01', '40001']);
const MAX_TRIES = 5;

export class Writes implements ExclusiveWrites {
  readonly #connections: Connections;
  readonly #claim: Claim;
  /** The last exclusive write of this process that goes through Kysely. */
  #last: Promise<unknown> = Promise.resolve();
  /** How many transactions of {@link run} are running. */
  #running = 0;
  /** Kysely for `runExclusive`. */
  readonly tables: Kysely<Tables>;

  constructor(connections: Connections, claim: Claim) {
    this.#connections = connections;
    this.#claim = claim;
    const begin = (sql: Sql): Promise<void> => this.#begin(sql, 'exclusive');
    this.tables = new Kysely<Tables>({ dialect: new FencedDialect(connections, begin) });
  }

  runExclusive<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(async () => {
      try {
        return await this.#retrying(async () => await work());
      } catch (error) {
        throw failureOf('write', error);
      }
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  /**
   * Runs a transaction.
   *
   * @param action completes a failure's message "the store could not …"
   * @param work may run again after a deadlock
   */
  async run<T>(action: string, work: (sql: Sql) => Promise<T>, excludes?: Excludes): Promise<T> {
    try {
      return await this.#retrying(() => this.#transaction(work, excludes));
    } catch (error) {
      throw failureOf(action, error);
    }
  }

  /** Resolves when no write runs. */
  async idle(): Promise<void> {
    await this.#last;
    while (this.#running > 0) await new Promise<void>(afterThisTurn);
  }

  async #transaction<T>(work: (sql: Sql) => Promise<T>, excludes: Excludes): Promise<T> {
    this.#running += 1;
    const client = await this.#connections.writes.connect().catch((error: unknown) => {
      this.#running -= 1;
      throw error;
    });
    const watched = this.#connections.watch(client);
    // A connection that could neither commit nor roll back is closed instead of going back to the pool.
    let isBroken = true;
    try {
      await client.query('BEGIN');
      await this.#begin(watched.sql, excludes);
      const result = await work(watched.sql);
      await watched.committing(() => client.query('COMMIT'));
      isBroken = false;
      return result;
    } catch (error) {
      const isLost = failureKind(error) === 'away';
      isBroken =
        isLost ||
        (await client.query('ROLLBACK').then(
          () => false,
          () => true,
        ));
      throw error;
    } finally {
      client.release(isBroken);
      this.#running -= 1;
    }
  }

  async #begin(sql: Sql, excludes: Excludes): Promise<void> {
    await takeSharedFence(sql, this.#claim);
    if (excludes === 'exclusive')
      await sql.get('SELECT pg_advisory_xact_lock(@locks::int, @lock::int)', {
        locks: ADVISORY_LOCKS,
        lock: EXCLUSIVE_LOCK,
      });
    else if (excludes !== undefined) await excludeOthersFor(sql, excludes.merchantId);
  }

  async #retrying<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1)
      try {
        return await work();
      } catch (error) {
        const { code } = error as { code?: unknown };
        if (!DEADLOCK_CODES.has(code) || tries === MAX_TRIES) throw error;
      }
  }
}

/** For a transaction that learns only from what it reads which merchant it is for: excludes others for that one. */
export async function excludeOthersFor(sql: Sql, merchantId: number): Promise<void> {
  await sql.get('SELECT pg_advisory_xact_lock(@locks::int, @lock::int)', { locks: MERCHANT_LOCKS, lock: merchantId });
}

/** What a failed write throws: a StoreFailure, or the mistake of its caller as it is. */
function failureOf(action: string, error: unknown): unknown {
  if (isUnstorableText(error)) return error instanceof LockgateError ? error : unstorableText(error);
  if (error instanceof StoreFailure) return error;
  return failureKind(error) !== 'other' || isOfDatabase(error) ? new StoreFailure(action, error) : error;
}

/** Whether the database, and not the caller, caused an error. */
function isOfDatabase(error: unknown): boolean {
  const { name } = error as { name?: string };
  return name === 'error' || name === 'DatabaseError';
}

/** Kysely's dialect, whose transactions begin with the fence. */
class FencedDialect extends PostgresDialect {
  readonly #connections: Connections;
  readonly #begin: (sql: Sql) => Promise<void>;

  constructor(connections: Connections, begin: (sql: Sql) => Promise<void>) {
    super({ pool: connections.exclusive });
    this.#connections = connections;
    this.#begin = begin;
  }

  override createDriver(): Driver {
    return new FencedDriver(this.#connections, this.#begin);
  }
}

/** Begins each transaction of Kysely with the fence, and fails a commit that the server answers with a notice. */
class FencedDriver extends PostgresDriver {
  readonly #connections: Connections;
  readonly #begin: (sql: Sql) => Promise<void>;

  constructor(connections: Connections, begin: (sql: Sql) => Promise<void>) {
    super({ pool: connections.exclusive });
    this.#connections = connections;
    this.#begin = begin;
  }

  override async beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    await super.beginTransaction(connection, settings);
    await this.#begin(sqlOf(connection));
  }

  override async commitTransaction(connection: DatabaseConnection): Promise<void> {
    const client = this.#connections.exclusiveClient;
    if (client === undefined) await super.commitTransaction(connection);
    else await client.committing(() => super.commitTransaction(connection));
  }
}

/** Statements on a connection of Kysely. */
function sqlOf(connection: DatabaseConnection): Sql {
  const query = (statement: string, values: Values = {}) => {
    const { text, names } = numbered(statement);
    return connection.executeQuery(
      CompiledQuery.raw(
        text,
        names.map((name) => values[name] ?? null),
      ),
    );
  };
  return {
    all: async <Row>(statement: string, values?: Values) => (await query(statement, values)).rows as Row[],
    get: async <Row>(statement: string, values?: Values) => (await query(statement, values)).rows[0] as Row | undefined,
    run: async (statement, values) => Number((await query(statement, values)).numAffectedRows ?? 0),
  };
}
