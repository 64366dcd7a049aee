/**
 * A primary with a synchronous standby, for tests of a failover: a commit is acknowledged once both have it on their
 * disks. The standby can be promoted after the primary was killed, and gets a standby of its own.
 */
import { Seconds, systemClock } from '../../../../proto/clock.js';
import type { Teardown } from '../temp-folder.js';
import {
  copyForStandby,
  type PostgresServer,
  runServer,
  type ServerOptions,
  serverFolder,
  startPostgres,
} from './server.js';

/**
 * How much of its log a primary keeps for a standby that is behind. Else, if the primary's processes crash meanwhile,
 * the standby finds its place in the log gone, never follows again, and no commit is acknowledged.
 */
const RETAINED_LOG = '256MB';
/** How often it is checked whether a new standby follows. */
const POLL_INTERVAL = Seconds(0.1);

/** The two servers. */
export class ReplicatedPostgres {
  readonly #test: Teardown;
  readonly #options: ServerOptions;
  #primary: PostgresServer;
  #standby: PostgresServer | undefined;

  private constructor(test: Teardown, options: ServerOptions, primary: PostgresServer) {
    this.#test = test;
    this.#options = options;
    this.#primary = primary;
  }

  /** Starts both servers, which end after the test. All servers get the options. */
  static async start(test: Teardown, options: ServerOptions = {}): Promise<ReplicatedPostgres> {
    const settings = { wal_keep_size: RETAINED_LOG, ...options.settings };
    const all = { ...options, settings };
    const pair = new ReplicatedPostgres(test, all, await startPostgres(test, all));
    await pair.#addStandby();
    return pair;
  }

  get primary(): PostgresServer {
    return this.#primary;
  }

  /** The process id of the primary's process that sends the log to the standby. */
  async senderPid(): Promise<number> {
    const [row] = await this.#primary.query('postgres', 'SELECT pid FROM pg_stat_replication');
    return Number(row?.pid ?? 0);
  }

  /**
   * Kills the primary and promotes the standby, which then gets a standby of its own. Calls `onPromoted` when the new
   * primary takes writes, and resolves when its standby follows.
   */
  async failOver(onPromoted: () => void = () => undefined): Promise<void> {
    const standby = this.#standby;
    if (standby === undefined) throw new Error('there is no standby');
    process.kill(this.#primary.pid, 'SIGKILL');
    await standby.query('postgres', 'SELECT pg_promote(true)');
    this.#primary = standby;
    this.#standby = undefined;
    onPromoted();
    await this.#addStandby();
  }

  /** Replaces the primary's data by a copy (`backUp`), and gives it a new standby: the present one is ahead of it. */
  async goBackTo(copy: string): Promise<void> {
    if (this.#standby !== undefined) process.kill(this.#standby.pid, 'SIGKILL');
    this.#standby = undefined;
    await this.#primary.goBackTo(copy);
    await this.#addStandby();
  }

  /** Makes a standby of a copy of the primary; from then on commits wait for it. */
  async #addStandby(): Promise<void> {
    const folder = serverFolder();
    copyForStandby(this.#primary, folder);
    this.#standby = await runServer(this.#test, folder, this.#options);
    const query = (statement: string) => this.#primary.query('postgres', statement);
    while ((await query(`SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'`)).length === 0)
      await new Promise<void>((resolve) => systemClock.after(POLL_INTERVAL, resolve));
    await query(`ALTER SYSTEM SET synchronous_standby_names = '*'`);
    await query('SELECT pg_reload_conf()');
  }
}
