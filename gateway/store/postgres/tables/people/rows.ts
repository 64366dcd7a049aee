/**
 * Rows of users and pets (records that the specification of the merchants' interface has beside locks), and the last
 * ids that were assigned to them. An int64 is read as text, since a JavaScript number has only 53 bits.
 */
import { parse, stringify } from 'lossless-json';
import { type Fault, MAX_REPORTED_FAULTS } from '../../../../faults.js';
import {
  INT64_MAX,
  type NamedId,
  type NewPet,
  type NewUser,
  type Pet,
  type PetProfile,
  type UserChange,
} from '../../../contract/merchants/people-store.js';
import { usernameKey } from '../../../contract/merchants/username-key.js';
import type { Sql } from '../../sql.js';

/** How many ids are checked with one query. */
const IDS_PER_QUERY = 500n;

const PET_TEXTS = ['name', 'owner_id', 'species', 'breed', 'status', 'photo_urls', 'category', 'tags'] as const;
const PET_BYTES = PET_TEXTS.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ');

/** A pet and the size of its text columns. */
export interface StoredPet {
  readonly pet: Pet;
  readonly bytes: number;
}

type PetRow = Readonly<Record<Exclude<(typeof PET_TEXTS)[number], 'name' | 'photo_urls'>, string | null>> & {
  readonly id: string;
  readonly name: string;
  readonly photo_urls: string;
  readonly bytes: number;
};

export async function addPet(sql: Sql, merchantId: number, id: bigint, pet: NewPet, nowMs: number): Promise<void> {
  const { name, ownerId, species, breed } = pet;
  await sql.run(
    `INSERT INTO pet (merchant_id, id, name, owner_id, species, breed, photo_urls, created_at_ms, changed_at_ms)
     VALUES (@merchantId, @id, @name, @ownerId, @species, @breed, '[]', @nowMs, @nowMs)`,
    { merchantId, id, name, ownerId, species, breed, nowMs },
  );
}

export async function updatePet(sql: Sql, merchantId: number, id: bigint, profile: PetProfile, nowMs: number) {
  const { name, photoUrls, status, category, tags } = profile;
  const texts = { name, photoUrls: JSON.stringify(photoUrls), status };
  await sql.run(
    `UPDATE pet SET name = @name, photo_urls = @photoUrls, status = @status, category = @category, tags = @tags,
       changed_at_ms = @nowMs WHERE merchant_id = @merchantId AND id = @id`,
    { ...texts, category: jsonText(category), tags: jsonText(tags), nowMs, merchantId, id },
  );
}

export async function readPet(sql: Sql, merchantId: number, id: bigint): Promise<StoredPet | undefined> {
  const row = await sql.get<PetRow>(
    `SELECT id::text AS id, ${PET_TEXTS.join(', ')}, ${PET_BYTES} AS bytes FROM pet
     WHERE merchant_id = @merchantId AND id = @id`,
    { merchantId, id },
  );
  return row === undefined ? undefined : { pet: toPet(row), bytes: row.bytes };
}

/** JSON with every digit of an id; null for a missing value. */
function jsonText(value: unknown): string | null {
  return value === null ? null : (stringify(value) ?? null);
}

/** Parses JSON that this file wrote; every number in it is an id, and becomes a bigint. */
function parseWithIds(text: string): unknown {
  return parse(text, null, (digits) => BigInt(digits));
}

function toPet(row: PetRow): Pet {
  return {
    id: BigInt(row.id),
    name: row.name,
    ownerId: row.owner_id,
    species: row.species,
    breed: row.breed,
    status: row.status,
    photoUrls: JSON.parse(row.photo_urls) as string[],
    category: row.category === null ? null : (parseWithIds(row.category) as NamedId),
    tags: row.tags === null ? null : (parseWithIds(row.tags) as NamedId[]),
  };
}

/** Returns the last id that the store assigned; 0 if it assigned none. */
export async function readLastId(sql: Sql, merchantId: number, what: 'user' | 'pet'): Promise<bigint> {
  const row = await sql.get<{ id: string }>(
    'SELECT last_id::text AS id FROM merchant_sequence WHERE merchant_id = @merchantId AND what = @what',
    { merchantId, what },
  );
  return BigInt(row?.id ?? 0);
}

export async function recordLastId(sql: Sql, merchantId: number, what: 'user' | 'pet', id: bigint): Promise<void> {
  await sql.run(
    `INSERT INTO merchant_sequence (merchant_id, what, last_id) VALUES (@merchantId, @what, @id)
     ON CONFLICT (merchant_id, what) DO UPDATE SET last_id = excluded.last_id`,
    { merchantId, what, id },
  );
}

/** Returns a fault for each taken id and name; its pointer is into the list of users. At most MAX_REPORTED_FAULTS. */
export async function findTaken(
  sql: Sql,
  merchantId: number,
  users: readonly Pick<NewUser, 'id' | 'username'>[],
): Promise<Fault[]> {
  const keys = users.map(({ username }) => (username === null ? null : usernameKey(username)));
  const rows = await sql.all<{ n: number; has_id: boolean; has_name: boolean }>(
    `SELECT t.n, EXISTS (SELECT 1 FROM user_account a WHERE a.merchant_id = @merchantId AND a.id = t.id) AS has_id,
       EXISTS (SELECT 1 FROM user_account a WHERE a.merchant_id = @merchantId AND a.username_key = t.key) AS has_name
     FROM unnest(@ids::bigint[], @keys::text[]) WITH ORDINALITY AS t (id, key, n) ORDER BY t.n`,
    { merchantId, ids: users.map(({ id }) => id), keys },
  );
  const faults: Fault[] = [];
  for (const { n, has_id: hasId, has_name: hasName } of rows) {
    if (hasId) faults.push({ pointer: `/${n - 1}/id`, detail: 'a user has this id already' });
    if (hasName) faults.push({ pointer: `/${n - 1}/username`, detail: 'a user has this name already' });
  }
  return faults.slice(0, MAX_REPORTED_FAULTS);
}

/** Adds users; the caller has checked that no id and no name is taken. */
export async function addUsers(sql: Sql, merchantId: number, users: readonly NewUser[], nowMs: number): Promise<void> {
  const ids = await assignIds(sql, merchantId, users);
  for (const [index, user] of users.entries()) {
    const { username, firstName, lastName, email, phone, passwordHash, userStatus } = user;
    await sql.run(
      `INSERT INTO user_account (merchant_id, id, username, username_key, first_name, last_name, email, phone,
         password_hash, user_status, created_at_ms, dashboard_role)
       VALUES (@merchantId, @id, @username, @key, @firstName, @lastName, @email, @phone, @passwordHash, @userStatus,
         @nowMs, @dashboardRole)`,
      {
        ...{ merchantId, id: user.id ?? ids[index], username, key: username === null ? null : usernameKey(username) },
        ...{ firstName, lastName, email, phone, passwordHash, userStatus, nowMs },
        dashboardRole: user.dashboardRole ?? null,
      },
    );
  }
}

/** Assigns the next free ids to the users without an id; returns undefined for users with an id. */
async function assignIds(sql: Sql, merchantId: number, users: readonly NewUser[]): Promise<(bigint | undefined)[]> {
  if (users.every(({ id }) => id !== null)) return [];
  const requestedIds = new Set(users.map(({ id }) => id));
  // The ids of stored users from the last assigned id up to `checkedTo`.
  const storedIds = new Set<bigint>();
  let last = await readLastId(sql, merchantId, 'user');
  let checkedTo = last;
  const ids: (bigint | undefined)[] = [];
  for (const { id } of users) {
    if (id !== null) {
      ids.push(undefined);
      continue;
    }
    do {
      last += 1n;
      if (last > INT64_MAX) throw new Error('there is no id left');
      if (last > checkedTo) {
        checkedTo = last + IDS_PER_QUERY > INT64_MAX ? INT64_MAX : last + IDS_PER_QUERY;
        for (const stored of await readIds(sql, merchantId, last, checkedTo)) storedIds.add(stored);
      }
    } while (storedIds.has(last) || requestedIds.has(last));
    ids.push(last);
  }
  await recordLastId(sql, merchantId, 'user', last);
  return ids;
}

async function readIds(sql: Sql, merchantId: number, from: bigint, to: bigint): Promise<bigint[]> {
  const rows = await sql.all<{ id: string }>(
    'SELECT id::text AS id FROM user_account WHERE merchant_id = @merchantId AND id BETWEEN @from AND @to',
    { merchantId, from, to },
  );
  return rows.map(({ id }) => BigInt(id));
}

/** Whether the user is its merchant's only owner. */
export async function isLastOwner(sql: Sql, merchantId: number, id: bigint): Promise<boolean> {
  const row = await sql.get<{ is_last: boolean }>(
    `SELECT EXISTS (SELECT 1 FROM user_account WHERE merchant_id = @merchantId AND id = @id
         AND dashboard_role = 'owner')
       AND NOT EXISTS (SELECT 1 FROM user_account WHERE merchant_id = @merchantId AND id <> @id
         AND dashboard_role = 'owner') AS is_last`,
    { merchantId, id },
  );
  return row?.is_last === true;
}

/**
 * Changes a user. A new password ends the user's sessions, except for the one to be kept. Without a role the user's
 * sessions of the dashboard end; they do not come back with the role.
 */
export async function changeUser(sql: Sql, merchantId: number, id: bigint, change: UserChange): Promise<void> {
  const { email, passwordHash, dashboardRole, keptSessionId } = change;
  await sql.run(
    `UPDATE user_account SET email = CASE WHEN @setsEmail THEN @email ELSE email END,
       password_hash = CASE WHEN @setsPassword THEN @passwordHash ELSE password_hash END,
       dashboard_role = CASE WHEN @setsRole THEN @role ELSE dashboard_role END
     WHERE merchant_id = @merchantId AND id = @id`,
    {
      ...{ merchantId, id, email, passwordHash, role: dashboardRole },
      ...{ setsEmail: email !== undefined, setsPassword: passwordHash !== undefined },
      setsRole: dashboardRole !== undefined,
    },
  );
  if (passwordHash !== undefined) await endSessions(sql, merchantId, id, keptSessionId ?? null);
  if (dashboardRole === null) await endConsoleSessions(sql, merchantId, id, null);
}

/** Ends a user's sessions; of the dashboard, all but the kept one, if there is one. */
async function endSessions(sql: Sql, merchantId: number, id: bigint, keptSessionId: number | null): Promise<void> {
  await sql.run('DELETE FROM user_session WHERE merchant_id = @merchantId AND user_id = @id', { merchantId, id });
  await endConsoleSessions(sql, merchantId, id, keptSessionId);
}

/** Ends a user's sessions of the dashboard, but for the kept one, if there is one. */
async function endConsoleSessions(sql: Sql, merchantId: number, id: bigint, keptId: number | null): Promise<void> {
  await sql.run(
    `DELETE FROM console_session WHERE kind = 'user' AND merchant_id = @merchantId AND user_id = @id
       AND id IS DISTINCT FROM @keptId::bigint`,
    { merchantId, id, keptId },
  );
}

/** Removes a user and its sessions. */
export async function removeUser(sql: Sql, merchantId: number, id: bigint): Promise<void> {
  await endSessions(sql, merchantId, id, null);
  await sql.run('DELETE FROM user_account WHERE merchant_id = @merchantId AND id = @id', { merchantId, id });
}
