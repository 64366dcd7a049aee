/** Finds wrong bills and wrong counts of bytes in the database after a run. */
import { COUNTING_SINCE_METADATA } from '../../../gateway/store/contract/usage-store.js';
import type { PostgresServer } from '../store/postgres/server.js';
import type { ChaosDiary } from './chaos-lock.js';

/** The month before the run, whose usage the gateways find and bill at their start. */
export const ENDED_MONTH = '2026-10';
/** The usage of each lock in that month. */
export const BYTES_IN_ENDED_MONTH = 1_000_000;

/** Adds usage of an ended month for all locks, as if they had been counted then; no gateway may run. */
export async function addEndedMonth(server: PostgresServer, database: string): Promise<void> {
  const startMs = Date.parse(`${ENDED_MONTH}-01`);
  await server.query(database, 'UPDATE merchant SET created_at_ms = $1', [startMs]);
  // The table `fact` has the store's metadata.
  await server.query(database, 'INSERT INTO fact (name, value) VALUES ($1, $2)', [
    COUNTING_SINCE_METADATA,
    String(startMs),
  ]);
  await server.query(
    database,
    `INSERT INTO usage (month, mac, merchant_id, simulated, changed_at_ms,
       messages_up, messages_down, connections, bytes_up, bytes_down)
     SELECT $1, mac, merchant_id, simulated, $2, 1, 0, 1, $3, 0 FROM device`,
    [ENDED_MONTH, startMs, BYTES_IN_ENDED_MONTH],
  );
}

/** A stored bill: the members that are summed. */
interface Statement {
  readonly lines: readonly { readonly bytes: number }[];
  readonly corrections: readonly { readonly bytes: number }[];
}

/**
 * What is wrong with the bills and counts, a sentence for each fault.
 *
 * @param maxLost how many bytes may be missing, since processes that were killed had not stored them
 */
export async function billFaults(
  server: PostgresServer,
  database: string,
  diaries: readonly ChaosDiary[],
  maxLost: number,
): Promise<string[]> {
  const faults: string[] = [];
  const statements = await server.query(database, 'SELECT body FROM statement');
  const bodies = statements.map(({ body }) => JSON.parse(String(body)) as Statement);
  const billed = bodies
    .flatMap(({ lines, corrections }) => [...lines, ...corrections])
    .reduce((sum, { bytes }) => sum + bytes, 0);
  const owed = diaries.length * BYTES_IN_ENDED_MONTH;
  if (billed !== owed) faults.push(`${billed} bytes of ${ENDED_MONTH} were billed instead of ${owed}`);
  const [row] = await server.query(database, 'SELECT sum(bytes_up) AS up FROM usage WHERE month <> $1', [ENDED_MONTH]);
  const counted = Number(row?.up);
  const sum = (of: (diary: ChaosDiary) => number): number => diaries.reduce((total, diary) => total + of(diary), 0);
  const accepted = sum(({ bytes }) => bytes.up);
  const all = accepted + sum(({ bytes }) => bytes.unacceptedUp);
  if (counted > all) faults.push(`${counted} bytes were counted, but the locks sent only ${all}`);
  const missing = accepted - counted;
  if (missing > maxLost)
    faults.push(`${counted} bytes were counted of ${accepted}: ${missing} are missing, up to ${maxLost} may be`);
  return faults;
}
