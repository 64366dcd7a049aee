/**
 * Counts the pings in a store's file without asking the gateway, to check that every acknowledged ping is stored.
 */
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';

/**
 * A reader of one store's table `uplink` of locks' messages. Acknowledgements of commands have the kind 0, pings a
 * larger one.
 */
export class StoredPings {
  readonly #db: Database;

  /** The store in this data folder. */
  constructor(data: string) {
    this.#db = new SqliteDatabase(path.join(data, 'lockgate.sqlite'), { readonly: true });
  }

  /** The id of the newest uplink; 0 if there is none. */
  lastId(): number {
    return this.#number('SELECT coalesce(max(id), 0) FROM uplink');
  }

  /** The id of the oldest uplink; 0 if there is none. */
  firstId(): number {
    return this.#number('SELECT coalesce(min(id), 0) FROM uplink');
  }

  /** The number of pings stored after the uplink with this id. */
  countAfter(id: number): number {
    return this.#number('SELECT count(*) FROM uplink WHERE id > ? AND kind > 0', id);
  }

  /** The number of stored findings: violations of the power model. */
  findings(): number {
    return this.#number('SELECT count(*) FROM finding');
  }

  #number(sql: string, ...values: number[]): number {
    return this.#db
      .prepare(sql)
      .pluck()
      .get(...values) as number;
  }

  close(): void {
    this.#db.close();
  }
}
