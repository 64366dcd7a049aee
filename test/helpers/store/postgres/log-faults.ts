/**
 * Reads the log of uplinks (messages of locks) in a PostgreSQL database after a run that killed gateways, and says what
 * must never be in it.
 */
import type { PostgresServer } from './server.js';

/**
 * The uplinks that were stored twice, and those with a smaller sequence number than the lock's uplink stored before
 * them in the same boot. Events that no lock sent are in the same table with the credential 0, and are left out. Empty
 * if there are none.
 */
export async function readLogFaults(server: PostgresServer, database: string): Promise<string[]> {
  const twice = await server.query(
    database,
    `SELECT credential_id, boot, sequence, count(*) AS count FROM uplink WHERE credential_id > 0
     GROUP BY credential_id, boot, sequence, digest HAVING count(*) > 1`,
  );
  const disordered = await server.query(
    database,
    `SELECT * FROM (SELECT device_id, id, boot, sequence,
       lag(sequence) OVER w AS before, lag(boot) OVER w AS boot_before FROM uplink WHERE credential_id > 0
       WINDOW w AS (PARTITION BY credential_id ORDER BY id)) o
     WHERE boot = boot_before AND sequence < before`,
  );
  return [
    ...twice.map((row) => `twice: ${JSON.stringify(row)}`),
    ...disordered.map((row) => `out of order: ${JSON.stringify(row)}`),
  ];
}
