/**
 * Checks the outbox, as ../../sqlite/check/outbox.ts does: no cursor of a URL may have passed an event without an
 * outcome, and no row of deliveries may refer to a missing event.
 *
 * A slot is a gateway's number in the database (`node.slot`, 1 to 63; 0 for uplinks that were moved from SQLite). Each
 * slot has ids of its own, so a URL has a cursor for each slot: a row of `url_cursor`.
 */
import { IS_PING } from '../../log/uplink-row.js';
import { idIn } from '../position.js';
import type { CheckContext, CheckOutcome } from './context.js';

/**
 * A kind of fault. `find` selects the `place` of each one, and the value `about` that `what` puts into its sentence.
 */
interface Fault {
  readonly table: string;
  readonly what: (about: unknown) => string;
  readonly find: string;
}

/** An erased uplink has a negative kind. Events are pings ({@link IS_PING}), outcomes of commands and the like. */
const IS_EVENT = 'u.kind > 0';

const keyText = (alias: string): string => `'URL ' || ${alias}.url_id || ', uplink ' || ${alias}.uplink_id`;
const lacksEvent = (alias: string): string =>
  `NOT EXISTS (SELECT 1 FROM uplink u WHERE u.id = ${alias}.uplink_id AND ${IS_EVENT})`;
const lacksUrl = (alias: string): string => `NOT EXISTS (SELECT 1 FROM webhook_url w WHERE w.id = ${alias}.url_id)`;

const FAULTS: readonly Fault[] = [
  {
    table: 'url_cursor',
    what: (id) => `it is at ${id}, before the URL's start`,
    find: `SELECT 'URL ' || c.url_id || ', slot ' || c.slot AS place, c.id AS about FROM url_cursor c
      JOIN webhook_url w ON w.id = c.url_id WHERE c.id < ${idIn('w.started_after', 'c.slot')}`,
  },
  {
    table: 'url_cursor',
    what: (id) => `it is at ${id}, in a slot that no gateway has had`,
    find: `SELECT 'URL ' || c.url_id || ', slot ' || c.slot AS place, c.id AS about FROM url_cursor c
      WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.slot = c.slot)`,
  },
  ...['delivery', 'attempt'].flatMap((table): Fault[] => [
    {
      table,
      what: () => 'its event is not in the log',
      find: `SELECT ${keyText('y')} AS place FROM ${table} y WHERE ${lacksEvent('y')}`,
    },
    {
      table,
      what: () => 'there is no such webhook URL',
      find: `SELECT ${keyText('y')} AS place FROM ${table} y WHERE ${lacksUrl('y')}`,
    },
  ]),
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
    what: (until) => `it ends at ${until}: a gap must end after its start, and not after the cursor`,
    find: `SELECT 'URL ' || g.url_id || ', after ' || g.after_id AS place, g.until_id AS about FROM webhook_gap g
      LEFT JOIN url_cursor c ON c.url_id = g.url_id AND c.slot = g.slot
      WHERE g.until_id <= g.after_id OR g.until_id > coalesce(c.id, 0)`,
  },
];

/**
 * Pings that a cursor passed although they have neither an outcome nor a gap and no filter left them out. A delivery
 * that succeeded at once has no row in `delivery`, but an attempt without an error. Other events are left out: a URL
 * gets those only on request, and the cursor passes the rest.
 */
const PASSED = `SELECT w.id AS url_id, u.id AS uplink_id FROM webhook_url w
  JOIN url_cursor c ON c.url_id = w.id
  JOIN uplink u ON u.merchant_id = w.merchant_id AND u.slot = c.slot AND ${IS_PING}
    AND u.id > ${idIn('w.started_after', 'c.slot')} AND u.id <= c.id
  WHERE (w.filtered_after IS NULL OR u.id <= ${idIn('w.filtered_after', 'c.slot')}
      OR (w.filtered_until IS NOT NULL AND u.id > ${idIn('w.filtered_until', 'c.slot')}))
    AND NOT EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = w.id AND y.uplink_id = u.id)
    AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.url_id = w.id AND a.uplink_id = u.id AND a.error IS NULL)
    AND NOT EXISTS (SELECT 1 FROM webhook_gap g
      WHERE g.url_id = w.id AND g.slot = u.slot AND u.id > g.after_id AND u.id <= g.until_id)`;

/** The number of events that cursors have passed: those that this check is about. */
const COUNT_PASSED = `SELECT count(*) AS count FROM webhook_url w JOIN url_cursor c ON c.url_id = w.id
  JOIN uplink u ON u.merchant_id = w.merchant_id AND u.slot = c.slot AND ${IS_EVENT}
    AND u.id > ${idIn('w.started_after', 'c.slot')} AND u.id <= c.id`;

/** Checks all URLs with their cursors, gaps, deliveries and attempts. */
export async function checkOutbox({ sql, damage }: CheckContext): Promise<CheckOutcome> {
  for (const { table, what, find } of FAULTS)
    for (const { place, about } of await sql.all<{ place: string; about?: unknown }>(find))
      damage(table, place, what(about));
  for (const row of await sql.all<{ url_id: number; uplink_id: number }>(PASSED))
    damage('webhook_url', row.url_id, `its cursor passed event ${row.uplink_id}, which has no outcome there`);
  return { count: (await sql.get<{ count: number }>(COUNT_PASSED))?.count ?? 0 };
}
