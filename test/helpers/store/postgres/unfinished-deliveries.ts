/**
 * Says what the database knows of webhooks that a merchant never accepted, so that a test which misses some shows why:
 * they wait for another attempt, or were never attempted.
 */
import type { PostgresServer } from './server.js';

/** The cursor of each URL in each slot, and every unfinished delivery with its attempts, a line of JSON for each. */
export async function readUnfinishedDeliveries(server: PostgresServer, database: string): Promise<string[]> {
  const urls = await server.query(
    database,
    `SELECT u.id AS url, u.state, u.owner_slot, u.failing_since_ms, u.held_until_ms, u.started_after,
       (SELECT json_object_agg(c.slot, c.id) FROM url_cursor c WHERE c.url_id = u.id) AS cursor,
       (SELECT json_object_agg(s.slot, s.last) FROM (SELECT slot, max(id) AS last FROM uplink GROUP BY slot) s) AS log
     FROM webhook_url u ORDER BY u.id`,
  );
  const deliveries = await server.query(
    database,
    `SELECT d.url_id AS url, d.state, d.attempts, d.next_attempt_at_ms, u.id, u.slot, u.device_id, u.boot, u.sequence,
       (SELECT json_agg(json_build_array(a.number, a.at_ms, a.duration_ms, a.status, a.error) ORDER BY a.id)
        FROM attempt a WHERE a.url_id = d.url_id AND a.uplink_id = d.uplink_id) AS tried
     FROM delivery d JOIN uplink u ON u.id = d.uplink_id WHERE d.state <> 'delivered' ORDER BY d.uplink_id LIMIT 50`,
  );
  return [...urls, ...deliveries].map((row) => JSON.stringify(row));
}
