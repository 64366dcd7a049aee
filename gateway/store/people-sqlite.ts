/**
 * Users, sessions and pets in the SQLite store, through Kysely; whatever writes takes its turn on the store's lane.
 *
 * An int64 is written as a bigint and read as text: a number of JavaScript's has 53 bits, and every engine can spell
 * an integer.
 */
import type { Kysely, Selectable } from 'kysely';
import { parse, stringify } from 'lossless-json';
import { FAULTS_TOLD, type Fault, ManyFaults } from '../faults.js';
import type { TableParts } from './access-sqlite.js';
import { sql } from './kysely.js';
import {
  INT64_MAX,
  type ListedUser,
  type NamedId,
  type NewPet,
  type NewSession,
  type NewUser,
  type PeopleStore,
  type Pet,
  type PetProfile,
  SESSIONS_PER_USER,
  type UserPage,
} from './people-store.js';
import { merchantNamed } from './registry-tables.js';
import type { PetTable, Tables } from './schema.js';

/** Rows of one statement: SQLite bears 32,766 parameters, and a user has eleven. */
const ROWS_AT_ONCE = 500;

type Named = Pick<NewUser, 'id' | 'username'>;

export class SqlitePeople implements PeopleStore {
  readonly #parts: TableParts;

  constructor(parts: TableParts) {
    this.#parts = parts;
  }

  addUsers(merchantId: number, users: readonly NewUser[], nowMs: number): Promise<void> {
    return this.#transaction(async (db) => {
      await refuseTaken(db, merchantId, users);
      const ids = await freeIds(db, merchantId, users);
      const rows = users.map((user, index) => ({
        merchant_id: merchantId,
        id: user.id ?? (ids[index] as bigint),
        username: user.username,
        first_name: user.firstName,
        last_name: user.lastName,
        email: user.email,
        phone: user.phone,
        password_hash: user.passwordHash,
        user_status: user.userStatus,
        created_at_ms: nowMs,
      }));
      for (const piece of pieces(rows)) await db.insertInto('user_account').values(piece).execute();
    });
  }

  findTaken(merchantId: number, users: readonly Named[]): Promise<void> {
    return refuseTaken(this.#parts.readTables, merchantId, users);
  }

  async listUsers({ merchant: name, afterId, limit }: UserPage): Promise<ListedUser[]> {
    const merchant = await merchantNamed(this.#parts.readTables, name);
    const some = this.#parts.readTables
      .selectFrom('user_account')
      .select([idText, 'username', 'first_name', 'last_name', 'email', 'phone', 'user_status', 'created_at_ms'])
      .select(sql<number>`password_hash IS NOT NULL`.as('has_password'))
      .where('merchant_id', '=', merchant.id)
      .orderBy('id')
      .limit(limit);
    const rows = await (afterId === null ? some : some.where('id', '>', afterId)).execute();
    return rows.map((row) => ({
      id: BigInt(row.id_text),
      username: row.username,
      firstName: row.first_name,
      lastName: row.last_name,
      email: row.email,
      phone: row.phone,
      userStatus: row.user_status,
      hasPassword: Boolean(row.has_password),
      createdAtMs: row.created_at_ms,
      merchantName: name,
    }));
  }

  async findLogin(merchantId: number, username: string): Promise<{ id: bigint; passwordHash: string | null } | null> {
    const row = await this.#parts.readTables
      .selectFrom('user_account')
      .select([idText, 'password_hash'])
      .where('merchant_id', '=', merchantId)
      .where('username', '=', username)
      .executeTakeFirst();
    return row === undefined ? null : { id: BigInt(row.id_text), passwordHash: row.password_hash };
  }

  addSession({ merchantId, userId, tokenHash, nowMs, expiresAtMs }: NewSession): Promise<void> {
    return this.#transaction(async (db) => {
      await db.deleteFrom('user_session').where('expires_at_ms', '<=', nowMs).execute();
      const row = { merchant_id: merchantId, user_id: userId, token_hash: tokenHash, expires_at_ms: expiresAtMs };
      await db.insertInto('user_session').values(row).execute();
      const theirs = db.selectFrom('user_session').select('id').where('merchant_id', '=', merchantId);
      const kept = theirs.where('user_id', '=', userId).orderBy('id', 'desc').limit(SESSIONS_PER_USER);
      await db
        .deleteFrom('user_session')
        .where('merchant_id', '=', merchantId)
        .where('user_id', '=', userId)
        .where('id', 'not in', kept)
        .execute();
    });
  }

  async findSession(merchantId: number, tokenHash: Buffer, nowMs: number): Promise<bigint | null> {
    const row = await this.#parts.readTables
      .selectFrom('user_session')
      .select(sql<string>`CAST(user_id AS TEXT)`.as('user_id'))
      .where('token_hash', '=', tokenHash)
      .where('merchant_id', '=', merchantId)
      .where('expires_at_ms', '>', nowMs)
      .executeTakeFirst();
    return row === undefined ? null : BigInt(row.user_id);
  }

  endSession(merchantId: number, tokenHash: Buffer): Promise<void> {
    return this.#transaction(async (db) => {
      await db
        .deleteFrom('user_session')
        .where('token_hash', '=', tokenHash)
        .where('merchant_id', '=', merchantId)
        .execute();
    });
  }

  addPet(merchantId: number, pet: NewPet, nowMs: number): Promise<Pet> {
    return this.#transaction(async (db) => {
      const id = (await lastId(db, merchantId, 'pet')) + 1n;
      await noteLastId(db, merchantId, 'pet', id);
      const row = {
        merchant_id: merchantId,
        id,
        name: pet.name,
        owner_id: pet.ownerId,
        species: pet.species,
        breed: pet.breed,
        photo_urls: '[]',
        created_at_ms: nowMs,
        changed_at_ms: nowMs,
      };
      await db.insertInto('pet').values(row).execute();
      return { ...pet, id, photoUrls: [], status: null, category: null, tags: null };
    });
  }

  updatePet(merchantId: number, id: bigint, profile: PetProfile, nowMs: number): Promise<Pet | null> {
    return this.#transaction(async (db) => {
      await db
        .updateTable('pet')
        .set({
          name: profile.name,
          photo_urls: JSON.stringify(profile.photoUrls),
          status: profile.status,
          category: jsonText(profile.category),
          tags: jsonText(profile.tags),
          changed_at_ms: nowMs,
        })
        .where('merchant_id', '=', merchantId)
        .where('id', '=', id)
        .execute();
      const row = await db
        .selectFrom('pet')
        .select(idText)
        .select(['name', 'owner_id', 'species', 'breed', 'status', 'photo_urls', 'category', 'tags'])
        .where('merchant_id', '=', merchantId)
        .where('id', '=', id)
        .executeTakeFirst();
      return row === undefined ? null : toPet(row);
    });
  }

  #transaction<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    return this.#parts.lane.run(() => this.#parts.tables.transaction().execute(work));
  }
}

const idText = sql<string>`CAST(id AS TEXT)`.as('id_text');

/** @throws ManyFaults `user-exists` */
async function refuseTaken(db: Kysely<Tables>, merchantId: number, users: readonly Named[]): Promise<void> {
  const takenIds = new Set<bigint>();
  const takenNames = new Set<string>();
  for (const piece of pieces(users)) {
    const ids = piece.flatMap(({ id }) => (id === null ? [] : [id]));
    const names = piece.flatMap(({ username }) => (username === null ? [] : [username]));
    const found = await db
      .selectFrom('user_account')
      .select([idText, 'username'])
      .where('merchant_id', '=', merchantId)
      .where(({ eb, or }) => or([eb('id', 'in', ids), eb('username', 'in', names)]))
      .execute();
    for (const { id_text: id, username } of found) {
      takenIds.add(BigInt(id));
      if (username !== null) takenNames.add(username);
    }
  }
  const faults = users.flatMap(({ id, username }, index): Fault[] => [
    ...(id !== null && takenIds.has(id) ? [{ pointer: `/${index}/id`, detail: 'a user has this id already' }] : []),
    ...(username !== null && takenNames.has(username)
      ? [{ pointer: `/${index}/username`, detail: 'a user has this name already' }]
      : []),
  ]);
  if (faults.length === 0) return;
  const text = 'a user name or an id is taken already; no user was added';
  throw new ManyFaults('user-exists', text, faults.slice(0, FAULTS_TOLD));
}

/** An id for each user who brings none: the next ones after the last that was given, but for those that are taken. */
async function freeIds(
  db: Kysely<Tables>,
  merchantId: number,
  users: readonly Named[],
): Promise<(bigint | undefined)[]> {
  const wanted = users.filter(({ id }) => id === null).length;
  if (wanted === 0) return [];
  const brought = new Set(users.map(({ id }) => id));
  const before = await lastId(db, merchantId, 'user');
  const taken = new Set<bigint>();
  let last = before;
  let readTo = before;
  const ids = users.map(() => undefined as bigint | undefined);
  for (const [index, { id }] of users.entries()) {
    if (id !== null) continue;
    do {
      last += 1n;
      if (last > readTo) {
        readTo += BigInt(ROWS_AT_ONCE);
        for (const each of await idsBetween(db, merchantId, last, readTo)) taken.add(each);
      }
    } while (taken.has(last) || brought.has(last));
    if (last > INT64_MAX) throw new Error('there is no id left');
    ids[index] = last;
  }
  await noteLastId(db, merchantId, 'user', last);
  return ids;
}

async function idsBetween(db: Kysely<Tables>, merchantId: number, from: bigint, to: bigint): Promise<bigint[]> {
  const rows = await db
    .selectFrom('user_account')
    .select(idText)
    .where('merchant_id', '=', merchantId)
    .where('id', '>=', from)
    .where('id', '<=', to)
    .execute();
  return rows.map((row) => BigInt(row.id_text));
}

async function lastId(db: Kysely<Tables>, merchantId: number, what: 'user' | 'pet'): Promise<bigint> {
  const row = await db
    .selectFrom('merchant_sequence')
    .select('last_id')
    .where('merchant_id', '=', merchantId)
    .where('what', '=', what)
    .executeTakeFirst();
  return BigInt(row?.last_id ?? 0);
}

async function noteLastId(db: Kysely<Tables>, merchantId: number, what: 'user' | 'pet', id: bigint): Promise<void> {
  const last = { last_id: Number(id) };
  await db
    .insertInto('merchant_sequence')
    .values({ merchant_id: merchantId, what, ...last })
    .onConflict((conflict) => conflict.columns(['merchant_id', 'what']).doUpdateSet(last))
    .execute();
}

function* pieces<T>(rows: readonly T[]): Generator<T[]> {
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) yield rows.slice(from, from + ROWS_AT_ONCE);
}

function jsonText(value: unknown): string | null {
  return value === null ? null : (stringify(value) ?? null);
}

/** JSON that this file wrote: every number in it is an id. */
function readIds(text: string): unknown {
  return parse(text, null, (digits) => BigInt(digits));
}

function toPet(
  row: Omit<Selectable<PetTable>, 'id' | 'merchant_id' | 'created_at_ms' | 'changed_at_ms'> & { id_text: string },
): Pet {
  return {
    id: BigInt(row.id_text),
    name: row.name,
    ownerId: row.owner_id,
    species: row.species,
    breed: row.breed,
    status: row.status,
    photoUrls: JSON.parse(row.photo_urls) as string[],
    category: row.category === null ? null : (readIds(row.category) as NamedId),
    tags: row.tags === null ? null : (readIds(row.tags) as NamedId[]),
  };
}
