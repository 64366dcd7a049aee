/** Opens a store by its URL. Only this file, store-at-rest.ts and store-move.ts may import a storage engine. */
import { LockgateError } from '../../proto/errors.js';
import { openFailure } from './contract/errors.js';
import type { Store } from './contract/store.js';
import type { StoreOptions } from './contract/store-options.js';
import { openSqliteStore } from './sqlite/open-sqlite-store.js';

/** Opens a store. `location` is the part of the URL after the scheme. */
type OpenEngine = (location: string, options: StoreOptions) => Promise<Store>;

interface Engine {
  /** The form of the engine's URLs, for error messages. */
  readonly urlForm: string;
  readonly open: OpenEngine;
}

/** The engines, by URL scheme. */
const ENGINES: ReadonlyMap<string, Engine> = new Map([
  ['sqlite', { urlForm: 'sqlite:DATA_FOLDER', open: openSqliteStore }],
  ['postgres', { urlForm: 'postgres://USER:PASSWORD@HOST:PORT/DATABASE', open: openPostgres }],
]);

/** The engine with its driver is loaded only for a URL of its scheme, so that a start on SQLite does not pay for it. */
async function openPostgres(location: string, options: StoreOptions): Promise<Store> {
  const { openPostgresStore } = await import('./postgres/open-postgres-store.js');
  return await openPostgresStore(`postgres:${location}`, options);
}

/** Returns the URL of the SQLite store in a data folder. The path is not escaped. */
export function sqliteUrl(folder: string): string {
  return `sqlite:${folder}`;
}

/**
 * Opens a store, creating it if it doesn't exist, and locks it for this process.
 *
 * @param url `sqlite:` and the path of a data folder, or the URL of a PostgreSQL database
 * @throws LockgateError `input-store` for a URL with an unknown scheme; what the engine throws: `data-in-use`,
 * `store-missing`, `store-damaged`, `store-newer`, `store-unsafe`, `store-unreachable` …
 * @throws StoreFailure if the store can't be read or written
 */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  // The scheme, as RFC 3986 defines it, a colon, and the location: `sqlite:./data`.
  const [, scheme = '', location = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url) ?? [];
  const engine = ENGINES.get(scheme.toLowerCase());
  if (engine === undefined) throw badUrl(scheme === '' ? 'it has no scheme' : `there is no engine for "${scheme}:"`);
  if (location === '') throw badUrl('nothing follows its scheme');
  try {
    return await engine.open(location, options);
  } catch (error) {
    throw openFailure(error);
  }
}

/** The error for a wrong URL. `problem` may quote the scheme, but nothing after it, which may contain a password. */
function badUrl(problem: string): LockgateError {
  const forms = [...ENGINES.values()].map(({ urlForm }) => urlForm).join(', ');
  return new LockgateError('input-store', `the URL of the store is invalid: ${problem}; expected ${forms}`);
}
