/**
 * What each operation of the merchants' interface answers to whom, in one place: the table of docs/http.md, row by row;
 * every operation by every caller about what is theirs, another merchant's and nobody's; and int64 from the body's
 * digits to the stored row (specification, Endpoints, Authentication and Errors; interfaces.md §2).
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { MERCHANT_ROUTES } from '../../../gateway/http/merchant/routes.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { MERCHANT, openGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { root } from '../../helpers/house/our-files.js';
import { accessToken, apiKey, call, type MerchantAnswer, type MerchantCall } from '../../helpers/http/merchant-call.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
/** As long as ours, and none. */
const NO_KEY = `lgk_000000000000_${'x'.repeat(43)}`;
const NO_TOKEN = `lgt_${'x'.repeat(43)}`;

/** What a caller has. */
interface Caller {
  readonly key: string | undefined;
  readonly token: string | undefined;
}

const CALLERS = ['no key', 'wrong key', 'revoked key', 'another merchant’s key', 'own key'] as const;
type CallerName = (typeof CALLERS)[number];

interface Place {
  readonly gateway: Gateway;
  readonly folder: string;
  readonly callers: Readonly<Record<CallerName, Caller>>;
  /** Of each merchant, a session of the user with their name in small letters. */
  readonly sessions: Readonly<Record<string, string>>;
}

const BASIL = 'Basil';
const OWNERS = [MERCHANT, BASIL] as const;

/** Two merchants, each with a lock, a pet, a user and a session. */
async function setting(test: Test): Promise<Place> {
  const folder = tempFolder(test);
  const gateway = await openGateway(test, folder);
  const sessions: Record<string, string> = {};
  const callers: Caller[] = [];
  for (const [index, name] of OWNERS.entries()) {
    await gateway.accounts.addMerchant(name);
    await gateway.accounts.addDevice({ mac: testMac(index + 1), merchant: name });
    const key = await apiKey(gateway, name);
    callers.push({ key, token: await accessToken(gateway, key) });
    const user = { id: index + 11, username: name.toLowerCase(), password: 'x' };
    await call(gateway, '/v2/user/createWithList', { key, body: [user] });
    const { body } = await call(gateway, `/v2/user/login?username=${user.username}&password=x`, { key });
    sessions[name] = String(body).split(':')[1] ?? '';
    await call(gateway, '/v1/pet', { key, body: { name: 'Rex' } });
  }
  // Pets are counted by merchant; so that no id is both's, Basil's is moved.
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  db.prepare('UPDATE pet SET id = 7 WHERE merchant_id = 2').run();
  db.close();
  const old = await gateway.merchants.apiKeys.create(MERCHANT, 'old');
  const revoked = { key: old.text, token: await accessToken(gateway, old.text) };
  await gateway.merchants.apiKeys.revoke(old.key.publicId);
  const [own = revoked, theirs = revoked] = callers;
  return {
    gateway,
    folder,
    sessions,
    callers: {
      'no key': { key: undefined, token: undefined },
      'wrong key': { key: NO_KEY, token: NO_TOKEN },
      'revoked key': revoked,
      'another merchant’s key': theirs,
      'own key': own,
    },
  };
}

/** What a call is about: something that is the caller's in form, whoever's it is. */
interface Subject {
  readonly pet: number;
  readonly userId: number;
  readonly username: string;
  readonly session: string;
  readonly mac: string;
}

/** A call that would go well, by row, for whoever owns the subject. */
const CALLS: Readonly<Record<string, (caller: Caller, about: Subject) => [where: string, terms: MerchantCall]>> = {
  'POST /v1/pet': ({ key }, { userId }) => ['/v1/pet', { key, body: { name: 'Rex', owner_id: String(userId) } }],
  'PUT /v2/pet': ({ token }, { pet }) => [
    '/v2/pet',
    { method: 'PUT', token, body: { id: pet, name: 'Max', photoUrls: [] } },
  ],
  'GET /v2/user/login': ({ key }, { username }) => [`/v2/user/login?username=${username}&password=x`, { key }],
  'GET /v2/user/logout': ({ key }, { session }) => ['/v2/user/logout', { key, headers: { 'x-session': session } }],
  'POST /v2/user/createWithList': ({ key }, { userId }) => ['/v2/user/createWithList', { key, body: [{ id: userId }] }],
  'POST /v2/user/createWithArray': ({ key }, { username }) => [
    '/v2/user/createWithArray',
    { key, body: [{ username }] },
  ],
  'POST /test_webhook': ({ token }, { mac }) => ['/test_webhook', { body: { access_token: token, mac_addr: mac } }],
  'POST /oauth/token': ({ key }) => ['/oauth/token', { key, body: 'grant_type=client_credentials', headers: FORM }],
};

const AMBERS = { pet: 1, userId: 11, username: 'amber', mac: formatMac(testMac(1)) };
const BASILS = { pet: 7, userId: 12, username: 'basil', mac: formatMac(testMac(2)) };
const NOBODYS = { pet: 9, userId: 19, username: 'nobod', mac: formatMac(testMac(9)) };

function make({ gateway }: Place, row: string, caller: Caller, about: Subject): Promise<MerchantAnswer> {
  const [where, terms] = CALLS[row]?.(caller, about) ?? ['', {}];
  return call(gateway, where, terms);
}

/** The table of docs/http.md: rows by operation, each a status by the heading of its column. */
function documentedTable(): Map<string, Map<string, string>> {
  const [, section = ''] = readFileSync(path.join(root, 'docs/http.md'), 'utf8').split('## Who gets what\n');
  const lines =
    section
      .split('\n## ')[0]
      ?.split('\n')
      .filter((line) => line.startsWith('|')) ?? [];
  const cells = lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const [[, ...columns] = [], , ...rows] = cells;
  return new Map(
    rows.map(([row = '', ...statuses]) => [row, new Map(columns.map((column, at) => [column, statuses[at] ?? '']))]),
  );
}

/** What a body is besides the right one, by the column's heading. */
const BODIES: Readonly<Record<string, (terms: MerchantCall, row: string) => MerchantCall>> = {
  'wrong content type': (terms) => ({ ...terms, headers: { 'content-type': 'application/xml' } }),
  'empty body': (terms) => ({ ...terms, body: '' }),
  'array for object': (terms, row) => ({ ...terms, body: row.includes('createWith') ? [[]] : '[]' }),
};

t.test('the table of docs/http.md: what each operation answers to whom', async (t) => {
  const table = documentedTable();
  const rows = MERCHANT_ROUTES.map(({ method, path: where }) => `${method} ${where}`);
  t.strictSame([...table.keys()].sort(), rows.sort(), 'it has every row');
  const place = await setting(t);
  for (const [row, statuses] of table)
    await t.test(row, async (t) => {
      const columns = [...CALLERS.slice(0, -1), ...Object.keys(BODIES)];
      t.strictSame([...statuses.keys()], columns);
      const about = { ...AMBERS, session: place.sessions.Amber ?? '' };
      for (const [column, status] of statuses) {
        const caller = place.callers[column as CallerName] ?? place.callers['own key'];
        const [where, terms] = CALLS[row]?.(caller, about) ?? ['', {}];
        const changed = BODIES[column]?.(terms, row) ?? terms;
        if (status === '–') t.equal(terms.body, undefined, `${column}: it has no body`);
        else t.equal(String((await call(place.gateway, where, changed)).status), status, column);
      }
      const own = await make(place, row, place.callers['own key'], { ...about, userId: 31, username: 'new' });
      const allowed = row === 'GET /v2/user/login' ? 400 : row === 'POST /test_webhook' ? 409 : undefined;
      if (allowed === undefined) t.ok(own.status < 300, 'and the owner gets what was asked for');
      else t.equal(own.status, allowed, 'and the owner gets in');
    });
});

/** An answer without what is its own in every case, and without what the caller said themselves. */
function comparable({ status, headers, text }: MerchantAnswer, about: Subject): unknown {
  const { 'x-request-id': _id, date: _date, ...others } = headers;
  // The ids and tokens that it gives are new ones in each answer.
  const given = text.replace(/"id":\d+/, '"id":…').replace(/lgt_[\w-]{43}/, 'lgt_…');
  return { status, others, text: given.replaceAll(about.mac, '…').replace(`"owner_id":"${about.userId}"`, '') };
}

/** What of Basil's there is, as the file has it. */
function stored(folder: string): unknown {
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  try {
    const tables = ['pet', 'user_account', 'user_session'];
    return tables.map((table) => db.prepare(`SELECT * FROM ${table} WHERE merchant_id = 2 ORDER BY id`).raw().all());
  } finally {
    db.close();
  }
}

t.test('every operation, by every caller, about what is theirs, another’s, and nobody’s', async (t) => {
  /** What the owner and everybody else who gets in are told: about what is their own, and about the rest. */
  const expected: Readonly<Record<string, readonly [own: number, rest: number]>> = {
    'POST /v1/pet': [201, 201],
    'PUT /v2/pet': [200, 404],
    'GET /v2/user/login': [200, 400],
    'GET /v2/user/logout': [200, 200],
    'POST /v2/user/createWithList': [409, 200],
    'POST /v2/user/createWithArray': [409, 200],
    'POST /test_webhook': [409, 404],
    'POST /oauth/token': [200, 200],
  };
  const place = await setting(t);
  for (const row of Object.keys(CALLS))
    await t.test(row, async (t) => {
      const before = stored(place.folder);
      const [own = 0, rest = 0] = expected[row] ?? [];
      const abouts = {
        others: { ...BASILS, session: place.sessions.Basil ?? '' },
        nobodys: { ...NOBODYS, session: `lgu_${'x'.repeat(43)}` },
        own: { ...AMBERS, session: place.sessions.Amber ?? '' },
      };
      for (const name of CALLERS.filter((each) => each !== 'another merchant’s key')) {
        const caller = place.callers[name];
        const theirs = await make(place, row, caller, abouts.others);
        const nobodys = await make(place, row, caller, abouts.nobodys);
        const mine = await make(place, row, caller, abouts.own);
        const refused = row === 'POST /test_webhook' && name === 'no key' ? 400 : 401;
        const statuses = name === 'own key' ? [rest, rest, own] : [refused, refused, refused];
        t.strictSame([theirs.status, nobodys.status, mine.status], statuses, name);
        const [first, second] = [comparable(theirs, abouts.others), comparable(nobodys, abouts.nobodys)];
        t.strictSame(first, second, `${name}: another’s and nobody’s can’t be told apart`);
        if (name !== 'own key') t.strictSame(comparable(mine, abouts.own), second, `${name}: nor one’s own`);
      }
      t.strictSame(stored(place.folder), before, 'what is another’s stays as it is');
    });
});

/** Digits as a body has them, and the number that they are; undefined where they are refused. */
const INT64: readonly (readonly [typed: string, value: bigint | undefined])[] = [
  ['0', 0n],
  ['1', 1n],
  ['-1', -1n],
  ['9007199254740991', 2n ** 53n - 1n],
  ['9007199254740993', 2n ** 53n + 1n],
  ['-9007199254740993', -(2n ** 53n) - 1n],
  ['-9007199254740991', -(2n ** 53n) + 1n],
  ['9223372036854775807', 2n ** 63n - 1n],
  ['-9223372036854775808', -(2n ** 63n)],
  ['1e3', 1000n],
  ['2.0', 2n],
  ['9223372036854775808', undefined],
  ['-9223372036854775809', undefined],
  ['1.5', undefined],
  ['"1"', undefined],
];

t.test('int64: a user’s id and a pet’s are exact to the stored row, or refused', async (t) => {
  const { gateway, folder, callers } = await setting(t);
  const { key, token } = callers['own key'];
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  t.teardown(() => db.close());
  const ids = db.prepare('SELECT id FROM user_account WHERE merchant_id = 1 AND username = ?').safeIntegers().pluck();
  const move = db.prepare('UPDATE pet SET id = ? WHERE merchant_id = 1');
  for (const [typed, value] of INT64) {
    const list = `[{"id":${typed},"username":${JSON.stringify(`u${typed}`)}}]`;
    const { status } = await call(gateway, '/v2/user/createWithList', { key, body: list });
    t.strictSame([status, ids.get(`u${typed}`)], [value === undefined ? 400 : 200, value], `a user’s: ${typed}`);
    const body = `{"id":${typed},"name":"Max","photoUrls":[],"tags":[{"id":${typed === '"1"' ? 1 : typed}}]}`;
    const update = () => call(gateway, '/v2/pet', { method: 'PUT', token, body });
    if (value === undefined || value < 1n) t.match(await update(), { status: 400 }, `a pet’s: ${typed}`);
    else {
      // A neighbour, which a rounded id would hit; then itself.
      move.run(value === 1n ? 2n : value - 1n);
      t.match(await update(), { status: 404 }, `a pet’s: ${typed}, which is none`);
      move.run(value);
      const told = await update();
      t.match([told.status, told.text], [200, new RegExp(`^{"id":${value},.*"tags":\\[{"id":${value}}]`)], typed);
    }
  }
});
