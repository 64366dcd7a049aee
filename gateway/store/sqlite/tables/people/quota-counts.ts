/**
 * How many rows and bytes each merchant stores (interfaces.md §2, Fairness), in the table `merchant_kept`. Triggers
 * count, in the transaction that writes, so that the counts are right after a crash, a deletion or any other write, and
 * no request scans for them. `db check` counts again and compares (check/quota-counts.ts).
 */

/** Bytes that a row counts for in addition to its texts: for its numbers and its entries in indexes. */
const ROW_BYTES = 64;

/** A table that is counted. */
export interface CountedTable {
  readonly table: string;
  /** The column of `merchant_kept` with its count. */
  readonly column: 'pets' | 'users' | 'tokens' | 'sessions';
  /** The columns whose lengths merchants choose. */
  readonly measured: readonly string[];
  /** SQL for the merchant of a row; `row` is `NEW`, `OLD` or the table's name. */
  readonly merchant: (row: string) => string;
}

const ownMerchant = (row: string): string => `${row}.merchant_id`;

/** Every table that is counted. */
export const COUNTED_TABLES: readonly CountedTable[] = [
  {
    table: 'pet',
    column: 'pets',
    measured: ['name', 'photo_urls', 'owner_id', 'species', 'breed', 'status', 'category', 'tags'],
    merchant: ownMerchant,
  },
  {
    table: 'user_account',
    column: 'users',
    measured: ['username', 'username_key', 'first_name', 'last_name', 'email', 'phone', 'password_hash'],
    merchant: ownMerchant,
  },
  {
    table: 'access_token',
    column: 'tokens',
    measured: ['token_hash', 'scopes'],
    merchant: (row) => `(SELECT merchant_id FROM api_key WHERE id = ${row}.key_id)`,
  },
  { table: 'user_session', column: 'sessions', measured: ['token_hash'], merchant: ownMerchant },
];

/** SQL for the bytes of a row. */
export function countedBytes({ measured }: CountedTable, row: string): string {
  return [...measured.map((column) => `ifnull(octet_length(${row}.${column}), 0)`), ROW_BYTES].join(' + ');
}

/** Statements that create the table and its triggers, and count existing rows; for a migration. */
export function quotaCountStatements(): string[] {
  const columns = COUNTED_TABLES.map(({ column }) => `${column} INTEGER NOT NULL DEFAULT 0`);
  return [
    `CREATE TABLE merchant_kept (merchant_id INTEGER PRIMARY KEY NOT NULL, ${columns.join(', ')},
       bytes INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`,
    ...COUNTED_TABLES.flatMap(countTable),
  ];
}

function countTable(kept: CountedTable): string[] {
  const { table, column, measured, merchant } = kept;
  const upsert = (rows: string): string =>
    `INSERT INTO merchant_kept (merchant_id, ${column}, bytes) ${rows}
     ON CONFLICT (merchant_id) DO UPDATE
       SET ${column} = ${column} + excluded.${column}, bytes = bytes + excluded.bytes`;
  const change = (row: 'NEW' | 'OLD', rows: string, bytes: string): string =>
    `UPDATE merchant_kept SET ${column} = ${column} ${rows}, bytes = bytes + (${bytes})
     WHERE merchant_id = ${merchant(row)}`;
  const [now, before] = [countedBytes(kept, 'NEW'), countedBytes(kept, 'OLD')];
  return [
    upsert(`SELECT ${merchant(table)}, count(*), sum(${countedBytes(kept, table)}) FROM ${table} GROUP BY 1`),
    `CREATE TRIGGER ${table}_kept_new AFTER INSERT ON ${table} BEGIN
       ${upsert(`VALUES (${merchant('NEW')}, 1, ${now})`)}; END`,
    `CREATE TRIGGER ${table}_kept_gone AFTER DELETE ON ${table} BEGIN
       ${change('OLD', '- 1', `- (${before})`)}; END`,
    `CREATE TRIGGER ${table}_kept_changed AFTER UPDATE OF ${measured.join(', ')} ON ${table} BEGIN
       ${change('NEW', '+ 0', `${now} - (${before})`)}; END`,
  ];
}
