/** Writes SIMs, refusals of locks, counts for the bill and metadata, each in the caller's transaction. */
import {
  MAX_REFUSALS,
  MAX_REFUSALS_PER_LOCK,
  REFUSALS_RETAINED_FOR,
  type RefusalChange,
} from '../../contract/devices/refusal-store.js';
import type { UsageDelta } from '../../contract/usage-store.js';
import type { RefusalsWrite, SimsWrite, UsageWrite } from '../../tables/table-parts.js';
import { plannedOnce, type Sql } from '../sql.js';

/** All refusals are counted once per this many writes, since counting costs more than writing. */
const WRITES_PER_COUNT = 50;

export class BatchedWrites {
  #refusalWrites = 0;

  /** Makes a write in the caller's transaction. */
  async write(sql: Sql, write: SimsWrite | RefusalsWrite): Promise<void> {
    if (write.type === 'sims') await activate(sql, write);
    else await this.#storeRefusals(sql, write);
  }

  async #storeRefusals(sql: Sql, { changes, nowMs }: RefusalsWrite): Promise<void> {
    await addRefusals(sql, changes);
    await sql.run('DELETE FROM refusal WHERE last_at_ms < @beforeMs', { beforeMs: nowMs - REFUSALS_RETAINED_FOR });
    this.#refusalWrites += 1;
    if (this.#refusalWrites % WRITES_PER_COUNT !== 1) return;
    await sql.run(
      `DELETE FROM refusal WHERE id IN (SELECT id FROM refusal ORDER BY last_at_ms DESC OFFSET ${MAX_REFUSALS})`,
    );
  }
}

/**
 * Adds refusals to those that are stored, and deletes those that a lock has too many of. In a few statements, since
 * thousands of locks are refused at once while they move to other gateways. A refusal is equal to one of the same lock
 * with the same sentence (`why`); of equal ones the last code (`reason`) and address are stored. They are added up
 * first, since a statement can't change a row twice.
 */
async function addRefusals(sql: Sql, changes: readonly RefusalChange[]): Promise<void> {
  if (changes.length === 0) return;
  const column = <Name extends keyof RefusalChange>(name: Name): RefusalChange[Name][] =>
    changes.map((change) => change[name]);
  const macs = column('mac');
  await sql.run(
    `INSERT INTO refusal AS r
       (device_id, merchant_id, source, what, reason, why, address, count, first_at_ms, last_at_ms)
     SELECT d.id, d.merchant_id, t.source, t.what, (array_agg(t.reason ORDER BY t.n DESC))[1], t.why,
       (array_agg(t.address ORDER BY t.n DESC))[1], sum(t.count), min(t.first_at_ms), max(t.last_at_ms)
     FROM unnest(@macs::text[], @sources::text[], @whats::text[], @reasons::text[], @whys::text[], @addresses::text[],
         @counts::bigint[], @firsts::double precision[], @lasts::double precision[]) WITH ORDINALITY
       AS t (mac, source, what, reason, why, address, count, first_at_ms, last_at_ms, n)
     JOIN device d ON d.mac = t.mac AND d.removed_at_ms IS NULL
     GROUP BY d.id, d.merchant_id, t.source, t.what, t.why ORDER BY d.id, t.source, t.what, t.why
     ON CONFLICT (device_id, merchant_id, source, what, why) DO UPDATE SET
       count = r.count + excluded.count, last_at_ms = greatest(r.last_at_ms, excluded.last_at_ms),
       address = excluded.address, reason = excluded.reason`,
    {
      ...{ macs, sources: column('source'), whats: column('what'), reasons: column('reason'), whys: column('why') },
      ...{ addresses: column('address'), counts: column('count'), firsts: column('firstAtMs') },
      lasts: column('lastAtMs'),
    },
  );
  await sql.run(
    `DELETE FROM refusal WHERE id IN (
       SELECT id FROM (
         SELECT r.id, row_number() OVER (PARTITION BY r.device_id ORDER BY r.last_at_ms DESC, r.id DESC) AS place
         FROM refusal r JOIN device d ON d.id = r.device_id WHERE d.mac = ANY(@macs::text[])) p
       WHERE place > @max)`,
    { macs, max: MAX_REFUSALS_PER_LOCK },
  );
}

/** Counts of one lock in one month may come twice: a statement can't change a row twice, so they are added up first. */
function addedUp(deltas: readonly UsageDelta[]): UsageDelta[] {
  const byKey = new Map<string, UsageDelta>();
  for (const delta of deltas) {
    const key = `${delta.month} ${delta.mac} ${delta.merchantId} ${delta.simulated}`;
    const before = byKey.get(key);
    byKey.set(key, before === undefined ? delta : sum(before, delta));
  }
  // In one order, so that two gateways' transactions do not wait for each other in a circle.
  return [...byKey].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, delta]) => delta);
}

function sum(one: UsageDelta, other: UsageDelta): UsageDelta {
  return {
    ...one,
    messagesUp: one.messagesUp + other.messagesUp,
    messagesDown: one.messagesDown + other.messagesDown,
    connections: one.connections + other.connections,
    bytesUp: one.bytesUp + other.bytesUp,
    bytesDown: one.bytesDown + other.bytesDown,
  };
}

const ADD_USAGE = plannedOnce(
  `INSERT INTO usage AS u (month, mac, merchant_id, simulated, changed_at_ms,
     messages_up, messages_down, connections, bytes_up, bytes_down)
   SELECT t.month, t.mac, t.merchant_id, t.simulated, @nowMs,
     t.messages_up, t.messages_down, t.connections, t.bytes_up, t.bytes_down
   FROM unnest(@months::text[], @macs::text[], @merchants::bigint[], @simulated::bigint[], @messagesUp::bigint[],
     @messagesDown::bigint[], @connections::bigint[], @bytesUp::bigint[], @bytesDown::bigint[])
     AS t (month, mac, merchant_id, simulated, messages_up, messages_down, connections, bytes_up, bytes_down)
   ON CONFLICT (month, mac, merchant_id, simulated) DO UPDATE SET
     changed_at_ms = excluded.changed_at_ms,
     messages_up = u.messages_up + excluded.messages_up,
     messages_down = u.messages_down + excluded.messages_down,
     connections = u.connections + excluded.connections,
     bytes_up = u.bytes_up + excluded.bytes_up,
     bytes_down = u.bytes_down + excluded.bytes_down`,
);

/** Adds counts to those that are stored. */
export async function addUsage(sql: Sql, { deltas, nowMs }: UsageWrite): Promise<void> {
  const rows = addedUp(deltas);
  await sql.run(ADD_USAGE, {
    nowMs,
    months: rows.map(({ month }) => month),
    macs: rows.map(({ mac }) => mac),
    merchants: rows.map(({ merchantId }) => merchantId),
    simulated: rows.map(({ simulated }) => (simulated ? 1 : 0)),
    messagesUp: rows.map(({ messagesUp }) => messagesUp),
    messagesDown: rows.map(({ messagesDown }) => messagesDown),
    connections: rows.map(({ connections }) => connections),
    bytesUp: rows.map(({ bytesUp }) => bytesUp),
    bytesDown: rows.map(({ bytesDown }) => bytesDown),
  });
}

async function activate(sql: Sql, { sims }: SimsWrite): Promise<void> {
  await sql.run(
    `INSERT INTO sim (mac, activated_at_ms)
     SELECT t.mac, min(t.at_ms) FROM unnest(@macs::text[], @times::double precision[]) AS t (mac, at_ms)
     GROUP BY t.mac ORDER BY t.mac
     ON CONFLICT (mac) DO NOTHING`,
    { macs: sims.map(({ mac }) => mac), times: sims.map(({ atMs }) => atMs) },
  );
}

export async function putMetadata(sql: Sql, name: string, value: string): Promise<void> {
  await sql.run(
    'INSERT INTO fact (name, value) VALUES (@name, @value) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    { name, value },
  );
}
