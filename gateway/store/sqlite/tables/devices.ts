/**
 * Locks, and the credentials of locks and phones, in the SQLite store, through Kysely. The caller must hold the write
 * mutex for writes. A device is a lock. A removed lock's row stays, since its history refers to the row, but methods
 * treat the lock as missing.
 */
import type { Kysely, Selectable, Transaction } from 'kysely';
import { afterThisTurn } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { Source } from '../../../../proto/wire/ping.js';
import { noSuchDevice } from '../../contract/errors.js';
import {
  type CredentialOwner,
  type Device,
  type DeviceChange,
  type DevicePage,
  type DeviceReading,
  type InvalidCredentials,
  MAX_PHONES_PER_LOCK,
  type NewDevice,
  type NewPhone,
  type Phone,
} from '../../contract/store.js';
import { sql } from '../kysely.js';
import type { CredentialTable, DeviceTable, Tables } from '../schema.js';
import { cancelUnfinished } from './commands.js';
import { labelsColumn, readLabels } from './label-column.js';
import { findOpenMerchant } from './registry.js';

/** Maximum rows of one statement: SQLite allows 32,766 values in a statement. */
const MAX_ROWS_PER_STATEMENT = 1000;
/** Maximum number of phones in a list: all that may be valid, then the newest of the revoked ones. */
const MAX_LISTED_PHONES = 200;
/** Maximum number of locks that an error message names. */
const MAX_NAMED_LOCKS = 3;

export class DeviceTables {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** Adds all devices or none. @throws LockgateError `no-such-merchant`, `device-exists` */
  async addDevices(devices: readonly NewDevice[]): Promise<void> {
    await this.#db.transaction().execute(async (db) => {
      const merchantIds = new Map<string, number>();
      for (const { merchant } of devices)
        if (!merchantIds.has(merchant)) merchantIds.set(merchant, (await findOpenMerchant(db, merchant)).id);
      for (const chunk of chunksOf(devices)) {
        const taken = await takenMacs(
          db,
          chunk.map(({ mac }) => mac),
        );
        if (taken.length > 0) throw deviceExists(taken);
        const rows = chunk.map(({ mac, merchant, simulated, nowMs, name, labels }) => ({
          mac,
          merchant_id: merchantIds.get(merchant) as number,
          simulated: simulated ? 1 : 0,
          created_at_ms: nowMs,
          removed_at_ms: null,
          name: name ?? null,
          labels: labelsColumn(labels),
        }));
        const added = await db
          .insertInto('device')
          .values(rows)
          // A removed lock returns to service, with its history.
          .onConflict((conflict) =>
            conflict.column('mac').doUpdateSet(({ ref }) => ({
              merchant_id: ref('excluded.merchant_id'),
              simulated: ref('excluded.simulated'),
              created_at_ms: ref('excluded.created_at_ms'),
              removed_at_ms: null,
              name: ref('excluded.name'),
              labels: ref('excluded.labels'),
            })),
          )
          .returning(['id', 'mac'])
          .execute();
        const idOf = new Map(added.map(({ id, mac }) => [mac, id]));
        const secrets = chunk.map(({ mac, secretHash, nowMs }) =>
          credentialRow(idOf.get(mac) as number, 'lock', secretHash, nowMs),
        );
        await db.insertInto('credential').values(secrets).execute();
        // Lets other work of the event loop run in between. Other writes wait for the whole transaction.
        await new Promise<void>((resolve) => afterThisTurn(resolve));
      }
    });
  }

  async findTakenMacs(macs: readonly Mac[]): Promise<Mac[]> {
    const taken: Mac[] = [];
    for (const chunk of chunksOf(macs)) taken.push(...(await takenMacs(this.#db, chunk)));
    return taken;
  }

  /** @throws LockgateError `no-such-device` */
  async replaceLockCredential(
    mac: Mac,
    secretHash: Buffer,
    nowMs: number,
    keepOldUntilMs: number | undefined,
  ): Promise<InvalidCredentials> {
    return await this.#db.transaction().execute(async (db) => {
      const deviceId = await deviceIdOf(db, mac);
      const unrevoked = await db
        .selectFrom('credential')
        .select(['id', 'expires_at_ms'])
        .where('device_id', '=', deviceId)
        .where('kind', '=', 'lock')
        .where('revoked_at_ms', 'is', null)
        .orderBy('id', 'desc')
        .execute();
      // Only the latest old credential may stay valid for a while, and never longer than before.
      const retained = keepOldUntilMs === undefined ? undefined : unrevoked[0];
      if (retained !== undefined && keepOldUntilMs !== undefined)
        await db
          .updateTable('credential')
          .set({ expires_at_ms: Math.min(keepOldUntilMs, retained.expires_at_ms ?? keepOldUntilMs) })
          .where('id', '=', retained.id)
          .execute();
      const unrevokedIds = unrevoked.map(({ id }) => id);
      const idsToRevoke = unrevokedIds.filter((id) => id !== retained?.id);
      await revoke(db, idsToRevoke, nowMs);
      await db
        .insertInto('credential')
        .values(credentialRow(deviceId, 'lock', secretHash, nowMs))
        .execute();
      return { deviceId, credentialIds: unrevokedIds };
    });
  }

  /** @throws LockgateError `no-such-device`, `phone-exists`, `too-many-phones` */
  async addPhone({ mac, name, secretHash, expiresAtMs, nowMs }: NewPhone): Promise<Phone> {
    return await this.#db.transaction().execute(async (db) => {
      const deviceId = await deviceIdOf(db, mac);
      const phones = await db
        .selectFrom('credential')
        .select('name')
        .where('device_id', '=', deviceId)
        .where('kind', '=', 'phone')
        .where('revoked_at_ms', 'is', null)
        .where(({ eb, or }) => or([eb('expires_at_ms', 'is', null), eb('expires_at_ms', '>', nowMs)]))
        .execute();
      if (phones.some((phone) => phone.name === name))
        throw new LockgateError('phone-exists', `${formatMac(mac)} has a phone named ${JSON.stringify(name)} already`);
      if (phones.length >= MAX_PHONES_PER_LOCK)
        throw new LockgateError(
          'too-many-phones',
          `${formatMac(mac)} has ${phones.length} phones, the maximum being ${MAX_PHONES_PER_LOCK}: revoke one first`,
        );
      const row = { ...credentialRow(deviceId, 'phone', secretHash, nowMs), name, expires_at_ms: expiresAtMs };
      return toPhone(await db.insertInto('credential').values(row).returningAll().executeTakeFirstOrThrow());
    });
  }

  /** All credentials, oldest first; those of removed locks too, whose history names them. */
  async listCredentials(): Promise<CredentialOwner[]> {
    const rows = await this.#db
      .selectFrom('credential')
      .innerJoin('device', 'device.id', 'credential.device_id')
      .select(['credential.id', 'credential.device_id', 'credential.kind', 'device.mac'])
      .orderBy('credential.id')
      .execute();
    return rows.map(({ id, device_id: deviceId, kind, mac }) => ({
      credentialId: id,
      deviceId,
      mac: mac as Mac,
      source: kind,
    }));
  }

  /** @throws LockgateError `no-such-device` */
  async listPhones(mac: Mac): Promise<Phone[]> {
    const rows = await this.#db
      .selectFrom('credential')
      .selectAll()
      .where('device_id', '=', await deviceIdOf(this.#db, mac))
      .where('kind', '=', 'phone')
      .orderBy(({ eb }) => eb('revoked_at_ms', 'is not', null))
      .orderBy('id', 'desc')
      .limit(MAX_LISTED_PHONES)
      .execute();
    return rows.map(toPhone);
  }

  /** @throws LockgateError `no-such-device`, `no-such-phone` */
  async revokePhone(mac: Mac, name: string, nowMs: number): Promise<InvalidCredentials> {
    return await this.#db.transaction().execute(async (db) => {
      const deviceId = await deviceIdOf(db, mac);
      const rows = await db
        .selectFrom('credential')
        .select('id')
        .where('device_id', '=', deviceId)
        .where('kind', '=', 'phone')
        .where('name', '=', name)
        .where('revoked_at_ms', 'is', null)
        .execute();
      if (rows.length === 0)
        throw new LockgateError('no-such-phone', `${formatMac(mac)} has no phone named ${JSON.stringify(name)}`);
      const credentialIds = rows.map(({ id }) => id);
      await revoke(db, credentialIds, nowMs);
      return { deviceId, credentialIds };
    });
  }

  /** @throws LockgateError `no-such-device`, `no-such-merchant` */
  async changeDevice(change: DeviceChange): Promise<void> {
    const { mac, merchant, simulated, name, labels, state, cancelledAtMs } = change;
    await this.#db.transaction().execute(async (db) => {
      const deviceId = await deviceIdOf(db, mac);
      const changes = {
        ...(merchant !== undefined && { merchant_id: (await findOpenMerchant(db, merchant)).id }),
        ...(simulated !== undefined && { simulated: simulated ? 1 : 0 }),
        ...(name !== undefined && { name }),
        ...(labels !== undefined && { labels: labelsColumn(labels) }),
      };
      if (Object.keys(changes).length > 0)
        await db.updateTable('device').set(changes).where('id', '=', deviceId).execute();
      if (state !== undefined) await putState(db, deviceId, state);
      if (cancelledAtMs !== undefined) await cancelUnfinished(db, deviceId, cancelledAtMs);
    });
  }

  /** @throws LockgateError `no-such-device` */
  async revokeCredentials(mac: Mac, nowMs: number): Promise<void> {
    await this.#db.transaction().execute(async (db) => await revokeAll(db, await deviceIdOf(db, mac), nowMs));
  }

  /** @throws LockgateError `no-such-device` */
  async removeDevice(mac: Mac, nowMs: number, cancelledAtMs = nowMs): Promise<void> {
    await this.#db.transaction().execute(async (db) => {
      const deviceId = await deviceIdOf(db, mac);
      await db.updateTable('device').set({ removed_at_ms: nowMs }).where('id', '=', deviceId).execute();
      await revokeAll(db, deviceId, nowMs);
      await putState(db, deviceId, null);
      await cancelUnfinished(db, deviceId, cancelledAtMs);
    });
  }

  async findDeviceId(mac: Mac): Promise<number | null> {
    const row = await this.#db.selectFrom('device').select('id').where('mac', '=', mac).executeTakeFirst();
    return row?.id ?? null;
  }

  async listDevices(): Promise<DeviceReading[]> {
    return (await this.#devices().orderBy('device.mac').execute()).map(toReading);
  }

  /** Only the locks' own columns, so that a page of a thousand takes a few milliseconds. */
  async readDevices({ merchantId, afterMac, limit }: DevicePage): Promise<Device[]> {
    let query = this.#listed();
    if (merchantId !== undefined) query = query.where('device.merchant_id', '=', merchantId);
    if (afterMac !== undefined) query = query.where('device.mac', '>', afterMac);
    return (await query.orderBy('device.mac').limit(limit).execute()).map(toDevice);
  }

  async findDevices(deviceIds: readonly number[]): Promise<Device[]> {
    if (deviceIds.length === 0) return [];
    return (await this.#listed().where('device.id', 'in', deviceIds).execute()).map(toDevice);
  }

  #listed() {
    return this.#db
      .selectFrom('device')
      .innerJoin('merchant', 'merchant.id', 'device.merchant_id')
      .selectAll('device')
      .select('merchant.name as merchant_name')
      .where('device.removed_at_ms', 'is', null);
  }

  async countDevices(merchantId?: number): Promise<number> {
    let query = this.#db
      .selectFrom('device')
      .select((row) => row.fn.countAll<number>().as('count'))
      .where('removed_at_ms', 'is', null);
    if (merchantId !== undefined) query = query.where('merchant_id', '=', merchantId);
    return Number((await query.executeTakeFirstOrThrow()).count);
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
      .select(['merchant.name as merchant_name', 'device_state.state as state'])
      .where('device.removed_at_ms', 'is', null);
  }

  /** Returns the ids of all of a device's credentials of one kind, newest first. */
  async readCredentialIds(deviceId: number, kind: Source): Promise<number[]> {
    const rows = await this.#db
      .selectFrom('credential')
      .select('id')
      .where('device_id', '=', deviceId)
      .where('kind', '=', kind)
      .orderBy('id', 'desc')
      .execute();
    return rows.map((row) => row.id);
  }
}

function* chunksOf<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += MAX_ROWS_PER_STATEMENT)
    yield items.slice(start, start + MAX_ROWS_PER_STATEMENT);
}

async function takenMacs(db: Kysely<Tables>, macs: readonly Mac[]): Promise<Mac[]> {
  const rows = await db
    .selectFrom('device')
    .select('mac')
    .where('mac', 'in', macs)
    .where('removed_at_ms', 'is', null)
    .execute();
  return rows.map(({ mac }) => mac as Mac);
}

function deviceExists(macs: readonly Mac[]): LockgateError {
  const named = macs.slice(0, MAX_NAMED_LOCKS).map(formatMac).join(', ');
  const more = macs.length > MAX_NAMED_LOCKS ? ` and ${macs.length - MAX_NAMED_LOCKS} more` : '';
  return new LockgateError('device-exists', `there is a device ${named}${more} already`);
}

/** Returns the id of a lock in service. @throws LockgateError `no-such-device` */
async function deviceIdOf(db: Kysely<Tables>, mac: Mac): Promise<number> {
  const row = await db
    .selectFrom('device')
    .select('id')
    .where('mac', '=', mac)
    .where('removed_at_ms', 'is', null)
    .executeTakeFirst();
  if (row === undefined) throw noSuchDevice(mac);
  return row.id;
}

function credentialRow(deviceId: number, kind: Source, secretHash: Buffer, nowMs: number) {
  return {
    device_id: deviceId,
    kind,
    secret_hash: secretHash,
    created_at_ms: nowMs,
    revoked_at_ms: null,
    name: null,
    expires_at_ms: null,
  };
}

async function revoke(db: Transaction<Tables>, credentialIds: readonly number[], nowMs: number): Promise<void> {
  if (credentialIds.length === 0) return;
  await db.updateTable('credential').set({ revoked_at_ms: nowMs }).where('id', 'in', credentialIds).execute();
}

async function revokeAll(db: Transaction<Tables>, deviceId: number, nowMs: number): Promise<void> {
  await db
    .updateTable('credential')
    .set({ revoked_at_ms: nowMs })
    .where('device_id', '=', deviceId)
    .where('revoked_at_ms', 'is', null)
    .execute();
}

/** Replaces a lock's stored state; it counts as including all uplinks so far. Null deletes the state. */
export async function putState(db: Transaction<Tables>, deviceId: number, state: string | null): Promise<void> {
  await db.deleteFrom('device_state').where('device_id', '=', deviceId).execute();
  if (state === null) return;
  const lastUplinkId = sql<number>`(SELECT coalesce(max(id), 0) FROM uplink)`;
  const row = { device_id: deviceId, state, through_uplink_id: lastUplinkId };
  await db.insertInto('device_state').values(row).execute();
}

function toPhone(row: Selectable<CredentialTable>): Phone {
  return {
    credentialId: row.id,
    name: row.name ?? '',
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    revokedAtMs: row.revoked_at_ms,
  };
}

type DeviceRow = Selectable<DeviceTable> & { merchant_name: string };

function toReading(row: DeviceRow & { state: string | null }): DeviceReading {
  return { device: toDevice(row), state: row.state };
}

function toDevice(row: DeviceRow): Device {
  return {
    id: row.id,
    mac: row.mac as Mac,
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    simulated: row.simulated === 1,
    createdAtMs: row.created_at_ms,
    name: row.name,
    labels: readLabels(row.labels),
  };
}
