/**
 * Locks, through Kysely; credentials.ts has their credentials. The caller must make writes exclusive (table-parts.ts).
 * A device is a lock. A removed lock's row stays, since its history refers to the row, but methods treat the lock as
 * missing.
 */
import type { Kysely, Selectable, Transaction } from 'kysely';
import { afterThisTurn } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { Device, DeviceChange, DevicePage, DeviceReading, NewDevice } from '../../contract/devices/device.js';
import { cancelUnfinished } from '../commands.js';
import { findOpenMerchant } from '../registry.js';
import type { DeviceTable } from '../schema/devices.js';
import type { Tables } from '../schema.js';
import type { Dialect } from '../table-parts.js';
import { credentialRow, deviceIdOf, revokeAll } from './credentials.js';
import { labelsColumn, readLabels } from './label-column.js';

/** Maximum rows of one statement: SQLite allows 32,766 values in a statement. */
const MAX_ROWS_PER_STATEMENT = 1000;
/** Maximum number of locks that an error message names. */
const MAX_NAMED_LOCKS = 3;

export class DeviceTables {
  readonly #db: Kysely<Tables>;
  readonly #dialect: Dialect;

  constructor(db: Kysely<Tables>, dialect: Dialect) {
    this.#db = db;
    this.#dialect = dialect;
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
      if (state !== undefined) await putState(db, this.#dialect, deviceId, state);
      if (cancelledAtMs !== undefined) await cancelUnfinished(db, deviceId, cancelledAtMs);
    });
  }

  /** @throws LockgateError `no-such-device` */
  async removeDevice(mac: Mac, nowMs: number, cancelledAtMs = nowMs): Promise<void> {
    await this.#db.transaction().execute(async (db) => {
      const deviceId = await deviceIdOf(db, mac);
      await db.updateTable('device').set({ removed_at_ms: nowMs }).where('id', '=', deviceId).execute();
      await revokeAll(db, deviceId, nowMs);
      await putState(db, this.#dialect, deviceId, null);
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

  /** A query for locks in service, without their states. */
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

  /** A query for locks in service, with their states. */
  #devices() {
    return this.#db
      .selectFrom('device')
      .innerJoin('merchant', 'merchant.id', 'device.merchant_id')
      .leftJoin('device_state', 'device_state.device_id', 'device.id')
      .selectAll('device')
      .select(['merchant.name as merchant_name', 'device_state.state as state'])
      .where('device.removed_at_ms', 'is', null);
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

/** Replaces a lock's stored state; it counts as including all uplinks so far. Null deletes the state. */
export async function putState(
  db: Transaction<Tables>,
  dialect: Dialect,
  deviceId: number,
  state: string | null,
): Promise<void> {
  await db.deleteFrom('device_state').where('device_id', '=', deviceId).execute();
  if (state === null) return;
  const row = { device_id: deviceId, state, through_uplink_id: dialect.newestUplinkOf(deviceId) };
  await db.insertInto('device_state').values(row).execute();
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
