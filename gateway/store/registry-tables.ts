/**
 * The ordinary tables, through Kysely, so that every engine shares these statements: merchants, devices and their
 * credentials, webhook URLs, quarantine (reading), facts.
 */
import { type Kysely, NoResultError, type Selectable, type Transaction } from 'kysely';
import { LockgateError } from '../../proto/errors.js';
import { formatMac, type Mac } from '../../proto/mac.js';
import type { MerchantTable, Tables, WebhookUrlTable } from './schema.js';
import type {
  Device,
  DeviceReading,
  Merchant,
  NewDevice,
  NewWebhookUrl,
  QuarantinedMessage,
  WebhookUrl,
} from './store.js';

export class Registry {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** @throws LockgateError `merchant-exists` */
  async addMerchant(name: string, nowMs: number): Promise<Merchant> {
    return await this.#db.transaction().execute(async (db) => {
      const taken = await db.selectFrom('merchant').select('id').where('name', '=', name).executeTakeFirst();
      if (taken !== undefined)
        throw new LockgateError('merchant-exists', `there is a merchant named ${JSON.stringify(name)} already`);
      const row = { name, created_at_ms: nowMs };
      return toMerchant(await db.insertInto('merchant').values(row).returningAll().executeTakeFirstOrThrow());
    });
  }

  async listMerchants(): Promise<Merchant[]> {
    return (await this.#db.selectFrom('merchant').selectAll().orderBy('id').execute()).map(toMerchant);
  }

  /** @throws LockgateError `no-such-merchant`, `device-exists` */
  async addDevice(device: NewDevice): Promise<Device> {
    await this.#db.transaction().execute(async (db) => {
      const merchant = await merchantNamed(db, device.merchant);
      const taken = await db.selectFrom('device').select('id').where('mac', '=', device.mac).executeTakeFirst();
      if (taken !== undefined)
        throw new LockgateError('device-exists', `there is a device ${formatMac(device.mac)} already`);
      const row = {
        mac: device.mac,
        merchant_id: merchant.id,
        simulated: device.simulated ? 1 : 0,
        created_at_ms: device.nowMs,
      };
      const { id } = await db.insertInto('device').values(row).returning('id').executeTakeFirstOrThrow();
      await insertLockCredential(db, id, device.secretHash, device.nowMs);
    });
    const added = await this.findDevice(device.mac);
    if (added === null) throw new NoResultError({ kind: 'SelectQueryNode' });
    return added.device;
  }

  /** @throws LockgateError `no-such-device` */
  async replaceLockCredential(mac: Mac, secretHash: Buffer, nowMs: number): Promise<void> {
    await this.#db.transaction().execute(async (db) => {
      const device = await db.selectFrom('device').select('id').where('mac', '=', mac).executeTakeFirst();
      if (device === undefined) throw noSuchDevice(mac);
      await db
        .updateTable('credential')
        .set({ revoked_at_ms: nowMs })
        .where('device_id', '=', device.id)
        .where('kind', '=', 'lock')
        .where('revoked_at_ms', 'is', null)
        .execute();
      await insertLockCredential(db, device.id, secretHash, nowMs);
    });
  }

  async listDevices(): Promise<DeviceReading[]> {
    return (await this.#devices().orderBy('device.mac').execute()).map(toReading);
  }

  async findDevice(mac: Mac): Promise<DeviceReading | null> {
    const row = await this.#devices().where('device.mac', '=', mac).executeTakeFirst();
    return row === undefined ? null : toReading(row);
  }

  #devices() {
    return this.#db
      .selectFrom('device')
      .innerJoin('merchant', 'merchant.id', 'device.merchant_id')
      .leftJoin('device_state', 'device_state.device_id', 'device.id')
      .selectAll('device')
      .select(['merchant.name as merchant_name', 'device_state.state as state']);
  }

  /** All of a device's credentials, newest first. */
  async credentialIds(deviceId: number): Promise<number[]> {
    const rows = await this.#db
      .selectFrom('credential')
      .select('id')
      .where('device_id', '=', deviceId)
      .orderBy('id', 'desc')
      .execute();
    return rows.map((row) => row.id);
  }

  async readQuarantine(deviceId: number, limit: number): Promise<QuarantinedMessage[]> {
    const rows = await this.#db
      .selectFrom('quarantine')
      .innerJoin('device', 'device.id', 'quarantine.device_id')
      .selectAll('quarantine')
      .select('device.mac')
      .where('quarantine.device_id', '=', deviceId)
      .orderBy('quarantine.id', 'desc')
      .limit(limit)
      .execute();
    return rows.map(({ id, mac, received_at_ms: receivedAtMs, code, message, bytes }) => {
      return { id, mac: mac as Mac, receivedAtMs, code, message, bytes };
    });
  }

  /** A new URL follows the log from now on. @throws LockgateError `no-such-merchant` */
  async addWebhookUrl(url: NewWebhookUrl): Promise<WebhookUrl> {
    return await this.#db.transaction().execute(async (db) => {
      const merchant = await merchantNamed(db, url.merchant);
      const last = await db.selectFrom('uplink').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst();
      const row = {
        merchant_id: merchant.id,
        url: url.url,
        headers: JSON.stringify(url.headers),
        secret_sealed: url.secretSealed,
        state: 'active' as const,
        disabled_why: null,
        cursor: last?.id ?? 0,
        created_at_ms: url.nowMs,
      };
      const added = await db.insertInto('webhook_url').values(row).returningAll().executeTakeFirstOrThrow();
      return toWebhookUrl({ ...added, merchant_name: merchant.name });
    });
  }

  async listWebhookUrls(): Promise<WebhookUrl[]> {
    const rows = await this.#db
      .selectFrom('webhook_url')
      .innerJoin('merchant', 'merchant.id', 'webhook_url.merchant_id')
      .selectAll('webhook_url')
      .select('merchant.name as merchant_name')
      .orderBy('webhook_url.id')
      .execute();
    return rows.map(toWebhookUrl);
  }

  async readFact(name: string): Promise<string | null> {
    const row = await this.#db.selectFrom('fact').select('value').where('name', '=', name).executeTakeFirst();
    return row?.value ?? null;
  }

  async writeFact(name: string, value: string): Promise<void> {
    await this.#db
      .insertInto('fact')
      .values({ name, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
      .execute();
  }
}

/** The merchant of this name. @throws LockgateError `no-such-merchant` */
export async function merchantNamed(db: Transaction<Tables>, name: string): Promise<Selectable<MerchantTable>> {
  const merchant = await db.selectFrom('merchant').selectAll().where('name', '=', name).executeTakeFirst();
  if (merchant === undefined)
    throw new LockgateError('no-such-merchant', `there is no merchant named ${JSON.stringify(name)}`);
  return merchant;
}

async function insertLockCredential(
  db: Transaction<Tables>,
  deviceId: number,
  secretHash: Buffer,
  nowMs: number,
): Promise<void> {
  const row = {
    device_id: deviceId,
    kind: 'lock' as const,
    secret_hash: secretHash,
    created_at_ms: nowMs,
    revoked_at_ms: null,
  };
  await db.insertInto('credential').values(row).execute();
}

/** The error for a MAC that no device has. */
export function noSuchDevice(mac: Mac): LockgateError {
  return new LockgateError('no-such-device', `there is no device ${formatMac(mac)}`);
}

function toMerchant(row: Selectable<MerchantTable>): Merchant {
  return { id: row.id, name: row.name, createdAtMs: row.created_at_ms };
}

function toReading(row: {
  id: number;
  mac: string;
  merchant_id: number;
  merchant_name: string;
  simulated: number;
  created_at_ms: number;
  state: string | null;
}): DeviceReading {
  const device: Device = {
    id: row.id,
    mac: row.mac as Mac,
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    simulated: row.simulated === 1,
    createdAtMs: row.created_at_ms,
  };
  return { device, state: row.state };
}

function toWebhookUrl(row: Selectable<WebhookUrlTable> & { merchant_name: string }): WebhookUrl {
  return {
    id: row.id,
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    url: row.url,
    headers: JSON.parse(row.headers) as Record<string, string>,
    secretSealed: row.secret_sealed,
    state: row.state,
    disabledWhy: row.disabled_why,
    cursor: row.cursor,
    createdAtMs: row.created_at_ms,
  };
}
