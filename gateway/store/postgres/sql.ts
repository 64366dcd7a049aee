/**
 * Runs hand-written SQL with named parameters, `@name`, as the SQLite engine's statements have them. Numbers come back
 * as numbers: ids and counts stay below 2 ** 53, and what may be larger (users' ids) is read as text.
 */
import pg from 'pg';

/** Values by name. An array is a parameter for `= ANY(@ids)` or `unnest(@ids::bigint[])`. */
export type Values = Readonly<Record<string, unknown>>;

/** A connection, or a pool of them. */
export interface Sql {
  /** Returns all rows. */
  all<Row>(statement: string, values?: Values): Promise<Row[]>;
  /** Returns the first row; undefined if there is none. */
  get<Row>(statement: string, values?: Values): Promise<Row | undefined>;
  /** Returns the number of rows that the statement inserted, changed or deleted. */
  run(statement: string, values?: Values): Promise<number>;
}

interface NumberedStatement {
  readonly text: string;
  readonly names: readonly string[];
}

/** PostgreSQL's ids of the types `bigint` and `numeric`, which the driver would return as texts. */
const INT8_OID = 20;
const NUMERIC_OID = 1700;

/** How values are read from PostgreSQL's texts. The cast: the driver's types ask for an overload for each format. */
export const TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8_OID || oid === NUMERIC_OID ? Number : pg.types.getTypeParser(oid, format)) as never,
};

/** Limits are rounded up to at most 2 ** 30, which is more rows than any caller wants. */
const MAX_LIMIT_BITS = 30;
/** Maximum number of statements whose numbered form is remembered; beyond it, all are forgotten. */
const MAX_REMEMBERED = 1_000;
const remembered = new Map<string, NumberedStatement>();

/** Replaces `@name` by `$1`, `$2` … */
export function numbered(statement: string): NumberedStatement {
  const known = remembered.get(statement);
  if (known !== undefined) return known;
  const names: string[] = [];
  const text = statement.replaceAll(/@(\w+)/g, (_, name: string) => {
    const index = names.indexOf(name);
    return `$${index === -1 ? names.push(name) : index + 1}`;
  });
  if (remembered.size >= MAX_REMEMBERED) remembered.clear();
  const made = { text, names };
  remembered.set(statement, made);
  return made;
}

/** The names under which connections remember the statements that are planned once, by their texts. */
const planNames = new Map<string, string>();

/**
 * Marks a statement that runs many times a second, for which planning can cost more than running: the server parses and
 * plans it once for each connection. Any other it plans each time, with the statement's values in view. Only for a
 * statement of few different texts, since each text has a plan of its own on each connection.
 *
 * @returns the statement
 */
export function plannedOnce(statement: string): string {
  if (!planNames.has(statement)) planNames.set(statement, `lockgate_${planNames.size + 1}`);
  return statement;
}

/**
 * Rounds a limit up to a power of two, for the text of a statement that is planned once. Few different limits make few
 * different texts, and each text has a plan of its own on each connection. The caller must drop the surplus rows. The
 * limit is no parameter: the planner would assume that it is a tenth of all rows, and then may not use the index.
 */
export function roundUpLimit(limit: number): number {
  return 2 ** Math.min(Math.ceil(Math.log2(Math.max(limit, 1))), MAX_LIMIT_BITS);
}

/** Statements on a connection or a pool. */
export class QueryableSql implements Sql {
  readonly #queryable: Pick<pg.Client | pg.Pool, 'query'>;

  constructor(queryable: Pick<pg.Client | pg.Pool, 'query'>) {
    this.#queryable = queryable;
  }

  async all<Row>(statement: string, values: Values = {}): Promise<Row[]> {
    return (await this.#query(statement, values)).rows as Row[];
  }

  async get<Row>(statement: string, values: Values = {}): Promise<Row | undefined> {
    return (await this.all<Row>(statement, values))[0];
  }

  async run(statement: string, values: Values = {}): Promise<number> {
    return (await this.#query(statement, values)).rowCount ?? 0;
  }

  #query(statement: string, values: Values): Promise<pg.QueryResult> {
    const { text, names } = numbered(statement);
    const query = { text, values: names.map((each) => values[each] ?? null) };
    const name = planNames.get(statement);
    return this.#queryable.query(name === undefined ? query : { ...query, name });
  }
}
