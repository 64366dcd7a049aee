/**
 * Triggers that count what each merchant stores, in the transaction that writes it (table `merchant_kept`). The
 * service also has a pet registry (docs/specification.md), so pets count too. Shipped: must not change.
 */

/** The columns whose bytes count, by table, and the count that a row adds to. */
export const COUNTED = {
  pet: { count: 'pets', columns: ['name', 'photo_urls', 'owner_id', 'species', 'breed', 'status', 'category', 'tags'] },
  user_account: {
    count: 'users',
    columns: ['username', 'username_key', 'first_name', 'last_name', 'email', 'phone', 'password_hash'],
  },
  user_session: { count: 'sessions', columns: ['token_hash'] },
  access_token: { count: 'tokens', columns: ['token_hash', 'scopes'] },
} as const;

/** What a row counts beside its bytes. */
export const BYTES_PER_ROW = 64;

function triggersOf(table: keyof typeof COUNTED): string {
  const { count, columns } = COUNTED[table];
  const bytesOf = (row: string): string =>
    [BYTES_PER_ROW, ...columns.map((column) => `coalesce(octet_length(${row}.${column}), 0)`)].join(' + ');
  const merchantOf = (row: string): string =>
    table === 'access_token' ? `(SELECT merchant_id FROM api_key WHERE id = ${row}.key_id)` : `${row}.merchant_id`;
  return `
CREATE FUNCTION count_${table}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO merchant_kept AS kept (merchant_id, ${count}, bytes) VALUES (${merchantOf('NEW')}, 1, ${bytesOf('NEW')})
    ON CONFLICT (merchant_id) DO UPDATE SET
      ${count} = kept.${count} + 1, bytes = kept.bytes + excluded.bytes;
  ELSIF TG_OP = 'DELETE' THEN
    UPDATE merchant_kept SET ${count} = ${count} - 1, bytes = bytes - (${bytesOf('OLD')})
    WHERE merchant_id = ${merchantOf('OLD')};
  ELSE
    UPDATE merchant_kept SET bytes = bytes + (${bytesOf('NEW')}) - (${bytesOf('OLD')})
    WHERE merchant_id = ${merchantOf('NEW')};
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER ${table}_kept AFTER INSERT OR DELETE OR UPDATE ON ${table} FOR EACH ROW
  EXECUTE FUNCTION count_${table}();`;
}

export const QUOTA_COUNTS = (Object.keys(COUNTED) as (keyof typeof COUNTED)[]).map(triggersOf).join('');
