/** Refusals of locks in the SQLite store: written by the log's writer (log/batched-write.ts), read through Kysely. */
import type { Kysely } from 'kysely';
import {
  REFUSALS_RETAINED_FOR,
  type Refusal,
  type RefusalChange,
  type RefusalStore,
} from '../../contract/devices/refusal-store.js';
import type { BatchedWrite } from '../log/batched-write.js';
import type { Tables } from '../schema.js';

export interface SqliteRefusalsParts {
  /** On the read-only connection. */
  readonly readTables: Kysely<Tables>;
  /** Makes a write through the log's writer; rejects with a StoreFailure "the store could not <action>". */
  readonly writeBatched: (action: string, write: BatchedWrite) => Promise<void>;
}

export class SqliteRefusals implements RefusalStore {
  readonly #parts: SqliteRefusalsParts;

  constructor(parts: SqliteRefusalsParts) {
    this.#parts = parts;
  }

  write(changes: readonly RefusalChange[], nowMs: number): Promise<void> {
    return this.#parts.writeBatched('store refusals', { type: 'refusals', changes, nowMs });
  }

  async read(deviceId: number, nowMs: number): Promise<Refusal[]> {
    const rows = await this.#parts.readTables
      .selectFrom('refusal')
      .innerJoin('device', 'device.id', 'refusal.device_id')
      .selectAll('refusal')
      .where('refusal.device_id', '=', deviceId)
      .whereRef('refusal.merchant_id', '=', 'device.merchant_id')
      .where('refusal.last_at_ms', '>=', nowMs - REFUSALS_RETAINED_FOR)
      .orderBy('refusal.last_at_ms', 'desc')
      .orderBy('refusal.id', 'desc')
      .execute();
    return rows.map(({ source, what, reason, why, address, count, first_at_ms: firstAtMs, last_at_ms: lastAtMs }) => {
      return { source, what, reason, why, address, count, firstAtMs, lastAtMs };
    });
  }
}
