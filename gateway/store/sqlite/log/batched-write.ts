/**
 * Writes that share a transaction with uplinks: outcomes of deliveries, counts for the bill, SIMs, metadata, refusals
 * of locks, merchants' writes over HTTP, and the removal of a URL's deliveries. Separate commits would make pings wait
 * for more fsyncs, so the log's writer commits these writes together with uplinks.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { MerchantWrite } from '../../contract/merchants/merchant-write.js';
import type { DeliveryProgress } from '../../contract/webhooks/delivery.js';
import type { RefusalsWrite, SimsWrite, UsageWrite } from '../../tables/table-parts.js';
import { RefusalWriter } from '../tables/refusal-writer.js';

/**
 * The outcomes of deliveries at a URL, with the cursor as an id instead of a log position. This engine has one writer,
 * whose ids 1, 2, 3 … are *dense*: one of them says how much of the log is done (contract/log/log-position.ts).
 */
export interface DenseProgress extends Omit<DeliveryProgress, 'cursor'> {
  readonly cursor: number | undefined;
}

/** Outcomes of deliveries. */
export interface ProgressWrite {
  readonly type: 'progress';
  readonly progress: readonly DenseProgress[];
}

interface MetadataWrite {
  readonly type: 'metadata';
  readonly name: string;
  readonly value: string;
}

/** Deletes some of the deliveries and attempts of a URL that is being removed: at most `limit` of each. */
interface RemovalWrite {
  readonly type: 'removal';
  readonly urlId: number;
  readonly limit: number;
}

/** Writes that do not depend on the other parts of the log's transaction. */
export type StandaloneWrite = UsageWrite | SimsWrite | MetadataWrite | RefusalsWrite | RemovalWrite;

export type BatchedWrite = ProgressWrite | StandaloneWrite | MerchantWrite;

/** Makes {@link StandaloneWrite}s on one connection. `write` must be called inside a transaction. */
export class StandaloneWriter {
  readonly #addUsage: Statement;
  readonly #activate: Statement;
  readonly #putMetadata: Statement;
  readonly #refusals: RefusalWriter;
  readonly #removals: readonly Statement[];

  constructor(db: Database) {
    this.#refusals = new RefusalWriter(db);
    this.#addUsage = db.prepare(
      `INSERT INTO usage (month, mac, merchant_id, simulated, changed_at_ms,
         messages_up, messages_down, connections, bytes_up, bytes_down)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (month, mac, merchant_id, simulated) DO UPDATE SET
         changed_at_ms = excluded.changed_at_ms,
         messages_up = messages_up + excluded.messages_up,
         messages_down = messages_down + excluded.messages_down,
         connections = connections + excluded.connections,
         bytes_up = bytes_up + excluded.bytes_up,
         bytes_down = bytes_down + excluded.bytes_down`,
    );
    this.#activate = db.prepare('INSERT INTO sim (mac, activated_at_ms) VALUES (?, ?) ON CONFLICT (mac) DO NOTHING');
    this.#putMetadata = db.prepare(
      'INSERT INTO fact (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    );
    this.#removals = ['delivery', 'attempt'].map((table) =>
      db.prepare(`DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE url_id = ? LIMIT ?)`),
    );
  }

  /** Makes one write. @throws what SQLite throws */
  write(write: StandaloneWrite): void {
    if (write.type === 'usage') this.#addCounts(write);
    else if (write.type === 'refusals') this.#refusals.write(write);
    else if (write.type === 'metadata') this.#putMetadata.run(write.name, write.value);
    else if (write.type === 'removal') for (const remove of this.#removals) remove.run(write.urlId, write.limit);
    else for (const { mac, atMs } of write.sims) this.#activate.run(mac, atMs);
  }

  #addCounts({ deltas, nowMs }: UsageWrite): void {
    for (const delta of deltas) {
      const { month, mac, merchantId, simulated, messagesUp, messagesDown, connections, bytesUp, bytesDown } = delta;
      const counts = [messagesUp, messagesDown, connections, bytesUp, bytesDown];
      this.#addUsage.run(month, mac, merchantId, simulated ? 1 : 0, nowMs, ...counts);
    }
  }
}
