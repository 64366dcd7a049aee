/**
 * Writes that share a transaction with uplinks: outcomes of deliveries, counts for the bill, SIMs, metadata, refusals
 * of locks, and what merchants write over HTTP. No acknowledgement of a ping waits for them, but a commit of their own
 * would make pings wait for one more fsync. So the log's writer commits them, along with uplinks where there are some.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { MerchantWrite } from '../../contract/merchants/merchant-write.js';
import type { DeliveryProgress } from '../../contract/store.js';
import type { UsageDelta } from '../../contract/usage-store.js';
import { type RefusalsWrite, RefusalWriter } from '../tables/refusal-writer.js';

/** Outcomes of deliveries. */
export interface ProgressWrite {
  readonly type: 'progress';
  readonly progress: readonly DeliveryProgress[];
}

/** Counts to be added, as of a wall-clock time. */
interface UsageWrite {
  readonly type: 'usage';
  readonly deltas: readonly UsageDelta[];
  readonly nowMs: number;
}

/** First activations of SIMs. */
interface SimsWrite {
  readonly type: 'sims';
  readonly sims: readonly { readonly mac: Mac; readonly atMs: number }[];
}

interface MetadataWrite {
  readonly type: 'fact';
  readonly name: string;
  readonly value: string;
}

/** Writes to tables that nothing else of the log's transaction touches. */
export type PlainWrite = UsageWrite | SimsWrite | MetadataWrite | RefusalsWrite;

export type BatchedWrite = ProgressWrite | PlainWrite | MerchantWrite;

/** Writes them on one connection. To be called inside a transaction. */
export class PlainWriter {
  readonly #addUsage: Statement;
  readonly #activate: Statement;
  readonly #putMetadata: Statement;
  readonly #refusals: RefusalWriter;

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
  }

  /** @throws what SQLite throws */
  write(write: PlainWrite): void {
    if (write.type === 'usage') this.#add(write);
    else if (write.type === 'refusals') this.#refusals.write(write);
    else if (write.type === 'fact') this.#putMetadata.run(write.name, write.value);
    else for (const { mac, atMs } of write.sims) this.#activate.run(mac, atMs);
  }

  #add({ deltas, nowMs }: UsageWrite): void {
    for (const delta of deltas) {
      const { month, mac, merchantId, simulated, messagesUp, messagesDown, connections, bytesUp, bytesDown } = delta;
      const counts = [messagesUp, messagesDown, connections, bytesUp, bytesDown];
      this.#addUsage.run(month, mac, merchantId, simulated ? 1 : 0, nowMs, ...counts);
    }
  }
}
