/**
 * Users, sessions and pets (records that the specification of the merchants' interface has beside locks) in PostgreSQL.
 */
import { dashboardRole } from '../../../contract/merchants/dashboard-roles.js';
import type { MerchantOperation } from '../../../contract/merchants/merchant-write.js';
import type {
  ListedUser,
  NewPet,
  NewSession,
  NewUser,
  PeopleStore,
  Pet,
  PetProfile,
  UserChange,
  UserPage,
} from '../../../contract/merchants/people-store.js';
import { exceededQuota, overQuotaError, type Quota, type QuotaUse } from '../../../contract/merchants/quota.js';
import { usernameKey } from '../../../contract/merchants/username-key.js';
import { refusalError, type WriteForMerchant } from '../../../tables/merchant-refusals.js';
import type { Sql } from '../../sql.js';
import { findTaken } from './rows.js';

export interface PeopleParts {
  readonly read: Sql;
  readonly write: WriteForMerchant;
  readonly quota: Quota;
}

interface UserRow {
  readonly id: string;
  readonly username: string | null;
  readonly first_name: string | null;
  readonly last_name: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  readonly user_status: number | null;
  readonly dashboard_role: string | null;
  readonly created_at_ms: number;
  readonly merchant_name: string;
  readonly has_password: boolean;
}

const USERS = `SELECT u.id::text AS id, u.username, u.first_name, u.last_name, u.email, u.phone, u.user_status,
  u.dashboard_role, u.created_at_ms, m.name AS merchant_name, u.password_hash IS NOT NULL AS has_password
  FROM user_account u JOIN merchant m ON m.id = u.merchant_id`;

interface LoginRow {
  readonly id: string;
  readonly password_hash: string | null;
  readonly is_exact: boolean;
}

export class People implements PeopleStore {
  readonly #parts: PeopleParts;

  constructor(parts: PeopleParts) {
    this.#parts = parts;
  }

  async addUsers(merchantId: number, users: readonly NewUser[], nowMs: number): Promise<void> {
    await this.#write('add users', { op: 'add-users', merchantId, users, nowMs, quota: this.#parts.quota });
  }

  async checkNotTaken(merchantId: number, users: readonly Pick<NewUser, 'id' | 'username'>[]): Promise<void> {
    const faults = await findTaken(this.#parts.read, merchantId, users);
    if (faults.length > 0) throw refusalError({ code: 'taken', faults }, this.#parts.quota);
  }

  async checkUserQuota(merchantId: number, newUsers: number): Promise<void> {
    const { quota, read } = this.#parts;
    const use = await read.get<QuotaUse>(
      'SELECT pets, users, bytes FROM merchant_kept WHERE merchant_id = @merchantId',
      {
        merchantId,
      },
    );
    const users = (use?.users ?? 0) + newUsers;
    const exceeded = exceededQuota({ pets: 0, users, bytes: use?.bytes ?? 0 }, quota, 'users');
    if (exceeded !== undefined && newUsers > 0) throw overQuotaError(exceeded, quota);
  }

  async listUsers({ merchantId, afterId, limit }: UserPage): Promise<ListedUser[]> {
    const { read } = this.#parts;
    const after = afterId === null ? '' : 'AND u.id > @afterId::bigint';
    const rows = await read.all<UserRow>(
      `${USERS} WHERE u.merchant_id = @merchantId ${after} ORDER BY u.id LIMIT @limit`,
      { merchantId, afterId, limit },
    );
    return rows.map(toListedUser);
  }

  async findUser(merchantId: number, id: bigint): Promise<ListedUser | null> {
    const row = await this.#parts.read.get<UserRow>(`${USERS} WHERE u.merchant_id = @merchantId AND u.id = @id`, {
      merchantId,
      id,
    });
    return row === undefined ? null : toListedUser(row);
  }

  async changeUser(merchantId: number, id: bigint, change: UserChange): Promise<void> {
    await this.#write('change a user', { op: 'change-user', merchantId, id, change, quota: this.#parts.quota });
  }

  async removeUser(merchantId: number, id: bigint): Promise<void> {
    await this.#write('remove a user', { op: 'remove-user', merchantId, id });
  }

  async findLogin(merchantId: number, username: string): Promise<{ id: bigint; passwordHash: string | null } | null> {
    const rows = await this.#parts.read.all<LoginRow>(
      `SELECT id::text AS id, password_hash, username = @username AS is_exact FROM user_account
       WHERE merchant_id = @merchantId AND (username = @username OR username_key = @key)
       ORDER BY username = @username DESC LIMIT 2`,
      { merchantId, username, key: usernameKey(username) },
    );
    const [first, ...others] = rows;
    // Users that an older version added may share a key (their names in one spelling); they must type the exact name.
    const row = first?.is_exact || others.length === 0 ? first : undefined;
    return row === undefined ? null : { id: BigInt(row.id), passwordHash: row.password_hash };
  }

  async addSession(session: NewSession): Promise<void> {
    await this.#write('add a session', { op: 'add-session', session });
  }

  async findSession(merchantId: number, tokenHash: Buffer, nowMs: number): Promise<bigint | null> {
    const row = await this.#parts.read.get<{ id: string }>(
      `SELECT s.user_id::text AS id FROM user_session s JOIN merchant m ON m.id = s.merchant_id
       WHERE s.token_hash = @tokenHash AND s.merchant_id = @merchantId AND s.expires_at_ms > @nowMs
         AND m.closed_at_ms IS NULL`,
      { tokenHash, merchantId, nowMs },
    );
    return row === undefined ? null : BigInt(row.id);
  }

  async endSession(merchantId: number, tokenHash: Buffer): Promise<void> {
    // Most logouts are without a known session, and a lookup costs less than a write. The time finds expired ones too.
    if ((await this.findSession(merchantId, tokenHash, Number.MIN_SAFE_INTEGER)) === null) return;
    await this.#write('end a session', { op: 'end-session', merchantId, tokenHash });
  }

  async addPet(merchantId: number, pet: NewPet, nowMs: number): Promise<Pet> {
    const operation = { op: 'add-pet', merchantId, pet, nowMs, quota: this.#parts.quota } as const;
    // The outcome of `add-pet` always has the pet.
    return (await this.#write('add a pet', operation)) as Pet;
  }

  async updatePet(merchantId: number, id: bigint, profile: PetProfile, nowMs: number): Promise<Pet | null> {
    const operation = { op: 'update-pet', merchantId, id, profile, nowMs, quota: this.#parts.quota } as const;
    return (await this.#write('update a pet', operation)) ?? null;
  }

  /** Makes a write and returns the pet, if the write is about a pet. */
  async #write(action: string, operation: MerchantOperation): Promise<Pet | undefined> {
    const outcome = await this.#parts.write(action, operation);
    if (outcome.refusal !== undefined) throw refusalError(outcome.refusal, this.#parts.quota);
    return outcome.pet;
  }
}

function toListedUser(row: UserRow): ListedUser {
  return {
    id: BigInt(row.id),
    username: row.username,
    firstName: row.first_name,
    lastName: row.last_name,
    email: row.email,
    phone: row.phone,
    userStatus: row.user_status,
    hasPassword: row.has_password,
    dashboardRole: dashboardRole(row.dashboard_role),
    createdAtMs: row.created_at_ms,
    merchantName: row.merchant_name,
  };
}
