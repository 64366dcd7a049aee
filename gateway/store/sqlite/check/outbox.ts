/**
 * Checks the outbox: the log of uplinks, the cursor of each webhook URL (the id up to which it has an outcome for every
 * event, that is, stored ping), and the rows of deliveries that did not succeed at once. No cursor may have passed an
 * event without an outcome, and no row may refer to a missing event. A gap is a range of events that a cursor skipped,
 * since its URL was disabled when they arrived.
 */
import { IS_PING } from '../../log/uplink-row.js';
import type { CheckContext, CheckOutcome } from './context.js';

/**
 * A kind of fault. The statement `find` returns the faulty rows: `place` names the row, and `about` is the value that
 * the sentence needs, if any. `what` makes the sentence.
 */
interface Fault {
  readonly table: string;
  readonly what: (about: unknown) => string;
  readonly find: string;
}

/** The highest uplink id that was ever assigned, even to a deleted uplink, in SQL. */
const LAST_ID = `(SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'uplink'), 0),
  coalesce((SELECT max(id) FROM uplink), 0)))`;

/* Expressions in SQL about a row of the table with this alias. */
const keyText = (alias: string): string => `'URL ' || ${alias}.url_id || ', uplink ' || ${alias}.uplink_id`;
// Kinds above 0 are events; 0 is a lock's answer to a command, -1 an erased uplink.
const lacksEvent = (alias: string): string =>
  `NOT EXISTS (SELECT 1 FROM uplink u WHERE u.id = ${alias}.uplink_id AND u.kind > 0)`;
const lacksUrl = (alias: string): string => `NOT EXISTS (SELECT 1 FROM webhook_url w WHERE w.id = ${alias}.url_id)`;

const FAULTS: readonly Fault[] = [
  {
    table: 'webhook_url',
    what: (cursor) => `its cursor is at ${cursor}, beyond the end of the log`,
    find: `SELECT id AS place, cursor AS about FROM webhook_url WHERE cursor > ${LAST_ID} OR started_after > cursor`,
  },
  {
    table: 'delivery',
    what: () => 'its event is not in the log',
    find: `SELECT ${keyText('y')} AS place FROM delivery y WHERE ${lacksEvent('y')}`,
  },
  {
    table: 'attempt',
    what: () => 'its event is not in the log',
    find: `SELECT a.id AS place FROM attempt a WHERE ${lacksEvent('a')}`,
  },
  {
    table: 'delivery',
    what: () => 'there is no such webhook URL',
    find: `SELECT ${keyText('y')} AS place FROM delivery y WHERE ${lacksUrl('y')}`,
  },
  {
    table: 'attempt',
    what: () => 'there is no such webhook URL',
    find: `SELECT a.id AS place FROM attempt a WHERE ${lacksUrl('a')}`,
  },
  {
    table: 'delivery',
    what: (state) => `its state is ${JSON.stringify(state)}, which contradicts its next attempt`,
    find: `SELECT ${keyText('y')} AS place, y.state AS about FROM delivery y
      WHERE y.state NOT IN ('pending', 'delivered', 'dead', 'damaged')
        OR (y.state = 'pending') <> (y.next_attempt_at_ms IS NOT NULL)`,
  },
  {
    table: 'delivery',
    what: (device) => `its event is lock ${device}'s`,
    find: `SELECT ${keyText('y')} AS place, u.device_id AS about FROM delivery y JOIN uplink u ON u.id = y.uplink_id
      WHERE u.device_id <> y.device_id`,
  },
  {
    table: 'webhook_gap',
    what: (until) =>
      `it ends at ${until}: a gap must end after its start, not after the cursor, and before the next gap`,
    find: `SELECT 'URL ' || g.url_id || ', after ' || g.after_id AS place, g.until_id AS about FROM webhook_gap g
      LEFT JOIN webhook_url w ON w.id = g.url_id
      WHERE w.id IS NULL OR g.until_id <= g.after_id OR g.until_id > w.cursor OR EXISTS (
        SELECT 1 FROM webhook_gap n
        WHERE n.url_id = g.url_id AND n.after_id > g.after_id AND n.after_id < g.until_id)`,
  },
];

/** URLs whose start in the log was recorded; for older URLs it was estimated (migration 0005). */
const URLS = `SELECT id, merchant_id, started_after, cursor, filtered_after, filtered_until FROM webhook_url
  WHERE created_at_ms >= coalesce((SELECT CAST(strftime('%s', timestamp) AS INTEGER) * 1000 FROM kysely_migration
    WHERE name = '0005-webhooks'), 0)`;

/**
 * Events that a cursor passed although they have neither an outcome nor a gap and no filter left them out. A delivery
 * that succeeded at once has no row in `delivery`, but an attempt without an error.
 */
const PASSED = `SELECT u.id FROM uplink u WHERE u.merchant_id = @merchant_id AND ${IS_PING}
  AND u.id > @started_after AND u.id <= @cursor
  AND (@filtered_after IS NULL OR u.id <= @filtered_after OR u.id > coalesce(@filtered_until, u.id))
  AND NOT EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = @id AND y.uplink_id = u.id)
  AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.url_id = @id AND a.uplink_id = u.id AND a.error IS NULL)
  AND NOT EXISTS (SELECT 1 FROM webhook_gap g WHERE g.url_id = @id AND u.id > g.after_id AND u.id <= g.until_id)`;

interface UrlRow {
  readonly id: number;
  readonly merchant_id: number;
  readonly started_after: number;
  readonly cursor: number;
  /** A filter may have left out uplinks after this id; null if the URL never had one. */
  readonly filtered_after: number | null;
  /** The last uplink that a filter may have left out; null while the URL has a filter. */
  readonly filtered_until: number | null;
}

/** Checks all URLs with their cursors, gaps, deliveries and attempts. */
export function checkOutbox({ db, damage, progress }: CheckContext): CheckOutcome {
  for (const { table, what, find } of FAULTS)
    for (const { place, about } of db.prepare(find).iterate() as IterableIterator<{ place: string; about?: unknown }>)
      damage(table, place, what(about));
  const passedEvents = db.prepare(PASSED).pluck();
  const countEvents = db.prepare(
    'SELECT count(*) FROM uplink WHERE merchant_id = ? AND kind > 0 AND id > ? AND id <= ?',
  );
  let examined = 0;
  for (const url of db.prepare(URLS).all() as UrlRow[]) {
    for (const id of passedEvents.iterate(url) as IterableIterator<number>)
      damage('webhook_url', url.id, `its cursor passed event ${id}, which has no outcome there`);
    examined += countEvents.pluck().get(url.merchant_id, url.started_after, url.cursor) as number;
    progress(examined);
  }
  return { count: examined, note: null };
}
