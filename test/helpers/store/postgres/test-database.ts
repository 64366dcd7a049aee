/**
 * Databases on one PostgreSQL server for a test file. Tests that run with every engine name a store by its folder, as
 * SQLite needs it; here each folder stands for a database.
 */
import type { Store } from '../../../../gateway/store/contract/store.js';
import type { StoreOptions } from '../../../../gateway/store/contract/store-options.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import type { Teardown } from '../temp-folder.js';
import { type PostgresServer, startPostgres } from './server.js';

/** Opens stores on one server; each folder stands for a database of its own. */
export class TestDatabases {
  readonly #test: Teardown;
  #server: Promise<PostgresServer> | undefined;
  #template: Promise<string> | undefined;
  readonly #urls = new Map<string, Promise<string>>();

  /** @param test the server ends after it */
  constructor(test: Teardown) {
    this.#test = test;
  }

  /** The server, which starts at the first call. */
  server(): Promise<PostgresServer> {
    this.#server ??= startPostgres(this.#test);
    return this.#server;
  }

  /** The URL of the database that a folder stands for. */
  urlOf(folder: string): Promise<string> {
    const url = this.#urls.get(folder) ?? this.#make();
    this.#urls.set(folder, url);
    return url;
  }

  /** Opens the store in the database of a folder, and makes the database if it is new. */
  async open(folder: string, options?: StoreOptions): Promise<Store> {
    return await openPostgresStore(await this.urlOf(folder), options);
  }

  /** A copy of a database with the tables of a new store. */
  async #make(): Promise<string> {
    const server = await this.server();
    this.#template ??= this.#makeTemplate(server);
    return await server.createDatabase(await this.#template);
  }

  async #makeTemplate(server: PostgresServer): Promise<string> {
    const url = await server.createDatabase();
    await (await openPostgresStore(url)).close();
    const name = new URL(url).pathname.slice(1);
    // A gateway leaves rows about itself (`node`) in its store. The copies must be stores that had no gateway yet.
    await server.query(name, 'DELETE FROM node');
    await server.query(name, 'DELETE FROM node_beat');
    return name;
  }
}
