/** Reads the log of a database after a run, and says what may never be in it. */
import type { PostgresServer } from './server.js';

/** Names that are in the log twice, and locks whose ids are not in the order in which they numbered their uplinks. */
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
