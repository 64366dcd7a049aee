/**
 * Keeps the prepared statements of a connection that only reads, by their text. Kysely asks for a new one at each
 * query, and SQLite takes as long to prepare a short query as to answer it. Must not be used for statements that are
 * read row by row (`iterate`): one statement can't be read twice at the same time.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { SqliteDatabase } from 'kysely';

/** Maximum number of statements: a list of values makes another text for each length, so there may be very many. */
const MAX_STATEMENTS = 500;

/** The connection, for Kysely's dialect. */
export function withStatementCache(db: Database): SqliteDatabase {
  const statements = new Map<string, Statement>();
  const prepare = (text: string): Statement => {
    const known = statements.get(text);
    if (known !== undefined) return known;
    const statement = db.prepare(text);
    if (statements.size >= MAX_STATEMENTS) statements.clear();
    statements.set(text, statement);
    return statement;
  };
  return { prepare: prepare as SqliteDatabase['prepare'], close: () => void db.close() };
}
