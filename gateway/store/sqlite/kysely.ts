/**
 * The values of Kysely that the store uses. Its types come from the package itself, `import type … from 'kysely'`; a
 * rule of dependency-cruiser keeps it so.
 */
import { Kysely, Migrator, SqliteAdapter, SqliteDialect, sql } from 'kysely';

export { Kysely, Migrator, SqliteAdapter, SqliteDialect, sql };
