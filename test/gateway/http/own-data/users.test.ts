/**
 * A merchant manages its users over the interface (/v1/users): pages, sessions that end, the last owner, and nothing
 * about other merchants (docs/http.md, "GET /v1/users"). A page's cursor names the place of the next page.
 */
import t from 'tap';
import type { Gateway } from '../../../../gateway/gateway.js';
import { MERCHANT, testGateway } from '../../../helpers/gateway/test-gateway.js';
import { apiKey, callMerchantApi, type MerchantCall } from '../../../helpers/http/merchant-call.js';

interface UserJson {
  readonly id: string;
  readonly username: string;
  readonly dashboard: string | null;
}

/** A function that calls with this key, and returns the status and the body. */
function caller(gateway: Gateway, key: string) {
  return async (method: string, path: string, request: MerchantCall = {}) => {
    const { status, body } = await callMerchantApi(gateway, path, { method, key, ...request });
    return { status, body };
  };
}

/** Logs the user ada in, and returns the session's token; '' if the password is wrong. */
async function logIn(gateway: Gateway, key: string, password: string): Promise<string> {
  const query = new URLSearchParams({ username: 'ada', password });
  const { text } = await callMerchantApi(gateway, `/v2/user/login?${query}`, { key });
  return /lgu_[\w-]+/.exec(text)?.[0] ?? '';
}

async function isSessionOpen(gateway: Gateway, session: string): Promise<boolean> {
  const [merchant] = await gateway.store.listMerchants();
  return (await gateway.merchants.users.findSession(merchant?.id ?? 0, session)) !== null;
}

t.test('a new password ends the user’s sessions, and a removal too', async (t) => {
  const gateway = await testGateway(t);
  const key = await apiKey(gateway, MERCHANT);
  const call = caller(gateway, key);
  const added = await call('POST', '/v1/users', { body: { username: 'ada', password: 'first' } });
  t.match(added, { status: 201, body: { dashboard: null, has_password: true } });
  const { id } = added.body as UserJson;
  const session = await logIn(gateway, key, 'first');
  await call('PATCH', `/v1/users/${id}`, { body: { email: 'ada@example.com' } });
  t.equal(await isSessionOpen(gateway, session), true, 'a new email address ends no session');
  t.match(await call('PATCH', `/v1/users/${id}`, { body: { password: 'second' } }), { status: 200 });
  t.equal(await isSessionOpen(gateway, session), false);
  t.equal(await logIn(gateway, key, 'first'), '', 'the old password is wrong now');
  const second = await logIn(gateway, key, 'second');
  t.equal(await isSessionOpen(gateway, second), true);
  // Some typed clients name JSON as the type in every call, also in one without a body.
  const typed = { headers: { 'content-type': 'application/json' } };
  t.match(await call('DELETE', `/v1/users/${id}`, typed), { status: 200, body: { username: 'ada' } });
  t.equal(await isSessionOpen(gateway, second), false);
  t.match(await call('DELETE', `/v1/users/${id}`), { status: 404 });
});

t.test('the last owner can be neither removed nor given another role', async (t) => {
  const gateway = await testGateway(t);
  const call = caller(gateway, await apiKey(gateway, MERCHANT));
  const ids: string[] = [];
  for (const username of ['ada', 'bo']) {
    const { body } = await call('POST', '/v1/users', { body: { username } });
    ids.push((body as UserJson).id);
  }
  const [ada, bo] = ids;
  t.match(await call('PATCH', `/v1/users/${ada}`, { body: { dashboard: 'owner' } }), { body: { dashboard: 'owner' } });
  for (const refused of [
    await call('PATCH', `/v1/users/${ada}`, { body: { dashboard: 'staff' } }),
    await call('DELETE', `/v1/users/${ada}`),
  ])
    t.match(refused, { status: 409, body: { code: 'last-owner' } });
  t.match(await call('PATCH', `/v1/users/${bo}`, { body: { dashboard: 'owner' } }), { status: 200 });
  t.match(await call('PATCH', `/v1/users/${ada}`, { body: { dashboard: 'none' } }), { body: { dashboard: null } });
  t.match(await call('DELETE', `/v1/users/${bo}`), { status: 409 }, 'now the other one is the last');
});

t.test('the list has stable pages, and another merchant’s users are in none of them', async (t) => {
  const gateway = await testGateway(t);
  const call = caller(gateway, await apiKey(gateway, MERCHANT));
  await gateway.accounts.addMerchant('Basil');
  const callOfBasil = caller(gateway, await apiKey(gateway, 'Basil'));
  for (const username of ['a', 'b', 'c', 'd', 'e']) await call('POST', '/v1/users', { body: { username } });
  await callOfBasil('POST', '/v1/users', { body: { username: 'of Basil' } });
  const names: string[] = [];
  let cursor: string | null = '';
  for (let pages = 0; cursor !== null; pages += 1) {
    t.ok(pages < 3, 'five users are on three pages of two');
    const { body } = await call('GET', `/v1/users?limit=2&cursor=${cursor}`);
    const page = body as { readonly data: readonly UserJson[]; readonly next_cursor: string | null };
    names.push(...page.data.map(({ username }) => username));
    cursor = page.next_cursor;
    if (pages === 0) await call('DELETE', `/v1/users/${page.data[0]?.id}`);
  }
  t.same(names, ['a', 'b', 'c', 'd', 'e'], 'a removal meanwhile moves no other user');
});
