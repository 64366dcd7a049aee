/** Refusals of locks: read through Kysely; an engine writes them together with uplinks. */
import type { Kysely } from 'kysely';
import {
  REFUSALS_RETAINED_FOR,
  type Refusal,
  type RefusalChange,
  type RefusalStore,
} from '../contract/devices/refusal-store.js';
import type { Tables } from './schema.js';
import type { WriteBatched } from './table-parts.js';

export interface RefusalParts {
  /** On the read-only connection. */
  readonly readTables: Kysely<Tables>;
  readonly writeBatched: WriteBatched;
}

export class Refusals implements RefusalStore {
  readonly #parts: RefusalParts;

  constructor(parts: RefusalParts) {
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
