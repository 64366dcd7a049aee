/** Hand-written SQL within a transaction of Kysely. */
import { CompiledQuery, type Kysely } from '../../tables/kysely.js';
import type { Tables } from '../../tables/schema.js';
import { numbered, type Sql, type Values } from '../sql.js';

export function kyselySql(db: Kysely<Tables>): Sql {
  const query = (statement: string, values: Values = {}) => {
    const { text, names } = numbered(statement);
    return db.executeQuery(
      CompiledQuery.raw(
        text,
        names.map((name) => values[name] ?? null),
      ),
    );
  };
  return {
    all: async <Row>(statement: string, values?: Values) => (await query(statement, values)).rows as Row[],
    get: async <Row>(statement: string, values?: Values) => (await query(statement, values)).rows[0] as Row | undefined,
    run: async (statement, values) => Number((await query(statement, values)).numAffectedRows ?? 0),
  };
}
