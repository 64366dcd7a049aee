/**
 * How many pings the file of a store really has, asked behind the gateway's back: what it acknowledged must be there,
 * or its figure is none.
 */
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';

/** A reader of one store's log. */
export class StoredPings {
  readonly #db: Database;

  /** The store in this data folder. */
  constructor(data: string) {
    this.#db = new SqliteDatabase(path.join(data, 'lockgate.sqlite'), { readonly: true });
  }

  /** The newest that there is; 0 where there is none. */
  lastId(): number {
    return this.#number('SELECT coalesce(max(id), 0) FROM uplink');
  }

  /** The oldest that there is. */
  firstId(): number {
    return this.#number('SELECT coalesce(min(id), 0) FROM uplink');
  }

  /** Pings that came after this one. */
  countAfter(id: number): number {
    return this.#number('SELECT count(*) FROM uplink WHERE id > ? AND kind > 0', id);
  }

  /** What `judge` has found fault with. */
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
