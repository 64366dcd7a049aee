/**
 * The connections to PostgreSQL. Each one is checked before it is used: commits wait for the disk (and for the standby,
 * where there is one), and the server is the one that the slot was claimed on. A notice while something commits means
 * that a wait for the standby was cancelled: the commit failed (docs/decisions.md).
 */
import pg from 'pg';
import { type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { StoreFailure } from '../../contract/errors.js';
import { QueryableSql, TYPES } from '../sql.js';
import { AnswerLimit } from './answer-limit.js';

/** How many reads run at once. */
const READ_CONNECTIONS = 6;
/** How many writes other than commits of uplinks run at once. */
const WRITE_CONNECTIONS = 3;
const CONNECT_TIMEOUT_MS = 5_000;
/** After this long without an answer a connection is given up: a commit waits for reads, other writes for locks. */
const READ_TIMEOUT = Seconds(10);
const WRITE_TIMEOUT = Seconds(30);

/** What each connection must have. */
const SESSION_SETTINGS = {
  // `on` waits for the synchronous standby too, if there is one; `remote_apply` is stronger, and left alone.
  synchronous_commit: 'on',
  client_min_messages: 'warning',
  lock_timeout: '10s',
  idle_in_transaction_session_timeout: '60s',
} as const;

/** Which database it is: a failover to another server, or a restored one, has another timeline or id. */
export interface ServerIdentity {
  readonly systemId: string;
  readonly timeline: number;
}

/** The options of every connection. */
function clientOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    types: TYPES,
    application_name: 'lockgate',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    options: Object.entries(SESSION_SETTINGS)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
  };
}

/**
 * Reads what a connection rests on.
 *
 * @throws LockgateError `store-unsafe` if a commit would not be durable, or the server is a standby
 */
export async function readIdentity(client: Pick<pg.Client, 'query'>): Promise<ServerIdentity> {
  const { rows } = await client.query(
    `SELECT current_setting('synchronous_commit') AS synchronous_commit, current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes, pg_is_in_recovery() AS is_standby,
       current_setting('server_version_num')::int AS version,
       (SELECT system_identifier::text FROM pg_control_system()) AS system_id,
       (SELECT timeline_id FROM pg_control_checkpoint()) AS timeline`,
  );
  const row = rows[0] as Record<string, unknown>;
  refuseUnsafe(row);
  return { systemId: String(row.system_id), timeline: Number(row.timeline) };
}

/** PostgreSQL 15.0, as its setting `server_version_num`. */
const MIN_VERSION = 150_000;

/** @throws LockgateError `store-unsafe` for a server with these settings */
export function refuseUnsafe(row: Readonly<Record<string, unknown>>): void {
  const refuse = (why: string): never => {
    throw new LockgateError('store-unsafe', `PostgreSQL can't store durably: ${why}`);
  };
  if (row.fsync !== 'on') refuse('its setting fsync is off');
  if (row.full_page_writes !== 'on') refuse('its setting full_page_writes is off');
  if (row.synchronous_commit !== 'on') refuse('synchronous_commit can’t be set to on');
  if (row.is_standby === true) refuse('it is a standby: connect to the primary');
  if (Number(row.version) < MIN_VERSION) refuse('it is older than PostgreSQL 15');
}

/** A client on which a commit fails if the server says anything about it. */
export class WatchedClient {
  readonly client: pg.Client;
  readonly sql: QueryableSql;
  #notices: string[] = [];

  constructor(client: pg.Client) {
    this.client = client;
    this.sql = new QueryableSql(client);
    client.on('notice', (notice) => this.#notices.push(notice.message ?? 'a warning'));
    // Nothing to do here: the query that runs, or the next one, rejects.
    client.on('error', () => undefined);
  }

  /** Runs a commit. @throws StoreFailure if the server gave a notice */
  async committing<T>(commit: () => Promise<T>): Promise<T> {
    this.#notices = [];
    const result = await commit();
    const [notice] = this.#notices;
    if (notice !== undefined) throw new StoreFailure('commit', new Error(notice));
    return result;
  }
}

/** All connections of a store. */
export class Connections {
  readonly #url: string;
  readonly #identity: ServerIdentity;
  readonly reads: pg.Pool;
  /** For writes other than commits of uplinks. */
  readonly writes: pg.Pool;
  /** For writes through Kysely that run one at a time. */
  readonly exclusive: pg.Pool;
  readonly read: QueryableSql;
  /** The only connection of `exclusive`, once there is one. */
  exclusiveClient: WatchedClient | undefined;
  readonly #watched = new WeakMap<object, WatchedClient>();
  readonly #limits: AnswerLimit[] = [];

  constructor(url: string, identity: ServerIdentity) {
    this.#url = url;
    this.#identity = identity;
    this.reads = this.#pool(READ_CONNECTIONS, READ_TIMEOUT);
    this.writes = this.#pool(WRITE_CONNECTIONS, WRITE_TIMEOUT);
    this.exclusive = this.#pool(1, WRITE_TIMEOUT);
    this.exclusive.on('connect', (client) => {
      this.exclusiveClient = this.watch(client);
    });
    this.read = new QueryableSql(this.reads);
  }

  /** Opens a connection that belongs to no pool; the caller closes it. */
  async open(): Promise<WatchedClient> {
    const client = new pg.Client(clientOptions(this.#url));
    const watched = new WatchedClient(client);
    try {
      await client.connect();
      await this.#refuseOther(client);
    } catch (error) {
      // A second failure, of closing, would only hide the first.
      void client.end().catch(() => undefined);
      throw error;
    }
    return watched;
  }

  /** The watch on a client of a pool. */
  watch(client: object): WatchedClient {
    const known = this.#watched.get(client) ?? new WatchedClient(client as pg.Client);
    this.#watched.set(client, known);
    return known;
  }

  /** Closes the idle connections of the pools: one that was in use has gone silent, so that they may have too. */
  suspectIdle(): void {
    for (const limit of this.#limits) limit.closeIdle();
  }

  async close(): Promise<void> {
    await Promise.all([this.reads.end(), this.writes.end(), this.exclusive.end()]);
  }

  #pool(max: number, timeout: Milliseconds): pg.Pool {
    const limit = new AnswerLimit(timeout, () => this.suspectIdle());
    this.#limits.push(limit);
    const onConnect = (client: pg.ClientBase): Promise<void> =>
      limit.check(client, () => this.#refuseOther(client as pg.Client));
    const pool = new pg.Pool({ ...clientOptions(this.#url), max, onConnect });
    limit.watch(pool);
    // An idle connection that breaks is replaced.
    pool.on('error', () => undefined);
    // If one breaks while it is lent, its query rejects, and Kysely has no listener for the event.
    pool.on('connect', (client) => client.on('error', () => undefined));
    return pool;
  }

  async #refuseOther(client: pg.Client): Promise<void> {
    const { systemId, timeline } = await readIdentity(client);
    if (systemId !== this.#identity.systemId || timeline !== this.#identity.timeline)
      throw new LockgateError('store-changed', 'the database was failed over or restored since the gateway started');
  }
}

/** Connects once, and returns which server answers. @throws what connecting throws */
export async function findServer(url: string): Promise<ServerIdentity> {
  return await withClient(url, readIdentity);
}

/** Runs `work` on a connection of its own, which is closed afterwards. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(clientOptions(url));
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
