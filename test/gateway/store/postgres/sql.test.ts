/** Statements with named parameters, and those that the server plans once: they have a name, and few texts. */
import type pg from 'pg';
import t from 'tap';
import { plannedOnce, QueryableSql, roundUpLimit } from '../../../../gateway/store/postgres/sql.js';

type Query = { readonly text: string; readonly values: readonly unknown[]; readonly name?: string };

/** A connection that notes the queries and answers without rows. */
function notedQueries(): { readonly queries: Query[]; readonly connection: Pick<pg.Client, 'query'> } {
  const queries: Query[] = [];
  const query = async (asked: Query) => {
    queries.push(asked);
    return { rows: [], rowCount: 0 };
  };
  return { queries, connection: { query } as unknown as Pick<pg.Client, 'query'> };
}

t.test('names of parameters become numbers, and a name that occurs twice has one', async (t) => {
  const { queries, connection } = notedQueries();
  await new QueryableSql(connection).all('SELECT @a, @b::text, @a', { b: 'x', a: 1 });
  t.same(queries, [{ text: 'SELECT $1, $2::text, $1', values: [1, 'x'] }], 'and the statement has no name');
});

t.test('a statement that is planned once has one name, and each text its own; others have none', async (t) => {
  const { queries, connection } = notedQueries();
  const sql = new QueryableSql(connection);
  const [one, other] = [plannedOnce('SELECT @a + 1'), plannedOnce('SELECT @a + 2')];
  for (const statement of [one, other, one, 'SELECT @a + 3']) await sql.all(statement, { a: 1 });
  const [first, second, again, unmarked] = queries.map(({ name }) => name);
  t.ok(first && second, `${first}, ${second}`);
  t.not(first, second);
  t.equal(again, first);
  t.equal(unmarked, undefined);
});

t.test('limits are rounded up, to few different ones', async (t) => {
  const limits = Array.from({ length: 5_000 }, (_, index) => index + 1);
  t.ok(limits.every((limit) => roundUpLimit(limit) >= limit && roundUpLimit(limit) < 2 * limit));
  t.equal(new Set(limits.map(roundUpLimit)).size, 14);
  t.equal(roundUpLimit(0), 1);
  t.equal(roundUpLimit(Number.MAX_SAFE_INTEGER), 2 ** 30, 'a number that PostgreSQL takes');
});
