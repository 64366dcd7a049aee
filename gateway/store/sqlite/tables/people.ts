/**
 * Users, sessions and pets (records that the specification of the merchants' interface has beside locks) in the SQLite
 * store. Writes go to the log's writer, which commits them in groups (merchants/merchant-write.ts); frequent reads are
 * hand-written SQL.
 *
 * An int64 is written and read as a bigint, since a JavaScript number has only 53 bits.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Kysely } from 'kysely';
import { dashboardRole } from '../../contract/merchants/dashboard-roles.js';
import type { MerchantOperation } from '../../contract/merchants/merchant-write.js';
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
} from '../../contract/merchants/people-store.js';
import { exceededQuota, overQuotaError, type Quota, type QuotaUse } from '../../contract/merchants/quota.js';
import { usernameKey } from '../../contract/merchants/username-key.js';
import { sql } from '../../tables/kysely.js';
import { refusalError, type WriteForMerchant } from '../../tables/merchant-refusals.js';
import type { Tables } from '../../tables/schema.js';
import { TakenUsers } from './people/taken-users.js';

export interface PeopleParts {
  readonly reader: Database;
  readonly readTables: Kysely<Tables>;
  readonly write: WriteForMerchant;
  readonly quota: Quota;
}

interface LoginRow {
  readonly id: bigint;
  readonly password_hash: string | null;
}

export class SqlitePeople implements PeopleStore {
  readonly #parts: PeopleParts;
  readonly #taken: TakenUsers;
  readonly #quotaUse: Statement;
  readonly #byName: Statement;
  readonly #byKey: Statement;
  readonly #session: Statement;

  constructor(parts: PeopleParts) {
    this.#parts = parts;
    const { reader } = parts;
    this.#taken = new TakenUsers(reader);
    this.#quotaUse = reader.prepare('SELECT pets, users, bytes FROM merchant_kept WHERE merchant_id = ?');
    const selectLogin = 'SELECT id, password_hash FROM user_account WHERE merchant_id = ? AND';
    this.#byName = reader.prepare(`${selectLogin} username = ?`).safeIntegers();
    this.#byKey = reader.prepare(`${selectLogin} username_key = ? LIMIT 2`).safeIntegers();
    this.#session = reader
      .prepare(
        `SELECT s.user_id FROM user_session s JOIN merchant m ON m.id = s.merchant_id
         WHERE s.token_hash = ? AND s.merchant_id = ? AND s.expires_at_ms > ? AND m.closed_at_ms IS NULL`,
      )
      .pluck()
      .safeIntegers();
  }

  async addUsers(merchantId: number, users: readonly NewUser[], nowMs: number): Promise<void> {
    await this.#write('add users', { op: 'add-users', merchantId, users, nowMs, quota: this.#parts.quota });
  }

  async checkNotTaken(merchantId: number, users: readonly Pick<NewUser, 'id' | 'username'>[]): Promise<void> {
    const faults = this.#taken.find(merchantId, users);
    if (faults.length > 0) throw refusalError({ code: 'taken', faults }, this.#parts.quota);
  }

  async checkUserQuota(merchantId: number, newUsers: number): Promise<void> {
    const { quota } = this.#parts;
    const use = this.#quotaUse.get(merchantId) as QuotaUse | undefined;
    const users = (use?.users ?? 0) + newUsers;
    const exceeded = exceededQuota({ pets: 0, users, bytes: use?.bytes ?? 0 }, quota, 'users');
    if (exceeded !== undefined && newUsers > 0) throw overQuotaError(exceeded, quota);
  }

  async listUsers({ merchantId, afterId, limit }: UserPage): Promise<ListedUser[]> {
    let query = this.#users(merchantId).orderBy('user_account.id').limit(limit);
    if (afterId !== null) query = query.where('user_account.id', '>', afterId);
    return (await query.execute()).map(toListedUser);
  }

  async findUser(merchantId: number, id: bigint): Promise<ListedUser | null> {
    const row = await this.#users(merchantId).where('user_account.id', '=', id).executeTakeFirst();
    return row === undefined ? null : toListedUser(row);
  }

  async changeUser(merchantId: number, id: bigint, change: UserChange): Promise<void> {
    await this.#write('change a user', { op: 'change-user', merchantId, id, change, quota: this.#parts.quota });
  }

  async removeUser(merchantId: number, id: bigint): Promise<void> {
    await this.#write('remove a user', { op: 'remove-user', merchantId, id });
  }

  #users(merchantId: number) {
    return this.#parts.readTables
      .selectFrom('user_account')
      .innerJoin('merchant', 'merchant.id', 'user_account.merchant_id')
      .select([idText, 'username', 'first_name', 'last_name', 'email', 'phone', 'user_status', 'dashboard_role'])
      .select(['user_account.created_at_ms', 'merchant.name as merchant_name'])
      .select(sql<number>`password_hash IS NOT NULL`.as('has_password'))
      .where('merchant_id', '=', merchantId);
  }

  async findLogin(merchantId: number, username: string): Promise<{ id: bigint; passwordHash: string | null } | null> {
    const exact = this.#byName.get(merchantId, username) as LoginRow | undefined;
    const [first, ...others] = this.#byKey.all(merchantId, usernameKey(username)) as LoginRow[];
    // Users that an older version added may share a key (their names in one spelling); they must type the exact name.
    const row = exact ?? (others.length === 0 ? first : undefined);
    return row === undefined ? null : { id: row.id, passwordHash: row.password_hash };
  }

  async addSession(session: NewSession): Promise<void> {
    await this.#write('add a session', { op: 'add-session', session });
  }

  async findSession(merchantId: number, tokenHash: Buffer, nowMs: number): Promise<bigint | null> {
    return (this.#session.get(tokenHash, merchantId, nowMs) as bigint | undefined) ?? null;
  }

  async endSession(merchantId: number, tokenHash: Buffer): Promise<void> {
    // Most logouts are without a stored session, and a lookup costs less than a write. With the earliest possible time
    // the lookup finds expired sessions too.
    if (this.#session.get(tokenHash, merchantId, Number.MIN_SAFE_INTEGER) === undefined) return;
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

/** An id as text, since Kysely's connection would read it as a number. */
const idText = sql<string>`CAST(user_account.id AS TEXT)`.as('id_text');

interface UserRow {
  readonly id_text: string;
  readonly username: string | null;
  readonly first_name: string | null;
  readonly last_name: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  readonly user_status: number | null;
  readonly dashboard_role: string | null;
  readonly created_at_ms: number;
  readonly merchant_name: string;
  readonly has_password: number;
}

function toListedUser(row: UserRow): ListedUser {
  return {
    id: BigInt(row.id_text),
    username: row.username,
    firstName: row.first_name,
    lastName: row.last_name,
    email: row.email,
    phone: row.phone,
    userStatus: row.user_status,
    hasPassword: Boolean(row.has_password),
    dashboardRole: dashboardRole(row.dashboard_role),
    createdAtMs: row.created_at_ms,
    merchantName: row.merchant_name,
  };
}
