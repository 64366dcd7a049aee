/** Changes of merchants (contract/merchants/merchant-store.ts), through Kysely. */
import type { Kysely } from 'kysely';
import { LockgateError } from '../../../proto/errors.js';
import type { Merchant } from '../contract/merchants/merchant-store.js';
import { MERCHANT_CLOSED, type MerchantClosing, type MerchantStore } from '../contract/merchants/merchant-store.js';
import { findMerchant, refuseTakenName, toMerchant } from './registry.js';
import type { Tables } from './schema.js';
import type { TableParts } from './table-parts.js';

export interface MerchantParts extends TableParts {
  /**
   * Makes a disabled webhook URL active again, within the running transaction. It gets the pings that arrive from now
   * on, and none from the time when it was disabled.
   */
  readonly enableUrl: (db: Kysely<Tables>, urlId: number) => Promise<unknown>;
}

export class Merchants implements MerchantStore {
  readonly #parts: MerchantParts;

  constructor(parts: MerchantParts) {
    this.#parts = parts;
  }

  rename(name: string, newName: string): Promise<Merchant> {
    return this.#transaction(async (db) => {
      const { id } = await findMerchant(db, name);
      if (newName !== name) await refuseTakenName(db, newName);
      return await update(db, id, { name: newName });
    });
  }

  close(name: string, nowMs: number): Promise<MerchantClosing> {
    return this.#transaction(async (db) => {
      const { id, closed_at_ms: closedAtMs } = await findMerchant(db, name);
      if (closedAtMs !== null)
        throw new LockgateError('merchant-closed', `the merchant ${JSON.stringify(name)} is closed already`);
      const merchant = await update(db, id, { closed_at_ms: nowMs });
      const urls = await db
        .updateTable('webhook_url')
        .set({ state: 'disabled', disabled_why: MERCHANT_CLOSED })
        .where('merchant_id', '=', id)
        .where('state', '=', 'active')
        .returning('id')
        .execute();
      return { merchant, urlIds: urls.map((url) => url.id) };
    });
  }

  reopen(name: string, nowMs: number): Promise<MerchantClosing> {
    return this.#transaction(async (db) => {
      const { id, closed_at_ms: closedAtMs } = await findMerchant(db, name);
      if (closedAtMs === null)
        throw new LockgateError('merchant-open', `${JSON.stringify(name)} is not closed: there is nothing to reopen`);
      const merchant = await update(db, id, { closed_at_ms: null, reopened_at_ms: nowMs });
      const urls = await db
        .selectFrom('webhook_url')
        .select('id')
        .where('merchant_id', '=', id)
        .where('disabled_why', '=', MERCHANT_CLOSED)
        .execute();
      for (const url of urls) await this.#parts.enableUrl(db, url.id);
      return { merchant, urlIds: urls.map((url) => url.id) };
    });
  }

  #transaction<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    return this.#parts.mutex.runExclusive(() => this.#parts.tables.transaction().execute(work));
  }
}

interface Change {
  readonly name?: string;
  readonly closed_at_ms?: number | null;
  readonly reopened_at_ms?: number;
}

async function update(db: Kysely<Tables>, id: number, change: Change): Promise<Merchant> {
  const query = db.updateTable('merchant').set(change).where('id', '=', id).returningAll();
  return toMerchant(await query.executeTakeFirstOrThrow());
}
