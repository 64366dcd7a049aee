/**
 * The credentials of locks and of phones that act for them, through Kysely. The caller must make writes exclusive
 * (table-parts.ts).
 */
import type { Kysely, Selectable, Transaction } from 'kysely';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { Source } from '../../../../proto/wire/ping.js';
import {
  type CredentialOwner,
  MAX_PHONES_PER_LOCK,
  type NewPhone,
  type Phone,
  type ReplacedCredentials,
} from '../../contract/devices/device.js';
import { noSuchDevice } from '../../contract/errors.js';
import type { CredentialTable } from '../schema/devices.js';
import type { Tables } from '../schema.js';

/** Maximum number of phones in a list: all that may be valid, then the newest of the revoked ones. */
const MAX_LISTED_PHONES = 200;

export class CredentialTables {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** @throws LockgateError `no-such-device` */
  async replaceLockCredential(
    mac: Mac,
    secretHash: Buffer,
    nowMs: number,
    keepOldUntilMs: number | undefined,
  ): Promise<ReplacedCredentials> {
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
  async revokePhone(mac: Mac, name: string, nowMs: number): Promise<ReplacedCredentials> {
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

  /** @throws LockgateError `no-such-device` */
  async revokeCredentials(mac: Mac, nowMs: number): Promise<void> {
    await this.#db.transaction().execute(async (db) => await revokeAll(db, await deviceIdOf(db, mac), nowMs));
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

/** Returns the id of a lock in service. @throws LockgateError `no-such-device` */
export async function deviceIdOf(db: Kysely<Tables>, mac: Mac): Promise<number> {
  const row = await db
    .selectFrom('device')
    .select('id')
    .where('mac', '=', mac)
    .where('removed_at_ms', 'is', null)
    .executeTakeFirst();
  if (row === undefined) throw noSuchDevice(mac);
  return row.id;
}

/** A new credential that does not expire; a phone's gets its name and its expiry besides. */
export function credentialRow(deviceId: number, kind: Source, secretHash: Buffer, nowMs: number) {
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

/** Revokes all credentials of a lock and of its phones. */
export async function revokeAll(db: Transaction<Tables>, deviceId: number, nowMs: number): Promise<void> {
  await db
    .updateTable('credential')
    .set({ revoked_at_ms: nowMs })
    .where('device_id', '=', deviceId)
    .where('revoked_at_ms', 'is', null)
    .execute();
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
