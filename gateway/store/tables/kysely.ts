/**
 * The classes and functions of Kysely (a query builder) that the store uses. Only this file may import them; Kysely's
 * types come from the package itself, `import type … from 'kysely'`. A rule of dependency-cruiser checks this.
 */
import { Kysely, Migrator, PostgresDialect, SqliteAdapter, SqliteDialect, sql } from 'kysely';

export type { RawBuilder } from 'kysely';
export { Kysely, Migrator, PostgresDialect, SqliteAdapter, SqliteDialect, sql };
