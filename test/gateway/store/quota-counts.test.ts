/**
 * Counts of what merchants store: updated in the writing transaction, correct after restarts, deletions and a
 * migration; writes beyond the quota are refused (interfaces.md §2, Fairness).
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import type { NewUser } from '../../../gateway/store/contract/merchants/people-store.js';
import { DEFAULT_QUOTA, type Quota } from '../../../gateway/store/contract/merchants/quota.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { checkDatabase } from '../../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { migrationProvider } from '../../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../../gateway/store/sqlite/open-sqlite-store.js';
import { Kysely, Migrator, SqliteDialect } from '../../../gateway/store/tables/kysely.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MERCHANT = 'Amber';
/** The id of the only merchant. */
const MERCHANT_ID = 1;
/** A pet: the specification's interface lets merchants store pets, which have nothing to do with locks. */
const PET = { name: 'Rex', ownerId: null, species: null, breed: null };
/** The members of a pet that an update sets. */
const PROFILE = { name: 'Rex', photoUrls: [], status: null, category: null, tags: null };
const EMPTY_USER: NewUser = {
  id: null,
  username: null,
  firstName: null,
  lastName: null,
  email: null,
  phone: null,
  userStatus: null,
  passwordHash: null,
};

const fileOf = (folder: string): string => path.join(folder, 'lockgate.sqlite');

/** How much a merchant has stored, as the store counts it for the merchant's quota (table `merchant_kept`). */
interface Counts {
  readonly pets: number;
  readonly users: number;
  readonly tokens: number;
  readonly sessions: number;
  readonly bytes: number;
}

/** The stored counts of the first merchant; undefined if there are none yet. */
function countsIn(folder: string): Counts | undefined {
  const db = new SqliteDatabase(fileOf(folder), { readonly: true });
  try {
    const counts = 'SELECT pets, users, tokens, sessions, bytes FROM merchant_kept WHERE merchant_id = 1';
    return db.prepare(counts).get() as Counts | undefined;
  } finally {
    db.close();
  }
}

/** Runs `db check` and returns its check named `kept`. */
async function checkKeptCounts(folder: string) {
  const { checks, damage } = await checkDatabase(fileOf(folder));
  const found = checks.find(({ name }) => name === 'kept');
  return { damaged: found?.damaged, damage: damage.filter(({ check }) => check === 'kept') };
}

async function setUpStore(test: Test, quota: Partial<Quota> = {}): Promise<{ folder: string; store: Store }> {
  const folder = tempFolder(test);
  const store = await openStore(folder, { quota: { ...DEFAULT_QUOTA, ...quota } });
  await store.addMerchant(MERCHANT, 0);
  return { folder, store };
}

t.test('the counts are correct after every kind of write, after deletions and a restart', async (t) => {
  const { folder, store } = await setUpStore(t);
  const { people, access } = store;
  await people.addUsers(MERCHANT_ID, [{ ...EMPTY_USER, username: 'ada' }, EMPTY_USER], 0);
  await people.addPet(MERCHANT_ID, PET, 0);
  await people.updatePet(MERCHANT_ID, 1n, { ...PROFILE, name: 'a longer name', tags: [{ id: 1n }] }, 1);
  await people.updatePet(MERCHANT_ID, 1n, PROFILE, 2);
  const key = await access.addKey({
    merchant: MERCHANT,
    publicId: 'k',
    name: '',
    secretHash: Buffer.alloc(32),
    scopes: ['spec'],
    expiresAtMs: null,
    nowMs: 0,
  });
  /** Issues a token 9 ms before it expires. @param fill the byte that its hash consists of */
  const token = (fill: number, expiresAtMs: number) =>
    access.addToken({
      keyId: key.id,
      tokenHash: Buffer.alloc(32, fill),
      scopes: [],
      nowMs: expiresAtMs - 9,
      expiresAtMs,
    });
  await token(1, 10);
  await token(2, 100);
  const session = (fill: number) => ({
    merchantId: MERCHANT_ID,
    userId: 1n,
    tokenHash: Buffer.alloc(32, fill),
    nowMs: 0,
  });
  for (const fill of [3, 4]) await people.addSession({ ...session(fill), expiresAtMs: 100 });
  await people.endSession(MERCHANT_ID, Buffer.alloc(32, 3));
  const before = countsIn(folder);
  t.match(
    before,
    { pets: 1, users: 2, tokens: 1, sessions: 1 },
    'the first token had expired when the second was issued',
  );
  await access.revokeKey('k', 50);
  t.match(countsIn(folder), { pets: 1, users: 2, tokens: 0, sessions: 1 });
  await store.close();
  t.match(await checkKeptCounts(folder), { damaged: 0 });
  const reopened = await openSqliteStore(folder);
  await reopened.people.addPet(MERCHANT_ID, PET, 0);
  t.match(countsIn(folder), { pets: 2, users: 2 });
  await reopened.close();
  t.match(await checkKeptCounts(folder), { damaged: 0 });
});

t.test('db check finds a wrong count', async (t) => {
  const { folder, store } = await setUpStore(t);
  await store.people.addPet(MERCHANT_ID, PET, 0);
  await store.close();
  const db = openDurable(fileOf(folder));
  db.exec('UPDATE merchant_kept SET pets = 7, bytes = bytes + 1');
  db.close();
  t.match(await checkKeptCounts(folder), {
    damaged: 2,
    damage: [
      { table: 'merchant_kept', row: '1', what: 'its count of pets is 7; expected 1' },
      { what: /^its count of bytes is/ },
    ],
  });
});

t.test('a write beyond a quota is refused with the quota’s name, and nothing of it is stored', async (t) => {
  const quota = { pets: 2, users: 3, petBytes: 50, bytes: 2000 };
  const { folder, store } = await setUpStore(t, quota);
  const { people } = store;
  await people.addPet(MERCHANT_ID, PET, 0);
  await people.addPet(MERCHANT_ID, PET, 0);
  await t.rejects(people.addPet(MERCHANT_ID, PET, 0), {
    code: 'quota-full',
    budget: 'pets',
    message: /more than 2 pets/,
  });
  await t.rejects(people.updatePet(MERCHANT_ID, 1n, { ...PROFILE, name: 'x'.repeat(49) }, 0), {
    code: 'pet-too-large',
  });
  await people.addUsers(MERCHANT_ID, [EMPTY_USER, EMPTY_USER], 0);
  await t.rejects(people.addUsers(MERCHANT_ID, [EMPTY_USER, EMPTY_USER], 0), { code: 'quota-full', budget: 'users' });
  await t.rejects(people.checkUserQuota(MERCHANT_ID, 2), { code: 'quota-full', budget: 'users' });
  await people.checkUserQuota(MERCHANT_ID, 1);
  const counts = countsIn(folder);
  t.match(counts, { pets: 2, users: 2 });
  await t.rejects(people.addUsers(MERCHANT_ID, [{ ...EMPTY_USER, email: 'e'.repeat(2000) }], 0), {
    code: 'quota-full',
    budget: 'kept-bytes',
  });
  t.same(countsIn(folder), counts);
  await people.addUsers(MERCHANT_ID, [EMPTY_USER], 0);
  t.equal(
    (await people.listUsers({ merchantId: MERCHANT_ID, afterId: null, limit: 9 })).length,
    3,
    'a user without long texts still fits',
  );
  await store.close();
  const lower = await openSqliteStore(folder, { quota: { ...quota, pets: 1, petBytes: 1, bytes: 1 } });
  const shrunk = await lower.people.updatePet(MERCHANT_ID, 1n, { ...PROFILE, name: 'R' }, 0);
  t.match(shrunk, { name: 'R' }, 'an existing pet may be read and shrink');
  await lower.close();
});

/** Makes a store of the last version without these counts, with these users of one merchant, and two pets. */
async function storeOfPreviousVersion(test: Test, usernames: readonly string[]): Promise<string> {
  const folder = tempFolder(test);
  const db = openDurable(fileOf(folder));
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  // The last migration before the counts.
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo('0015-reflash-marks');
  test.notOk(error);
  db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, '${MERCHANT}', 1)`);
  const user = db.prepare(
    'INSERT INTO user_account (merchant_id, id, username, password_hash, created_at_ms) VALUES (1, ?, ?, ?, 1)',
  );
  for (const [index, username] of usernames.entries()) user.run(index + 1, username, `hash of ${username}`);
  const pet = db.prepare(
    `INSERT INTO pet (merchant_id, id, name, photo_urls, created_at_ms, changed_at_ms) VALUES (1, ?, ?, '[]', 1, 1)`,
  );
  pet.run(1, 'Rex');
  pet.run(2, 'x'.repeat(100_000));
  db.close();
  return folder;
}

t.test('an older store is counted, and users whose names count as equal log in with the exact spelling', async (t) => {
  // The last name has a full-width C.
  const folder = await storeOfPreviousVersion(t, ['Ada', 'ada', ' Bo ', '\uff23y']);
  const store = await openSqliteStore(folder);
  const { people } = store;
  const counts = countsIn(folder);
  t.match(counts, { pets: 2, users: 4, tokens: 0, sessions: 0 });
  t.ok((counts?.bytes ?? 0) > 100_000);
  for (const username of ['Ada', 'ada', ' Bo '])
    t.match(await people.findLogin(MERCHANT_ID, username), { passwordHash: `hash of ${username}` }, username);
  t.match(await people.findLogin(MERCHANT_ID, 'BO'), { id: 3n });
  t.match(await people.findLogin(MERCHANT_ID, 'cy'), { id: 4n });
  t.equal(await people.findLogin(MERCHANT_ID, 'ADA'), null, 'the name is ambiguous');
  await t.rejects(people.addUsers(MERCHANT_ID, [{ ...EMPTY_USER, username: 'ADA' }], 2), { code: 'user-exists' });
  const renamed = await people.updatePet(MERCHANT_ID, 2n, { ...PROFILE, name: 'x'.repeat(99_999) }, 2);
  t.equal(renamed?.name.length, 99_999, 'a pet that was already too large may stay so');
  await store.close();
  const { damage } = await checkDatabase(fileOf(folder));
  t.same(damage, [], 'the store is undamaged');
});
