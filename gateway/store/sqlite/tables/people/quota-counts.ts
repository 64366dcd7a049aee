/**
 * SQL for counting how many rows and bytes each merchant stores (interfaces.md §2, Fairness), in the table
 * `merchant_kept`. Triggers count in the same transaction as each write, so that the counts are correct after a crash
 * or a deletion, and no request has to count rows. `db check` counts again and compares (check/quota-counts.ts). A
 * migration uses this SQL, so a change here needs a new migration.
 */

/** Bytes counted for each row in addition to its texts: for its numbers and its index entries. */
const ROW_BYTES = 64;

/** A table whose rows are counted. */
export interface CountedTable {
  readonly table: string;
  /** The column of `merchant_kept` with the number of rows. */
  readonly column: 'pets' | 'users' | 'tokens' | 'sessions';
  /** The columns whose lengths are counted. */
  readonly measured: readonly string[];
  /** Returns SQL for the merchant of a row; `row` is `NEW`, `OLD` or the table's name. */
  readonly merchant: (row: string) => string;
}

const merchantColumn = (row: string): string => `${row}.merchant_id`;

/** All counted tables. */
export const COUNTED_TABLES: readonly CountedTable[] = [
  {
    table: 'pet',
    column: 'pets',
    measured: ['name', 'photo_urls', 'owner_id', 'species', 'breed', 'status', 'category', 'tags'],
    merchant: merchantColumn,
  },
  {
    table: 'user_account',
    column: 'users',
    measured: ['username', 'username_key', 'first_name', 'last_name', 'email', 'phone', 'password_hash'],
    merchant: merchantColumn,
  },
  {
    table: 'access_token',
    column: 'tokens',
    measured: ['token_hash', 'scopes'],
    merchant: (row) => `(SELECT merchant_id FROM api_key WHERE id = ${row}.key_id)`,
  },
  { table: 'user_session', column: 'sessions', measured: ['token_hash'], merchant: merchantColumn },
];

/** Returns SQL for the bytes of a row. */
export function countedBytes({ measured }: CountedTable, row: string): string {
  return [...measured.map((column) => `ifnull(octet_length(${row}.${column}), 0)`), ROW_BYTES].join(' + ');
}

/** Returns the statements that create the table and its triggers, and count existing rows; for a migration. */
export function quotaCountStatements(): string[] {
  const columns = COUNTED_TABLES.map(({ column }) => `${column} INTEGER NOT NULL DEFAULT 0`);
  return [
    `CREATE TABLE merchant_kept (merchant_id INTEGER PRIMARY KEY NOT NULL, ${columns.join(', ')},
       bytes INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`,
    ...COUNTED_TABLES.flatMap(countTable),
  ];
}

/** Returns the statements that count a table's existing rows and create the triggers for its later changes. */
function countTable(counted: CountedTable): string[] {
  const { table, column, measured, merchant } = counted;
  const upsert = (rows: string): string =>
    `INSERT INTO merchant_kept (merchant_id, ${column}, bytes) ${rows}
     ON CONFLICT (merchant_id) DO UPDATE
       SET ${column} = ${column} + excluded.${column}, bytes = bytes + excluded.bytes`;
  const adjust = (row: 'NEW' | 'OLD', rowsChange: string, bytesChange: string): string =>
    `UPDATE merchant_kept SET ${column} = ${column} ${rowsChange}, bytes = bytes + (${bytesChange})
     WHERE merchant_id = ${merchant(row)}`;
  const [newBytes, oldBytes] = [countedBytes(counted, 'NEW'), countedBytes(counted, 'OLD')];
  return [
    upsert(`SELECT ${merchant(table)}, count(*), sum(${countedBytes(counted, table)}) FROM ${table} GROUP BY 1`),
    `CREATE TRIGGER ${table}_kept_new AFTER INSERT ON ${table} BEGIN
       ${upsert(`VALUES (${merchant('NEW')}, 1, ${newBytes})`)}; END`,
    `CREATE TRIGGER ${table}_kept_gone AFTER DELETE ON ${table} BEGIN
       ${adjust('OLD', '- 1', `- (${oldBytes})`)}; END`,
    `CREATE TRIGGER ${table}_kept_changed AFTER UPDATE OF ${measured.join(', ')} ON ${table} BEGIN
       ${adjust('NEW', '+ 0', `${newBytes} - (${oldBytes})`)}; END`,
  ];
}
