/**
 * Merchants, and reads of quarantined messages and metadata, through Kysely. The caller must make writes exclusive.
 * Locks and their credentials are in devices/.
 */

import type { Kysely, Selectable } from 'kysely';
import { LockgateError } from '../../../proto/errors.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { merchantClosed, noSuchMerchant } from '../contract/errors.js';
import type { QuarantinedMessage } from '../contract/log/log-entry.js';
import type { Merchant } from '../contract/merchants/merchant-store.js';
import type { MerchantTable } from './schema/merchants.js';
import type { Tables } from './schema.js';

export class Registry {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** @throws LockgateError `merchant-exists` */
  async addMerchant(name: string, nowMs: number): Promise<Merchant> {
    return await this.#db.transaction().execute(async (db) => {
      await refuseTakenName(db, name);
      const row = { name, created_at_ms: nowMs, closed_at_ms: null, reopened_at_ms: null };
      return toMerchant(await db.insertInto('merchant').values(row).returningAll().executeTakeFirstOrThrow());
    });
  }

  async listMerchants(): Promise<Merchant[]> {
    return (await this.#db.selectFrom('merchant').selectAll().orderBy('id').execute()).map(toMerchant);
  }

  /** Only messages that the gateway received while the lock belonged to its present merchant. */
  async readQuarantine(deviceId: number, limit: number): Promise<QuarantinedMessage[]> {
    const rows = await this.#db
      .selectFrom('quarantine')
      .innerJoin('device', 'device.id', 'quarantine.device_id')
      .selectAll('quarantine')
      .select('device.mac')
      .where('quarantine.device_id', '=', deviceId)
      .whereRef('quarantine.merchant_id', '=', 'device.merchant_id')
      .orderBy('quarantine.id', 'desc')
      .limit(limit)
      .execute();
    return rows.map(({ id, mac, received_at_ms: receivedAtMs, code, message, bytes }) => {
      return { id, mac: mac as Mac, receivedAtMs, code, message, bytes };
    });
  }

  async readMetadata(name: string): Promise<string | null> {
    const row = await this.#db.selectFrom('fact').select('value').where('name', '=', name).executeTakeFirst();
    return row?.value ?? null;
  }
}

/** Returns the merchant with this name. @throws LockgateError `no-such-merchant` */
export async function findMerchant(db: Kysely<Tables>, name: string): Promise<Selectable<MerchantTable>> {
  const merchant = await db.selectFrom('merchant').selectAll().where('name', '=', name).executeTakeFirst();
  if (merchant === undefined) throw noSuchMerchant(name);
  return merchant;
}

/** Returns the open merchant with this name. @throws LockgateError `no-such-merchant`, `merchant-closed` */
export async function findOpenMerchant(db: Kysely<Tables>, name: string): Promise<Selectable<MerchantTable>> {
  const merchant = await findMerchant(db, name);
  if (merchant.closed_at_ms !== null) throw merchantClosed(name);
  return merchant;
}

/** Checks that no merchant has this name, open or closed. @throws LockgateError `merchant-exists` */
export async function refuseTakenName(db: Kysely<Tables>, name: string): Promise<void> {
  const taken = await db.selectFrom('merchant').select('closed_at_ms').where('name', '=', name).executeTakeFirst();
  if (taken === undefined) return;
  const kind = taken.closed_at_ms === null ? 'a' : 'a closed';
  throw new LockgateError('merchant-exists', `there is ${kind} merchant named ${JSON.stringify(name)} already`);
}

export function toMerchant(row: Selectable<MerchantTable>): Merchant {
  const closing = { closedAtMs: row.closed_at_ms, reopenedAtMs: row.reopened_at_ms };
  return { id: row.id, name: row.name, createdAtMs: row.created_at_ms, ...closing };
}
