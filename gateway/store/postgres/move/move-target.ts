/**
 * The database that a store is moved to (`db move`). All rows are written in one transaction, read back and compared in
 * it, so that an interrupted move leaves nothing. What is committed is marked as unfinished until the store in the
 * folder is marked as moved; until then no gateway starts on the database.
 */

import { LockgateError } from '../../../../proto/errors.js';
import { StoreFailure } from '../../contract/errors.js';
import { MAX_DENSE_ID } from '../../contract/log/log-position.js';
import type { AuditWho } from '../../contract/operators/audit-store.js';
import { MOVED_TABLES, MOVING_METADATA } from '../../move/moved-tables.js';
import { type MovedValue, RowsSum } from '../../move/rows-sum.js';
import { shownStoreUrl } from '../../store-url.js';
import { connectFailure } from '../connections/connect-failure.js';
import { Connections, findServer, type WatchedClient } from '../connections/connections.js';
import { randomNumber } from '../epoch-end.js';
import { migrate } from '../migrate.js';
import { lockSharing } from '../node-claim.js';
import { readUnfinishedMove } from '../unfinished-move.js';
import { insertRows, readStatement, storable, type TargetTable, targetTable, toMovedValues } from './target-tables.js';

/** Rows that are read back at once. */
const ROWS_PER_FETCH = 1_000;
/**
 * In place of a gateway's version, in the row of the table `node` for slot 0. The log is divided into slots, one for
 * each gateway; moved uplinks are in slot 0, which no gateway claims.
 */
const NO_VERSION = 'moved';

/** A table in SQLite, to be copied. */
export interface Copied {
  readonly name: string;
  readonly columns: readonly string[];
  /** The highest id that the table ever gave. */
  readonly lastId: bigint;
  readonly chunks: Iterable<MovedValue[][]>;
}

export class MoveTarget {
  readonly #url: string;
  readonly #connections: Connections;
  readonly #client: WatchedClient;

  private constructor(url: string, connections: Connections, client: WatchedClient) {
    this.#url = url;
    this.#connections = connections;
    this.#client = client;
  }

  /**
   * Connects, makes the tables, and excludes gateways until the end.
   *
   * @throws LockgateError `store-unreachable`, `store-refused`, `store-unsafe`, `store-newer`, `store-foreign`,
   * `data-in-use`
   */
  static async open(url: string): Promise<MoveTarget> {
    try {
      const server = await findServer(url);
      await migrate(url);
      const connections = new Connections(url, server);
      try {
        const client = await connections.open();
        const target = new MoveTarget(url, connections, client);
        await lockSharing(client, false);
        return target;
      } catch (error) {
        await connections.close();
        throw error;
      }
    } catch (error) {
      throw connectFailure(error, url);
    }
  }

  /** The id of a move to this database that was not finished; null if there was none. */
  async readUnfinished(): Promise<string | null> {
    return await readUnfinishedMove(this.#client.sql);
  }

  /** @throws LockgateError `store-not-empty` if any table that a move fills has a row */
  async requireEmpty(): Promise<void> {
    for (const table of [...MOVED_TABLES, 'node']) {
      if ((await this.#client.sql.get(`SELECT 1 AS one FROM ${table} LIMIT 1`)) === undefined) continue;
      const what = `${shownStoreUrl(this.#url)} is not empty: its table ${table} has rows`;
      throw new LockgateError('store-not-empty', `${what}. Make a new database with createdb, and move to that`);
    }
  }

  /**
   * Runs `work` in a transaction that first empties the tables of what an unfinished move left, and that also commits
   * the mark of this unfinished move.
   *
   * @param move the id of the move
   */
  async filling(move: string, work: () => Promise<void>): Promise<void> {
    const { sql } = this.#client;
    await sql.run('BEGIN');
    try {
      await sql.run(`TRUNCATE ${[...MOVED_TABLES, 'url_cursor', 'merchant_kept', 'node'].join(', ')}`);
      await sql.run('INSERT INTO node (slot, epoch, session, version, released) VALUES (0, @a, @b, @version, true)', {
        a: randomNumber(),
        b: randomNumber(),
        version: NO_VERSION,
      });
      await sql.run(
        `CREATE TABLE IF NOT EXISTS uplink_moved PARTITION OF uplink
         FOR VALUES FROM (MINVALUE) TO (${MAX_DENSE_ID + 1})`,
      );
      await work();
      await sql.run(`INSERT INTO fact (name, value) VALUES ('${MOVING_METADATA}', @move)`, { move });
      await this.#client.committing(() => sql.run('COMMIT'));
    } catch (error) {
      await sql.run('ROLLBACK').catch(() => undefined);
      throw error instanceof LockgateError ? error : new StoreFailure(`fill ${shownStoreUrl(this.#url)}`, error);
    }
  }

  /**
   * Copies a table and reads it back. Only in {@link filling}.
   *
   * @param onRows called with the number of rows written so far
   * @returns how many rows were copied, and how many of them had texts with U+0000, which were replaced
   * @throws LockgateError `move-differs` if the rows that the database has are not those that were sent
   */
  async copy(copied: Copied, onRows: (count: number) => void): Promise<{ rows: number; replaced: number }> {
    const { sql } = this.#client;
    const table = await targetTable(sql, copied.name, copied.columns);
    const sent = new RowsSum();
    let replaced = 0;
    for (const chunk of copied.chunks) {
      const rows = chunk.map((row) => storable(table, row));
      // `storable` returns the given row unless it replaces something in it.
      replaced += rows.filter((row, index) => row !== chunk[index]).length;
      for (const row of rows) sent.add(row);
      await insertRows(sql, table, rows);
      onRows(sent.count);
    }
    const stored = await this.#sumStored(table);
    if (!stored.equals(sent))
      throw new LockgateError(
        'move-differs',
        `the table ${table.name} has ${sent.count} rows with the checksum ${sent.sum}, but in the database ` +
          `${stored.count} with ${stored.sum}: nothing was moved`,
      );
    if (copied.lastId > 0n)
      // Without effect for tables that give no ids.
      await sql.get(`SELECT setval(pg_get_serial_sequence('${table.name}', 'id'), @lastId::bigint) AS last`, {
        lastId: copied.lastId,
      });
    return { rows: sent.count, replaced };
  }

  /** Records in the database's audit log who moved the store. Only in {@link filling}. */
  async note({ actor, agent, osUser }: AuditWho, from: string, atMs: number): Promise<void> {
    await this.#client.sql.run(
      `INSERT INTO audit (at_ms, actor, agent, os_user, action, object, after, outcome, ended_at_ms)
       VALUES (@atMs, @actor, @agent, @osUser, 'store.move', '', @after, 'done', @atMs)`,
      { atMs, actor, agent, osUser, after: JSON.stringify({ from, to: shownStoreUrl(this.#url) }) },
    );
  }

  /** Takes the mark of the unfinished move away: from now on a gateway starts on the database. */
  async finish(): Promise<void> {
    await this.#client.committing(() => this.#client.sql.run(`DELETE FROM fact WHERE name = '${MOVING_METADATA}'`));
  }

  async close(): Promise<void> {
    await this.#client.client.end().catch(() => undefined);
    await this.#connections.close();
  }

  async #sumStored(table: TargetTable): Promise<RowsSum> {
    const { sql } = this.#client;
    const stored = new RowsSum();
    await sql.run(`DECLARE moved_rows NO SCROLL CURSOR FOR ${readStatement(table)}`);
    for (;;) {
      const rows = await sql.all<Record<string, MovedValue>>(`FETCH ${ROWS_PER_FETCH} FROM moved_rows`);
      if (rows.length === 0) break;
      for (const row of rows) stored.add(toMovedValues(table, row));
    }
    await sql.run('CLOSE moved_rows');
    return stored;
  }
}
