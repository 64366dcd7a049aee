/**
 * The rights of callers of the merchants' interface: the table of docs/http.md, row by row; every operation by every
 * caller on their own objects, another merchant's objects and unknown objects; and int64 from the body to the stored
 * row (specification, Endpoints, Authentication and Errors; interfaces.md §2).
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { INVITATION_ROUTES } from '../../../gateway/http/merchant/invitation-routes.js';
import { OWN_DATA_ROUTES } from '../../../gateway/http/merchant/own-data/routes.js';
import { MERCHANT_ROUTES } from '../../../gateway/http/merchant/routes.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { MERCHANT, openGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { root } from '../../helpers/house/our-files.js';
import {
  accessToken,
  apiKey,
  callMerchantApi,
  type MerchantAnswer,
  type MerchantCall,
} from '../../helpers/http/merchant-call.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** The routes that own-data/access.test.ts and invitations.test.ts test. */
const OTHER_ROUTES = [...OWN_DATA_ROUTES, ...INVITATION_ROUTES];
/** The operations of the specification. */
const SPEC_ROUTES = MERCHANT_ROUTES.filter((route) => !OTHER_ROUTES.includes(route));
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
/** Of the right form, but unknown. */
const UNKNOWN_KEY = `lgk_000000000000_${'x'.repeat(43)}`;
const UNKNOWN_TOKEN = `lgt_${'x'.repeat(43)}`;

/** The credentials of a caller. */
interface Caller {
  readonly key: string | undefined;
  readonly token: string | undefined;
}

const CALLERS = ['no key', 'wrong key', 'revoked key', 'another merchant’s key', 'own key'] as const;
type CallerName = (typeof CALLERS)[number];

/** A gateway with two merchants, and the callers whose calls are compared. */
interface RightsSetup {
  readonly gateway: Gateway;
  readonly folder: string;
  readonly callers: Readonly<Record<CallerName, Caller>>;
  /** For each merchant, a session of the user named like the merchant in lower case. */
  readonly sessions: Readonly<Record<string, string>>;
}

const BASIL = 'Basil';
const OWNERS = [MERCHANT, BASIL] as const;

/** Starts a gateway with two merchants, each with a lock, a pet, a user and a session. */
async function setUpMerchants(test: Test): Promise<RightsSetup> {
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
    await callMerchantApi(gateway, '/v2/user/createWithList', { key, body: [user] });
    const { body } = await callMerchantApi(gateway, `/v2/user/login?username=${user.username}&password=x`, { key });
    sessions[name] = String(body).split(':')[1] ?? '';
    await callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'Rex' } });
  }
  // Each merchant's pet ids start at 1. Basil's id is changed, so that the ids differ.
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  db.prepare('UPDATE pet SET id = 7 WHERE merchant_id = 2').run();
  db.close();
  const old = await gateway.merchants.apiKeys.create(MERCHANT, 'old');
  const revoked = { key: old.text, token: await accessToken(gateway, old.text) };
  await gateway.merchants.apiKeys.revoke(old.key.publicId);
  const [callerOfAmber = revoked, callerOfBasil = revoked] = callers;
  return {
    gateway,
    folder,
    sessions,
    callers: {
      'no key': { key: undefined, token: undefined },
      'wrong key': { key: UNKNOWN_KEY, token: UNKNOWN_TOKEN },
      'revoked key': revoked,
      'another merchant’s key': callerOfBasil,
      'own key': callerOfAmber,
    },
  };
}

/** The objects that calls name: the caller's own, another merchant's, or unknown ones. */
interface Subject {
  readonly pet: number;
  readonly userId: number;
  readonly username: string;
  readonly session: string;
  readonly mac: string;
}

/** For each operation, a call that succeeds for the owner of the subject. */
const CALLS: Readonly<Record<string, (caller: Caller, subject: Subject) => [route: string, options: MerchantCall]>> = {
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

const SUBJECT_OF_AMBER = { pet: 1, userId: 11, username: 'amber', mac: formatMac(testMac(1)) };
const SUBJECT_OF_BASIL = { pet: 7, userId: 12, username: 'basil', mac: formatMac(testMac(2)) };
/** As long as the others, so that the lengths of answers are comparable. */
const UNKNOWN_SUBJECT = { pet: 9, userId: 19, username: 'nobod', mac: formatMac(testMac(9)) };

/** Makes the call of an operation about this subject. */
function callOperation(
  { gateway }: RightsSetup,
  operation: string,
  caller: Caller,
  subject: Subject,
): Promise<MerchantAnswer> {
  const [route, options] = CALLS[operation]?.(caller, subject) ?? ['', {}];
  return callMerchantApi(gateway, route, options);
}

/** The table of docs/http.md: for each operation, the status in each column. */
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
  const [[, ...columns] = [], , ...operations] = cells;
  return new Map(
    operations.map(([operation = '', ...statuses]) => [
      operation,
      new Map(columns.map((column, index) => [column, statuses[index] ?? ''])),
    ]),
  );
}

/** Changes a call's body to the faulty one of a column, by the column's heading. */
const BODIES: Readonly<Record<string, (options: MerchantCall, operation: string) => MerchantCall>> = {
  'wrong content type': (options) => ({ ...options, headers: { 'content-type': 'application/xml' } }),
  'empty body': (options) => ({ ...options, body: '' }),
  'array for object': (options, operation) => ({ ...options, body: operation.includes('createWith') ? [[]] : '[]' }),
};

t.test('each operation answers each caller as the table of docs/http.md says', async (t) => {
  const table = documentedTable();
  const operations = SPEC_ROUTES.map(({ method, path: route }) => `${method} ${route}`);
  t.strictSame([...table.keys()].sort(), operations.sort(), 'the table has every operation');
  const setup = await setUpMerchants(t);
  for (const [operation, statuses] of table)
    await t.test(operation, async (t) => {
      const columns = [...CALLERS.slice(0, -1), ...Object.keys(BODIES)];
      t.strictSame([...statuses.keys()], columns);
      const subject = { ...SUBJECT_OF_AMBER, session: setup.sessions.Amber ?? '' };
      for (const [column, status] of statuses) {
        const caller = setup.callers[column as CallerName] ?? setup.callers['own key'];
        const [route, options] = CALLS[operation]?.(caller, subject) ?? ['', {}];
        const changed = BODIES[column]?.(options, operation) ?? options;
        if (status === '–') t.equal(options.body, undefined, `${column}: it has no body`);
        else t.equal(String((await callMerchantApi(setup.gateway, route, changed)).status), status, column);
      }
      const newUser = { ...subject, userId: 31, username: 'new' };
      const own = await callOperation(setup, operation, setup.callers['own key'], newUser);
      // The new user can't log in, and the merchant has no webhook URL.
      const failures: Readonly<Record<string, number>> = { 'GET /v2/user/login': 400, 'POST /test_webhook': 409 };
      const failure = failures[operation];
      if (failure === undefined) t.ok(own.status < 300, 'the owner’s call succeeds');
      else t.equal(own.status, failure, 'the owner gets the documented status');
    });
});

/** An answer without the parts that differ in every answer, and without the values that the caller sent. */
function comparable({ status, headers, text }: MerchantAnswer, subject: Subject): unknown {
  const { 'x-request-id': _id, date: _date, ...others } = headers;
  // Assigned ids and tokens are new in each answer.
  const withoutIds = text.replace(/"id":\d+/, '"id":…').replace(/lgt_[\w-]{43}/, 'lgt_…');
  return {
    status,
    others,
    text: withoutIds.replaceAll(subject.mac, '…').replace(`"owner_id":"${subject.userId}"`, ''),
  };
}

/** Basil's rows, read from the database file. */
function storedOfBasil(folder: string): unknown {
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  try {
    const tables = ['pet', 'user_account', 'user_session'];
    return tables.map((table) => db.prepare(`SELECT * FROM ${table} WHERE merchant_id = 2 ORDER BY id`).raw().all());
  } finally {
    db.close();
  }
}

t.test('another merchant’s objects and unknown objects get the same answer, by every caller', async (t) => {
  /** The statuses for an authenticated caller: on their own objects, and on all others. */
  const expected: Readonly<Record<string, readonly [own: number, statusForOthers: number]>> = {
    'POST /v1/pet': [201, 201],
    'PUT /v2/pet': [200, 404],
    'GET /v2/user/login': [200, 400],
    'GET /v2/user/logout': [200, 200],
    'POST /v2/user/createWithList': [409, 200],
    'POST /v2/user/createWithArray': [409, 200],
    'POST /test_webhook': [409, 404],
    'POST /oauth/token': [200, 200],
  };
  const setup = await setUpMerchants(t);
  for (const operation of Object.keys(CALLS))
    await t.test(operation, async (t) => {
      const before = storedOfBasil(setup.folder);
      const [own = 0, statusForOthers = 0] = expected[operation] ?? [];
      const subjects = {
        others: { ...SUBJECT_OF_BASIL, session: setup.sessions.Basil ?? '' },
        unknown: { ...UNKNOWN_SUBJECT, session: `lgu_${'x'.repeat(43)}` },
        own: { ...SUBJECT_OF_AMBER, session: setup.sessions.Amber ?? '' },
      };
      for (const name of CALLERS.filter((each) => each !== 'another merchant’s key')) {
        const caller = setup.callers[name];
        const othersAnswer = await callOperation(setup, operation, caller, subjects.others);
        const unknownAnswer = await callOperation(setup, operation, caller, subjects.unknown);
        const ownAnswer = await callOperation(setup, operation, caller, subjects.own);
        // This operation takes its token in the body, so that without one the body is incomplete.
        const refused = operation === 'POST /test_webhook' && name === 'no key' ? 400 : 401;
        const statuses = name === 'own key' ? [statusForOthers, statusForOthers, own] : [refused, refused, refused];
        t.strictSame([othersAnswer.status, unknownAnswer.status, ownAnswer.status], statuses, name);
        const [first, second] = [
          comparable(othersAnswer, subjects.others),
          comparable(unknownAnswer, subjects.unknown),
        ];
        t.strictSame(first, second, `${name}: another merchant’s and unknown objects get the same answer`);
        if (name !== 'own key')
          t.strictSame(comparable(ownAnswer, subjects.own), second, `${name}: so do the caller’s own objects`);
      }
      t.strictSame(storedOfBasil(setup.folder), before, 'the other merchant’s rows are unchanged');
    });
});

/** Numbers as written in a body, each with its value; undefined where it is refused. */
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

t.test('the int64 ids of users and pets are stored exactly, or refused', async (t) => {
  const { gateway, folder, callers } = await setUpMerchants(t);
  const { key, token } = callers['own key'];
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  t.teardown(() => db.close());
  const ids = db.prepare('SELECT id FROM user_account WHERE merchant_id = 1 AND username = ?').safeIntegers().pluck();
  const changePetId = db.prepare('UPDATE pet SET id = ? WHERE merchant_id = 1');
  for (const [typed, value] of INT64) {
    const list = `[{"id":${typed},"username":${JSON.stringify(`u${typed}`)}}]`;
    const { status } = await callMerchantApi(gateway, '/v2/user/createWithList', { key, body: list });
    t.strictSame([status, ids.get(`u${typed}`)], [value === undefined ? 400 : 200, value], `a user’s: ${typed}`);
    const body = `{"id":${typed},"name":"Max","photoUrls":[],"tags":[{"id":${typed === '"1"' ? 1 : typed}}]}`;
    const update = () => callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body });
    if (value === undefined || value < 1n) t.match(await update(), { status: 400 }, `a pet’s: ${typed}`);
    else {
      // First the pet gets a neighbouring id, so that a gateway that rounds ids would find it; then the id itself.
      changePetId.run(value === 1n ? 2n : value - 1n);
      t.match(await update(), { status: 404 }, `a pet’s: ${typed}, which no pet has`);
      changePetId.run(value);
      const updateAnswer = await update();
      t.match(
        [updateAnswer.status, updateAnswer.text],
        [200, new RegExp(`^{"id":${value},.*"tags":\\[{"id":${value}}]`)],
        typed,
      );
    }
  }
});
