/**
 * The classes and functions of Kysely (a query builder) that the store uses. Only this file may import them; Kysely's
 * types come from the package itself, `import type … from 'kysely'`. A rule of dependency-cruiser checks this.
 */
import {
  CompiledQuery,
  Kysely,
  Migrator,
  PostgresDialect,
  PostgresDriver,
  SqliteAdapter,
  SqliteDialect,
  sql,
} from 'kysely';

export type { DatabaseConnection, Driver, RawBuilder, TransactionSettings } from 'kysely';
export { CompiledQuery, Kysely, Migrator, PostgresDialect, PostgresDriver, SqliteAdapter, SqliteDialect, sql };
