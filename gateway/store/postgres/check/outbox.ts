/**
 * Checks the outbox, as ../../sqlite/check/outbox.ts does: no cursor of a URL may have passed an event without an
 * outcome, and no row of deliveries may refer to a missing event. A cursor has an id for each slot.
 */
import { IS_PING } from '../../log/uplink-row.js';
import { idIn } from '../position.js';
import type { CheckContext, CheckOutcome } from './context.js';

/** A kind of fault. `find` returns the place of each, and `about`, which the sentence needs. */
interface Fault {
  readonly table: string;
  readonly what: (about: unknown) => string;
  readonly find: string;
}

const keyText = (alias: string): string => `'URL ' || ${alias}.url_id || ', uplink ' || ${alias}.uplink_id`;
const lacksEvent = (alias: string): string =>
  `NOT EXISTS (SELECT 1 FROM uplink u WHERE u.id = ${alias}.uplink_id AND u.kind > 0)`;
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
    what: (id) => `it is at ${id}, an id of another slot`,
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
 * Events that a cursor passed although they have neither an outcome nor a gap and no filter left them out. A delivery
 * that succeeded at once has no row in `delivery`, but an attempt without an error.
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

const BEHIND = `SELECT count(*) AS count FROM webhook_url w JOIN url_cursor c ON c.url_id = w.id
  JOIN uplink u ON u.merchant_id = w.merchant_id AND u.slot = c.slot AND u.kind > 0
    AND u.id > ${idIn('w.started_after', 'c.slot')} AND u.id <= c.id`;

/** Checks all URLs with their cursors, gaps, deliveries and attempts. */
export async function checkOutbox({ sql, damage }: CheckContext): Promise<CheckOutcome> {
  for (const { table, what, find } of FAULTS)
    for (const { place, about } of await sql.all<{ place: string; about?: unknown }>(find))
      damage(table, place, what(about));
  for (const row of await sql.all<{ url_id: number; uplink_id: number }>(PASSED))
    damage('webhook_url', row.url_id, `its cursor passed event ${row.uplink_id}, which has no outcome there`);
  return { count: (await sql.get<{ count: number }>(BEHIND))?.count ?? 0 };
}
