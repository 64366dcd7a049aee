/**
 * Kysely's values, loaded once. Its ES modules are 262 files, and looking each of them up cost every process that loads
 * the store 137 ms of CPU; the same package as CommonJS costs 97 ms, and node keeps it out of the loader's way. Its
 * types come from the package itself, `import type … from 'kysely'`; a rule of dependency-cruiser keeps it so.
 */
import { createRequire } from 'node:module';

const kysely: typeof import('kysely') = createRequire(import.meta.url)('kysely');

export const { Kysely, Migrator, SqliteAdapter, SqliteDialect, sql } = kysely;

/** The type of that name, for who needs both. */
export type Kysely<Tables> = import('kysely').Kysely<Tables>;
