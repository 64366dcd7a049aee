/**
 * One-time invitations (docs/http.md, "Accept an invitation"): a link with a token, with which one person can
 * become a user of a merchant's dashboard. All tokens that are not valid get the same answer, and guesses are limited.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { Compile } from 'typebox/compile';
import { INVITATION_LIFE } from '../../../gateway/accounts/invitations.js';
import { MAX_GUESSES } from '../../../gateway/accounts/login-guard.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { INVITATION_ROUTES } from '../../../gateway/http/merchant/invitation-routes.js';
import { MAX_INVITATIONS_PER_MERCHANT } from '../../../gateway/store/contract/merchants/invitation-store.js';
import { checkDatabase } from '../../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { migrationProvider } from '../../../gateway/store/sqlite/migrations.js';
import { Kysely, Migrator, SqliteDialect } from '../../../gateway/store/tables/kysely.js';
import { Days, systemClock } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { MERCHANT, openGateway, testGateway } from '../../helpers/gateway/test-gateway.js';
import { root } from '../../helpers/house/our-files.js';
import { apiKey, callMerchantApi, type MerchantCall } from '../../helpers/http/merchant-call.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const START_MS = Date.UTC(2026, 10, 20);
/** A token of the right form that no invitation has. */
const UNKNOWN = `lgi_${'x'.repeat(43)}`;

/** An invitation as its creation answers it. */
interface Created {
  readonly id: number;
  readonly token: string;
  readonly path: string;
}

/** Starts a gateway whose clock advances only by `advance`, and returns functions to invite and to accept. */
async function setUp(test: Parameters<typeof testGateway>[0]) {
  let nowMs = START_MS;
  const machine = { wall: () => nowMs, monotonic: () => nowMs, after: systemClock.after };
  const gateway = await testGateway(test, { machine });
  const invite = async (options: object = {}): Promise<Created> => {
    const { status, body } = await callOperator(gateway, 'POST', '/invitations', { dashboard: 'owner', ...options });
    if (status !== 201) throw new Error(JSON.stringify(body));
    return body as Created;
  };
  const post = (what: 'look-up' | 'accept', body: unknown, options: MerchantCall = {}) =>
    callMerchantApi(gateway, `/v1/invitations/${what}`, { method: 'POST', body, ...options });
  // By default as the user “ada”.
  const accept = (token: string, members: object = {}, options: MerchantCall = {}) =>
    post('accept', { token, username: 'ada', password: 'correct horse', ...members }, options);
  const advance = (ms: number): void => {
    nowMs += ms;
  };
  return { gateway, invite, post, accept, advance };
}

/** The parts of an answer that must be equal for all tokens that are not valid. */
function problemOf({ status, body }: { readonly status: number; readonly body: unknown }): unknown {
  return { status, body };
}

/** Whether the merchant's user can log in over the interface. */
async function canLogIn(gateway: Gateway, username: string, password: string): Promise<boolean> {
  const key = await apiKey(gateway, MERCHANT);
  const query = new URLSearchParams({ username, password });
  return (await callMerchantApi(gateway, `/v2/user/login?${query}`, { key })).status === 200;
}

t.test('an invited person chooses a name and a password, once', async (t) => {
  const { gateway, invite, post, accept } = await setUp(t);
  const { id, token, path: address } = await invite();
  t.match(token, /^lgi_[\w-]{43}$/);
  t.equal(address, `/#invitation=${token}`, 'browsers send no fragment, so that no server logs the token');
  const offer = { merchant: MERCHANT, username: null, dashboard: 'owner', expires_at: '2026-11-27T00:00:00.000Z' };
  t.match(await post('look-up', { token }), { status: 200, body: offer });
  t.match(await accept(token, { username: undefined }), { status: 400, body: { errors: [{ pointer: '/username' }] } });
  const refusedName = { status: 400, body: { code: 'input-body', errors: [{ pointer: '/username' }] } };
  t.match(await accept(token, { username: 'a\u0007da' }), refusedName, 'control characters');
  const accepted = { merchant: MERCHANT, username: 'ada', dashboard: 'owner' };
  t.strictSame((await accept(token)).body, accepted);
  t.equal(await canLogIn(gateway, 'ada', 'correct horse'), true);
  t.match(await callOperator(gateway, 'GET', '/users'), { body: { users: [{ username: 'ada', dashboard: 'owner' }] } });
  const { body } = await callOperator(gateway, 'GET', '/audit?limit=2');
  t.match(body, {
    entries: [
      { action: 'invitation.accept', actor: 'user', user: 'ada', merchant: MERCHANT, object: 'ada' },
      { action: 'invitation.create', actor: 'operator', merchant: MERCHANT, object: String(id) },
    ],
  });
  t.notMatch(JSON.stringify(body), token);
});

t.test('an unknown, a used, a withdrawn, a replaced and an expired invitation get the same answer', async (t) => {
  const { gateway, invite, post, accept, advance } = await setUp(t);
  const unknown = problemOf(await accept(UNKNOWN));
  t.match(unknown, { status: 404, body: { code: 'no-such-invitation' } });
  const used = await invite();
  t.equal((await accept(used.token)).status, 201);
  const withdrawn = await invite();
  t.match(await callOperator(gateway, 'DELETE', `/invitations/${withdrawn.id}`), { status: 200 });
  t.match(await callOperator(gateway, 'DELETE', `/invitations/${withdrawn.id}`), { status: 404 });
  const replaced = await invite({ username: 'bo' });
  await invite({ username: ' BO ' });
  const expired = await invite({ username: 'cy', expires_at: new Date(START_MS + 1_000).toISOString() });
  const lasting = await invite({ username: 'dee' });
  advance(1_000);
  for (const [name, { token }] of Object.entries({ used, withdrawn, replaced, expired })) {
    t.strictSame(problemOf(await accept(token, { username: undefined })), unknown, name);
    const lookedUp = await post('look-up', { token });
    t.strictSame(problemOf(lookedUp), unknown, `${name}, looked up`);
    // Wrong tokens are limited in a span of time: later ones start a new span.
    advance(10 * 60_000);
  }
  t.match(await callOperator(gateway, 'GET', '/invitations'), {
    body: { invitations: [{ username: ' BO ' }, { id: lasting.id }] },
  });
  advance(INVITATION_LIFE);
  t.strictSame((await callOperator(gateway, 'GET', '/invitations')).body, { invitations: [] });
});

t.test(
  'an invitation with a name is valid only for that name; a taken name does not use the invitation up',
  async (t) => {
    const { gateway, invite, accept } = await setUp(t);
    const { token } = await invite({ username: 'Ada' });
    t.match(await accept(token, { username: 'bo' }), { status: 400, body: { errors: [{ pointer: '/username' }] } });
    t.match(await accept(token), { status: 201, body: { username: 'Ada' } }, 'the name may be in another spelling');
    const openInvitation = await invite({ dashboard: 'viewer' });
    const refusedName = await accept(openInvitation.token);
    t.match(refusedName, { status: 409, body: { code: 'user-exists', errors: [{ pointer: '/username' }] } });
    t.match(await accept(openInvitation.token, { username: ' ' }), { status: 400, body: { code: 'input-name' } });
    t.match(await accept(openInvitation.token, { username: 'bo' }), { status: 201, body: { dashboard: 'viewer' } });
    const refused = await callOperator(gateway, 'POST', '/invitations', { dashboard: 'owner', username: 'ADA' });
    t.match(refused, { status: 409, body: { code: 'user-exists' } }, 'an invitation for a taken name is refused');
  },
);

t.test('of several people with the same link, one becomes a user', async (t) => {
  const { gateway, invite, accept } = await setUp(t);
  const { token } = await invite();
  const answers = await Promise.all(
    ['ada', 'bo', 'cy'].map((username, index) => accept(token, { username }, { fromAddress: `127.0.0.${index + 2}` })),
  );
  t.same(answers.map(({ status }) => status).sort(), [201, 404, 404]);
  const { body } = await callOperator(gateway, 'GET', '/users');
  t.equal((body as { users: unknown[] }).users.length, 1, 'one of three simultaneous acceptances made a user');
});

t.test('after ten wrong tokens an address waits, and no other does', async (t) => {
  const { invite, accept, advance } = await setUp(t);
  const { token } = await invite();
  for (let guess = 0; guess < MAX_GUESSES; guess += 1) t.equal((await accept(UNKNOWN)).status, 404);
  const refused = await accept(token);
  t.match(refused, { status: 429, body: { budget: 'login-guesses' }, headers: { 'retry-after': '300' } });
  t.equal((await accept(UNKNOWN, {}, { fromAddress: '127.0.0.2' })).status, 404);
  advance(300_000);
  t.equal((await accept(token)).status, 201);
});

t.test('passwords have the limits of users; expiries and the number of open invitations are limited too', async (t) => {
  const { gateway, invite, accept } = await setUp(t);
  const { token } = await invite();
  for (const password of ['', 'x'.repeat(513), 7, undefined])
    t.match(await accept(token, { password }), { status: 400, body: { errors: [{ pointer: '/password' }] } });
  const create = (expiresAtMs: number) =>
    callOperator(gateway, 'POST', '/invitations', {
      dashboard: 'staff',
      expires_at: new Date(expiresAtMs).toISOString(),
    });
  for (const atMs of [START_MS, START_MS + Days(31)])
    t.match(await create(atMs), { status: 400, body: { code: 'input-expiry' } });
  for (let count = 1; count < MAX_INVITATIONS_PER_MERCHANT; count += 1) await invite();
  t.match(await create(START_MS + 1), { status: 409, body: { code: 'too-many-invitations' } });
});

t.test('an invitation’s token is only in the answer that creates it', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  const { invitation, token } = await gateway.merchants.invitations.create(1, { role: 'owner' });
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  const rows = db.prepare('SELECT * FROM invitation').all() as { readonly token_hash: Buffer }[];
  const plan = db.prepare('EXPLAIN QUERY PLAN SELECT * FROM invitation WHERE merchant_id = 1 AND id > 0 ORDER BY id');
  t.match(JSON.stringify(plan.all()), /USING INDEX invitation_by_merchant/, 'a list reads only its merchant’s rows');
  db.close();
  t.equal(rows.length, 1, 'the table is not empty');
  t.notMatch(JSON.stringify(rows), token);
  t.notMatch(rows[0]?.token_hash.toString('latin1'), token.slice(4));
  t.notMatch(JSON.stringify((await callOperator(gateway, 'GET', '/invitations')).body), token);
  const key = await apiKey(gateway, MERCHANT);
  const listed = await callMerchantApi(gateway, '/v1/invitations', { key });
  t.match(listed, { status: 200, body: { data: [{ id: invitation.id }] } });
  t.notMatch(listed.text, token);
});

t.test('the answers of the two routes without a key match the OpenAPI document and docs/http.md', async (t) => {
  const { invite, post, accept } = await setUp(t);
  const [, chapter = ''] = readFileSync(path.join(root, 'docs/http.md'), 'utf8').split('## Accept an invitation\n');
  const [section = ''] = chapter.split('\n## ');
  const { token } = await invite();
  await invite({ username: 'eve' });
  const csv = { 'content-type': 'text/csv' };
  const tooLong = { token, password: 'x'.repeat(9_000) };
  const answers = {
    '/v1/invitations/look-up': [
      await post('look-up', { token }),
      await post('look-up', {}),
      await post('look-up', { token: UNKNOWN }),
      await post('look-up', tooLong),
      await post('look-up', 'x', { headers: csv }),
    ],
    '/v1/invitations/accept': [
      await accept(token),
      await post('accept', { token }),
      await accept(UNKNOWN),
      await accept((await invite()).token),
      await accept(token, tooLong),
      await accept(token, {}, { headers: csv }),
    ],
  };
  for (const { path: route, responses, body, bodyExample, scheme } of INVITATION_ROUTES) {
    t.equal(scheme, 'none');
    t.ok(section.includes(route), `${route} is on the page`);
    t.strictSame(Compile(body ?? {}).Errors(bodyExample), []);
    const [success = ''] = Object.keys(responses);
    t.strictSame(Compile(responses[Number(success)]?.schema ?? {}).Errors(responses[Number(success)]?.example), []);
    const answersOfRoute = answers[route as keyof typeof answers];
    const expected = Object.keys(responses).filter((status) => status !== '429' && status !== '503');
    t.strictSame(
      [...new Set(answersOfRoute.map(({ status }) => String(status)))].sort(),
      expected,
      `${route}: its statuses`,
    );
    for (const { status, body: answer } of answersOfRoute)
      t.strictSame(Compile(responses[status]?.schema ?? {}).Errors(answer), [], `${route} ${status} fits`);
  }
});

t.test('a store that was made before invitations existed gets their table', async (t) => {
  const folder = tempFolder(t);
  const file = path.join(folder, 'lockgate.sqlite');
  const db = openDurable(file);
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  // The last migration before the one that made the table of invitations.
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo('0026-list-indexes');
  t.notOk(error);
  db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, '${MERCHANT}', 1)`);
  db.close();
  const store = await openStore(folder);
  const options = { merchantId: 1, username: null, dashboardRole: 'viewer', tokenHash: Buffer.alloc(32) } as const;
  const id = await store.invitations.add({ ...options, nowMs: 1, expiresAtMs: 9 });
  t.match(await store.invitations.list({ merchantId: 1, afterId: 0, nowMs: 8, limit: 9 }), [{ id }]);
  t.equal(await store.invitations.remove(2, id), false, 'another merchant can’t withdraw it');
  await store.close();
  t.same((await checkDatabase(file)).damage, [], 'the store is undamaged');
});
