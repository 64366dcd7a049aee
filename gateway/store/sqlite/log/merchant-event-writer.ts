/**
 * Appends events for merchants that are not pings (contract/webhooks/merchant-event.ts) to the log, in hand-written
 * SQL. Must be used inside the transaction of a commit. An event about the end of a command is *staged* first: a
 * trigger puts it into the table `staged_event` in the transaction that ends the command, and the next commit moves it
 * here.
 *
 * An event is a row of `uplink` with a kind above those of uplinks. Its key is the credential 0, which no lock has, the
 * boot 0 and its own id, so that it is unique and above all earlier ones.
 */
import type { Database, Statement } from 'better-sqlite3';
import { MERCHANT_EVENT_KINDS, type NewMerchantEvent } from '../../contract/webhooks/merchant-event.js';
import { packUplink, wordsOf } from '../../log/packed-commit.js';
import type { UplinkWriter } from './uplink-writer.js';

/** Maximum number of staged events that one commit moves into the log; the next commits move the others. */
const MAX_MOVED_PER_COMMIT = 500;
/** The credential of the events' keys. */
const NO_CREDENTIAL = 0;

/** An event's row in the log. */
interface EventRow {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly kind: number;
  readonly atMs: number;
  /** JSON. */
  readonly content: string;
}

export class MerchantEventWriter {
  readonly #uplinks: UplinkWriter;
  readonly #merchantFor: Statement;
  readonly #staged: Statement;
  readonly #unstage: Statement;

  constructor(db: Database, uplinks: UplinkWriter) {
    this.#uplinks = uplinks;
    this.#merchantFor = db
      .prepare(
        `SELECT d.merchant_id FROM device d WHERE d.id = @deviceId AND d.removed_at_ms IS NULL AND EXISTS (
           SELECT 1 FROM webhook_url w, json_each(w.filter, '$.events') e
           WHERE w.merchant_id = d.merchant_id AND e.value = @type)`,
      )
      .pluck();
    this.#staged = db.prepare(
      `SELECT id, device_id AS deviceId, merchant_id AS merchantId, kind, at_ms AS atMs, content
       FROM staged_event ORDER BY id LIMIT ${MAX_MOVED_PER_COMMIT}`,
    );
    this.#unstage = db.prepare('DELETE FROM staged_event WHERE id <= ?');
  }

  /** Appends the events that a URL of their merchant gets. Returns them packed, with their ids. */
  append(events: readonly NewMerchantEvent[]): Float64Array[] {
    const packed: Float64Array[] = [];
    for (const { deviceId, type, atMs, content } of events) {
      const merchantId = this.#merchantFor.get({ deviceId, type }) as number | undefined;
      if (merchantId === undefined) continue;
      const row = { deviceId, merchantId, kind: MERCHANT_EVENT_KINDS[type], atMs, content: JSON.stringify(content) };
      packed.push(this.#append(row));
    }
    return packed;
  }

  /** Moves staged events into the log. Returns them packed, with their ids. */
  appendStaged(): Float64Array[] {
    const rows = this.#staged.all() as (EventRow & { id: number })[];
    const last = rows.at(-1);
    if (last === undefined) return [];
    const packed = rows.map((row) => this.#append(row));
    this.#unstage.run(last.id);
    return packed;
  }

  #append({ deviceId, merchantId, kind, atMs, content }: EventRow): Float64Array {
    const bytes = Buffer.from(content);
    const doubles = new Float64Array(wordsOf(bytes.length));
    const sequence = this.#uplinks.lastId + 1;
    const key = { credentialId: NO_CREDENTIAL, boot: 0, sequence };
    const event = { deviceId, merchantId, ...key, kind, bytes, receivedAtMs: atMs, buffered: false };
    packUplink(event, doubles, new Uint8Array(doubles.buffer), 0);
    this.#uplinks.append(doubles, 0);
    return doubles;
  }
}

/** One block of memory with all of them, in their order. */
export function joinPacked(parts: readonly Float64Array[]): ArrayBuffer {
  const joined = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let start = 0;
  for (const part of parts) {
    joined.set(part, start);
    start += part.length;
  }
  return joined.buffer;
}
