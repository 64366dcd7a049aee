/** Opens a store by its URL. This is the only file that knows which engines there are. */
import { LockgateError } from '../../proto/errors.js';
import { openFailure } from './contract/errors.js';
import type { Store } from './contract/store.js';
import type { StoreOptions } from './contract/store-options.js';
import { openSqliteStore } from './sqlite/sqlite-store.js';

/** Opens the store that the part of the URL behind the scheme names. */
type OpenEngine = (place: string, options: StoreOptions) => Promise<Store>;

interface Engine {
  /** The form of its URLs, for people. */
  readonly form: string;
  readonly open: OpenEngine;
}

/** The engines by the scheme of their URLs. */
const ENGINES: ReadonlyMap<string, Engine> = new Map([
  ['sqlite', { form: 'sqlite:DATA_FOLDER', open: openSqliteStore }],
]);

/** The URL of the SQLite store in a data folder. The path stands in it as it is: nothing is escaped. */
export function sqliteUrl(folder: string): string {
  return `sqlite:${folder}`;
}

/**
 * Opens a store, creating it where it isn't there, and takes it for this process.
 *
 * @param url `sqlite:` and the path of a data folder
 * @throws LockgateError `input-store` for a URL of no known engine; what the engine throws: `data-in-use`,
 * `store-missing`, `store-damaged`, `store-newer`, `store-unsafe` …
 * @throws StoreFailure where it can't be read or written
 */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const [, scheme = '', place = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url) ?? [];
  const engine = ENGINES.get(scheme.toLowerCase());
  if (engine === undefined || place === '') throw badUrl(engine === undefined ? scheme : null);
  try {
    return await engine.open(place, options);
  } catch (error) {
    throw openFailure(error);
  }
}

/** Only the scheme is quoted: the rest of a URL may hold a password. */
function badUrl(scheme: string | null): LockgateError {
  const forms = [...ENGINES.values()].map(({ form }) => form).join(', ');
  const what = { '': 'it has no scheme', null: 'nothing follows its scheme' }[String(scheme)];
  return new LockgateError(
    'input-store',
    `the URL of the store is not one: ${what ?? `there is no engine for "${scheme}:"`}; expected ${forms}`,
  );
}
