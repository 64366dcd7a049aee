/**
 * The tables that `db move` copies from SQLite to PostgreSQL, which have the same names and columns in both. Other
 * tables are left out: each engine fills its own indexes of the log, and counts what merchants store by triggers.
 */

/** In an order in which each row's references exist before the row. */
export const MOVED_TABLES: readonly string[] = [
  ...['merchant', 'device', 'credential', 'device_state', 'reflash_mark', 'sim'],
  ...['api_key', 'access_token', 'user_account', 'user_session', 'pet', 'invitation', 'merchant_sequence'],
  ...['idempotent_answer', 'price_plan', 'usage', 'statement'],
  ...['webhook_url', 'webhook_old_secret', 'webhook_gap', 'delivery', 'attempt'],
  ...['command', 'staged_event', 'lock_event', 'finding', 'quarantine', 'refusal'],
  ...['audit', 'notice', 'notification', 'notify_recipient', 'notify_secret', 'operator_token', 'console_session'],
  ...['fact', 'uplink'],
];

/** Tables of SQLite that are not moved, beside those of SQLite itself and of Kysely. */
export const LEFT_TABLES: readonly string[] = ['uplink_name', 'uplink_of_device', 'uplink_settled', 'merchant_kept'];

/**
 * The columns of `webhook_url` that hold a position in the log. In SQLite, a position is one uplink id. In PostgreSQL,
 * several gateways may write, each with ids of its own (its "slot"), so a position has one id for each slot. The ids
 * that SQLite assigned are all in the same slot (contract/log/log-position.ts).
 */
export const POSITION_COLUMNS: ReadonlySet<string> = new Set(['started_after', 'filtered_after', 'filtered_until']);

/** The column of `webhook_url` that is a table of its own in PostgreSQL, `url_cursor`. */
export const CURSOR_COLUMN = 'cursor';

/** In SQLite, the name of the metadata entry that says where a store was moved to. */
export const MOVED_METADATA = 'moved-to';
/** In PostgreSQL, the name of the metadata entry of a move that is not finished; its value is the move's id. */
export const MOVING_METADATA = 'moving-from';

/** The value of {@link MOVED_METADATA}, as JSON. */
export interface MovedTo {
  /** The id of the move, a random text. */
  readonly move: string;
  /** The database, without user and password. */
  readonly to: string;
}
