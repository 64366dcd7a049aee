/**
 * The user group of the merchants' interface (/v2/user): lists of users, login, logout, and limits on guessing
 * passwords (interfaces.md §2). LoginGuard counts wrong guesses; Passwords hashes and compares.
 */
import t, { type Test } from 'tap';
import { LoginGuard } from '../../../gateway/accounts/login-guard.js';
import { Passwords } from '../../../gateway/accounts/passwords.js';
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import { SOLE_OWNER } from '../../../gateway/store/log/sole-owner.js';
import { parseRange } from '../../../gateway/webhooks/sending/address-rule.js';
import { ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { MERCHANT, openGateway, testGateway } from '../../helpers/gateway/test-gateway.js';
import { apiKey, callMerchantApi, type MerchantAnswer } from '../../helpers/http/merchant-call.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** In a new store, the first merchant has this id. */
const MERCHANT_ID = 1;
const CREATE_WITH_LIST = '/v2/user/createWithList';
const INVALID = { status: 400, body: { detail: 'Invalid username/password supplied' } };

async function setUpGateway(test: Test, options: GatewayOptions = {}): Promise<{ gateway: Gateway; key: string }> {
  const gateway = await testGateway(test, options);
  return { gateway, key: await apiKey(gateway, MERCHANT) };
}

/** Who logs in where. `fromAddress` is the client's address; by default it is 127.0.0.1. */
interface LoginOptions {
  readonly gateway: Gateway;
  readonly key: string;
  readonly fromAddress?: string;
}

function logIn(
  { gateway, key, fromAddress }: LoginOptions,
  username: string,
  password: string,
): Promise<MerchantAnswer> {
  const query = new URLSearchParams({ username, password });
  return callMerchantApi(gateway, `/v2/user/login?${query}`, {
    key,
    ...(fromAddress !== undefined && { fromAddress }),
  });
}

function sessionOf({ body }: MerchantAnswer): string {
  return String(body).replace('logged in user session:', '');
}

const listNames = async ({ store }: Gateway): Promise<(string | null)[]> => {
  return (await store.people.listUsers({ merchantId: MERCHANT_ID, afterId: null, limit: 9 })).map(
    ({ username }) => username,
  );
};

t.test('a list of users is created completely or not at all, by either operation', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const empty = { status: 200, text: '', headers: { 'content-length': '0' } };
  // The largest id, the smallest status, and a member that users don't have: it is ignored, even with this number.
  const ada =
    '{"id":9223372036854775807,"username":"ada","firstName":"A","userStatus":-2147483648,"odd":{"x":[1e999]}}';
  t.match(await callMerchantApi(gateway, CREATE_WITH_LIST, { key, body: `[${ada}]` }), empty);
  t.match(
    await callMerchantApi(gateway, '/v2/user/createWithArray', { key, body: [{ username: 'bo', id: 2 }, {}, {}, {}] }),
    empty,
  );
  t.match(await callMerchantApi(gateway, CREATE_WITH_LIST, { key, body: [] }), empty);
  const listed = await gateway.store.people.listUsers({ merchantId: MERCHANT_ID, afterId: null, limit: 9 });
  const ids = [1n, 2n, 3n, 4n, 2n ** 63n - 1n];
  t.same(
    listed.map(({ id }) => id),
    ids,
    'an absent id becomes the next free one, and stays small',
  );
  t.match(listed.at(-1), { username: 'ada', firstName: 'A', lastName: null, userStatus: -2147483648 });

  const refusals: readonly (readonly [string, number, object])[] = [
    ['{}', 400, [{ pointer: '', detail: 'expected an array' }]],
    ['[1]', 400, [{ pointer: '/0', detail: 'expected an object' }]],
    [
      '[{"username":"x"},{"id":"1","userStatus":2147483648}]',
      400,
      [{ pointer: '/1/id' }, { pointer: '/1/userStatus' }],
    ],
    ['[{"username":"x"},{"id":9223372036854775808}]', 400, [{ pointer: '/1/id' }]],
    ['[{"username":"x"},{"phone":7,"email":[]}]', 400, [{ pointer: '/1/email' }, { pointer: '/1/phone' }]],
    ['[{"username":"\\ud800"}]', 400, [{ pointer: '/0/username' }]],
    ['[{"username":"x"},{"username":"x"}]', 409, [{ pointer: '/1/username', detail: 'it is at index 0 already' }]],
    ['[{"id":7},{"id":7.0}]', 409, [{ pointer: '/1/id' }]],
    ['[{"username":"x"},{"username":"ada"}]', 409, [{ pointer: '/1/username' }]],
    ['[{"username":"x"},{"id":9223372036854775807}]', 409, [{ pointer: '/1/id' }]],
  ];
  for (const [body, status, errors] of refusals)
    t.match(
      await callMerchantApi(gateway, CREATE_WITH_LIST, { key, body }),
      { status, body: { status, errors } },
      body,
    );
  const many = await callMerchantApi(gateway, CREATE_WITH_LIST, {
    key,
    body: Array.from({ length: 1001 }, () => ({})),
  });
  t.match(many, { status: 413, body: { detail: /1001 items: at most 1000/ } });
  t.same(await listNames(gateway), [null, 'bo', null, null, 'ada'], 'the refused lists added no user');
  t.match(
    await callMerchantApi(gateway, CREATE_WITH_LIST, { key, body: Array.from({ length: 1000 }, () => ({})) }),
    empty,
  );
});

t.test('user names are stored as they were sent', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const texts = ['😀', "'; DROP TABLE user_account; --", '__proto__', '', ' Ada  ', 'e\u0301'];
  t.match(await callMerchantApi(gateway, CREATE_WITH_LIST, { key, body: texts.map((username) => ({ username })) }), {
    status: 200,
  });
  t.same(await listNames(gateway), texts);
  const unusualBody = '[{"__proto__":{"username":"x"},"constructor":1,"username":"y"}]';
  t.match(await callMerchantApi(gateway, CREATE_WITH_LIST, { key, body: unusualBody }), { status: 200 });
  t.same(await listNames(gateway), [...texts, 'y'], 'members that users don’t have are ignored');
});

t.test('a user’s name has no control characters', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const body = [{ username: 'ada' }, { username: 'bo\u0007b' }, { username: 'eve\u2028' }];
  t.match(await callMerchantApi(gateway, '/v2/user/createWithList', { key, body }), {
    status: 400,
    body: { code: 'input-body', errors: [{ pointer: '/1/username' }, { pointer: '/2/username' }] },
  });
  const refusal = { status: 400, body: { code: 'input-body', errors: [{ pointer: '/username' }] } };
  const user = { username: 'ada\u001b[2J' };
  t.match(await callMerchantApi(gateway, '/v1/users', { key, body: user }), refusal);
  t.match(await callOperator(gateway, 'POST', '/users', { ...user, password: 'correct horse' }), refusal);
  t.match(await callOperator(gateway, 'POST', '/invitations', { ...user, dashboard: 'staff' }), refusal);
  t.match(await callOperator(gateway, 'GET', '/users'), { body: { users: [] } }, 'nobody was added');
});

t.test('null is the same as absent in a user', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const members = ['id', 'username', 'firstName', 'lastName', 'email', 'password', 'phone', 'userStatus'];
  const nothing = Object.fromEntries(members.map((name) => [name, null]));
  t.match(await callMerchantApi(gateway, CREATE_WITH_LIST, { key, body: [nothing, nothing] }), { status: 200 });
  t.same(await listNames(gateway), [null, null]);
});

t.test('user names are compared without case and surrounding spaces, and after NFKC normalization', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const add = (...usernames: string[]) =>
    callMerchantApi(gateway, CREATE_WITH_LIST, { key, body: usernames.map((username) => ({ username })) });
  t.match(
    await callMerchantApi(gateway, CREATE_WITH_LIST, { key, body: [{ username: ' Zo\u00eb ', password: 'x' }] }),
    {
      status: 200,
    },
  );
  for (const same of ['zo\u00eb', 'ZOE\u0308', 'zoe\u0308', '\uff3aoe\u0308', '\u00a0Zo\u00eb'])
    t.match(await add(same), { status: 409, body: { errors: [{ pointer: '/0/username' }] } }, same);
  // Compared after folding ß to ss, without characters that have no width, and with both small sigmas alike.
  for (const capitals of ['STRASSE', 'STRA\u1e9eE'])
    t.match(await add('Stra\u00dfe', capitals), { status: 409, body: { errors: [{ pointer: '/1/username' }] } });
  for (const unseen of ['zo\u00eb\u200b', 'zo\u00ad\u00eb', '\u2060zo\u00eb', '\u202ezo\u00eb'])
    t.match(await add(unseen), { status: 409, body: { errors: [{ pointer: '/0/username' }] } }, escape(unseen));
  t.match(await add('zoe', '\u03a3\u03ac\u03c2'), { status: 200 }, 'a different letter is a different name');
  t.match(await add('\u03c3\u03ac\u03c3'), { status: 409 });
  for (const typed of [' Zo\u00eb ', 'zo\u00eb', 'ZOE\u0308'])
    t.match(await logIn({ gateway, key }, typed, 'x'), { status: 200 }, typed);
  t.match(await logIn({ gateway, key }, 'zoe', 'x'), INVALID);
  t.same(await listNames(gateway), [' Zo\u00eb ', 'zoe', '\u03a3\u03ac\u03c2'], 'each name is stored as typed');
  // Wrong guesses under any spelling count for the same account.
  const guesses = ['zo\u00eb', 'ZO\u00cb'].flatMap((name) => Array.from({ length: 5 }, () => name));
  for (const name of guesses) t.match(await logIn({ gateway, key }, name, 'y'), INVALID);
  t.match(await logIn({ gateway, key }, 'Zoe\u0308', 'x'), { status: 429 });
});

t.test('a login gives a session, and a logout ends it at once', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  const user = { id: '9007199254740993', username: 'ada & bo', password: 'pässword+ %00' };
  await callMerchantApi(gateway, CREATE_WITH_LIST, {
    key,
    body: `[${JSON.stringify(user).replace('"9007199254740993"', user.id)}]`,
  });
  const answer = await logIn({ gateway, key }, user.username, user.password);
  t.match(answer, { status: 200, headers: { 'content-type': /^application\/json/, 'cache-control': 'no-store' } });
  t.match(answer.body, /^logged in user session:lgu_[\w-]{43}$/);
  t.match(answer.headers['x-rate-limit'], /^\d+$/);
  t.match(answer.headers['x-expires-after'], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
  const token = sessionOf(answer);
  const cookie = `lockgate_session=${token}`;
  t.same(answer.headers['set-cookie'], [`${cookie}; Path=/v2/user; Max-Age=43200; HttpOnly; SameSite=Strict`]);
  /** The id of a session's user; null if there is no such session. */
  const find = (text: string): Promise<bigint | null> => gateway.merchants.users.findSession(MERCHANT_ID, text);
  t.equal(await find(token), 9007199254740993n);
  const other = await gateway.accounts.addMerchant('Basil');
  const otherKey = await apiKey(gateway, other.name);
  const logOut = (by: string, headers: Record<string, string>) =>
    callMerchantApi(gateway, '/v2/user/logout', { key: by, headers });
  t.match(await logOut(otherKey, { 'x-session': token }), { status: 200, text: '' });
  t.equal(await find(token), 9007199254740993n, 'another merchant can’t end the session');
  t.match(await logOut(key, { cookie: `a=b; ${cookie}` }), { status: 200, text: '' });
  t.equal(await find(token), null);
  const second = sessionOf(await logIn({ gateway, key }, user.username, user.password));
  t.match(await logOut(key, { 'x-session': second }), { status: 200, text: '' });
  t.equal(await find(second), null);
  // No proxy is trusted, so its claim that the client uses HTTPS does not make the cookie `Secure`.
  const headers = { 'x-forwarded-proto': 'https' };
  t.match(await logOut(key, headers), { status: 200, headers: { 'set-cookie': [/Max-Age=0;.*; SameSite=Strict$/] } });
  for (const headers of [{}, { 'x-session': second }, { 'x-session': 'x' }, { cookie: 'lockgate_session=' }])
    t.match(await logOut(key, headers), { status: 200, text: '' }, 'also without a session');
});

t.test('a session expires', async (t) => {
  const clock = new ManualClock();
  const { gateway, key } = await setUpGateway(t, { wallClock: clock });
  await callMerchantApi(gateway, CREATE_WITH_LIST, { key, body: [{ username: 'ada', password: 'x' }] });
  const token = sessionOf(await logIn({ gateway, key }, 'ada', 'x'));
  clock.advance(Minutes(12 * 60) - 1);
  t.ok(await gateway.merchants.users.findSession(MERCHANT_ID, token));
  clock.advance(1);
  t.notOk(await gateway.merchants.users.findSession(MERCHANT_ID, token));
});

t.test('an unknown user, one without a password and a wrong password get the same answer', async (t) => {
  const { gateway, key } = await setUpGateway(t);
  await callMerchantApi(gateway, CREATE_WITH_LIST, {
    key,
    body: [{ username: 'ada', password: 'x' }, { username: 'bo' }, { username: 'cy', password: '' }, {}],
  });
  const failures = [
    await logIn({ gateway, key }, 'ada', 'y'),
    await logIn({ gateway, key }, 'nobody', 'x'),
    await logIn({ gateway, key }, 'bo', ''),
    await logIn({ gateway, key }, 'cy', ''),
    await logIn({ gateway, key }, 'ada', ''),
    await logIn({ gateway, key }, '', ''),
  ];
  for (const answer of failures) {
    t.match(answer, INVALID);
    t.equal(answer.text, failures[0]?.text, 'the bodies are identical');
  }
  const incomplete = ['', '?username=ada', '?password=x', '?username=ada&username=bo&password=x'];
  for (const query of incomplete)
    t.match(await callMerchantApi(gateway, `/v2/user/login${query}`, { key }), INVALID, query);
  const basil = await apiKey(gateway, (await gateway.accounts.addMerchant('Basil')).name);
  t.match(await logIn({ gateway, key: basil }, 'ada', 'x'), INVALID, 'another merchant’s user is unknown');
});

t.test('an address may guess wrong ten times in five minutes at an account', async (t) => {
  const clock = new ManualClock();
  const { gateway, key } = await setUpGateway(t, { wallClock: clock });
  await callMerchantApi(gateway, CREATE_WITH_LIST, {
    key,
    body: [
      { username: 'ada', password: 'x' },
      { username: 'bo', password: 'y' },
    ],
  });
  const attacker = { gateway, key, fromAddress: '127.0.0.2' };
  t.match(await logIn(attacker, 'ada', 'x'), { status: 200 }, 'a right password is not counted');
  clock.advance(Minutes(1));
  const guesses = await Promise.all(Array.from({ length: 14 }, (_, index) => logIn(attacker, 'ada', `guess ${index}`)));
  const statuses = guesses.map(({ status }) => status).sort();
  t.same(statuses, [...new Array(10).fill(400), ...new Array(4).fill(429)], 'concurrent attempts are counted too');
  const limited = await logIn(attacker, 'ada', 'x');
  t.match(limited, { status: 429, headers: { 'retry-after': '300' }, body: { code: 'rate-limited' } });
  t.match(
    await logIn({ ...attacker, fromAddress: '127.0.0.3' }, 'ada', 'x'),
    { status: 200 },
    'the owner can log in from another address',
  );
  t.match(await logIn(attacker, 'bo', 'y'), { status: 200 }, 'another user behind that address can log in');
  for (let guess = 0; guess < 10; guess += 1) await logIn(attacker, 'nobody', '');
  t.match(await logIn(attacker, 'nobody', ''), { status: 429 }, 'guesses at unknown users are limited too');
  clock.advance(Minutes(5) - Seconds(1));
  t.match(await logIn(attacker, 'ada', 'x'), { status: 429, headers: { 'retry-after': '1' } });
  clock.advance(Seconds(1));
  t.match(await logIn(attacker, 'ada', 'x'), { status: 200 });
});

/** A guard against guesses at passwords, of a gateway that shares its store with no other and so hears of none's. */
function guardOfSoleGateway(clock: ManualClock): LoginGuard {
  return new LoginGuard(clock, 'password', SOLE_OWNER.signals);
}

t.test('many addresses that guess at one account are refused, and its owner’s address is not', async (t) => {
  const clock = new ManualClock();
  const guard = guardOfSoleGateway(clock);
  /**
   * Tries to log in, with this outcome if the guard lets the attempt through; returns whether it did. A refused attempt
   * is undecided, since its password is not compared.
   */
  const attempt = async (address: string, outcome: 'right' | 'wrong', username = 'ada'): Promise<boolean> => {
    const { retryAfterMs, end } = await guard.begin(MERCHANT_ID, username, address);
    end(retryAfterMs === undefined ? outcome : 'undecided');
    return retryAfterMs === undefined;
  };
  t.ok(await attempt('home', 'right'));
  const atOnce = await Promise.all(
    Array.from({ length: 150 }, (_, n) => guard.begin(MERCHANT_ID, 'cy', `10.0.0.${n}`)),
  );
  const letThrough = atOnce.filter(({ retryAfterMs }) => retryAfterMs === undefined);
  t.equal(letThrough.length, 100, 'concurrent attempts are counted too');
  for (const { end } of atOnce) end('undecided');
  t.ok(await attempt('10.0.2.1', 'wrong', 'cy'), 'an undecided attempt does not count');
  for (let guess = 0; guess < 100; guess += 1) t.ok(await attempt(`10.0.0.${guess}`, 'wrong'), `guess ${guess}`);
  t.notOk(await attempt('10.0.1.1', 'wrong'));
  t.ok(await attempt('home', 'right'), 'this address logged in before');
  t.ok(await attempt('10.0.1.1', 'wrong', 'bo'), 'another account is not affected');
  clock.advance(Minutes(5));
  t.ok(await attempt('10.0.1.1', 'wrong'));
});

t.test('one address that tries many accounts is refused, except where it logged in before', async (t) => {
  const clock = new ManualClock();
  const guard = guardOfSoleGateway(clock);
  /** Tries to log in; returns how long the guard makes the address wait, undefined if not at all. */
  const attempt = async (username: string, address: string, outcome: 'right' | 'wrong', merchantId = 1) => {
    const { retryAfterMs, end } = await guard.begin(merchantId, username, address);
    end(retryAfterMs === undefined ? outcome : 'undecided');
    return retryAfterMs;
  };
  const sprayer = '2001:db8:1:2::1';
  t.equal(await attempt('ada', sprayer, 'right'), undefined);
  for (let guess = 0; guess < 100; guess += 1)
    t.equal(await attempt(`user ${guess}`, `2001:db8:1:2::${guess.toString(16)}`, 'wrong'), undefined);
  t.equal(await attempt('user 100', '2001:db8:1:2:ffff::1', 'wrong'), Minutes(5), 'a /64 is one address');
  t.equal(await attempt('ada', sprayer, 'right'), undefined, 'this address logged in before');
  t.equal(await attempt('user 100', '2001:db8:1:3::1', 'right'), undefined, 'another address is not refused');
  t.equal(await attempt('user 100', sprayer, 'right', 2), undefined, 'another merchant’s users are not affected');
  const atOnce = await Promise.all(Array.from({ length: 150 }, (_, n) => guard.begin(3, `user ${n}`, sprayer)));
  t.equal(atOnce.filter(({ retryAfterMs }) => retryAfterMs === undefined).length, 100, 'concurrent attempts count too');
  for (const { end } of atOnce) end('undecided');
  t.equal(await attempt('user 0', '::ffff:192.0.2.1', 'wrong', 4), undefined);
  for (let guess = 1; guess < 10; guess += 1) await attempt('user 0', '192.0.2.1', 'wrong', 4);
  t.equal(await attempt('user 0', '::ffff:192.0.2.1', 'wrong', 4), Minutes(5), 'IPv4 in IPv6 spelling is the same');
  clock.advance(Minutes(5));
  t.equal(await attempt('user 100', sprayer, 'wrong'), undefined);
});

t.test('guesses behind a trusted proxy count per client, and X-Forwarded-For of others is ignored', async (t) => {
  // The last two are IPv4 addresses in IPv6 spelling.
  const trustedProxies = ['127.0.0.5', '10.1.0.0/16', '::ffff:10.9.0.0/112', '::ffff:192.0.2.1'].map(parseRange);
  const gateway = await openGateway(t, tempFolder(t), {}, { trustedProxies });
  await gateway.accounts.addMerchant(MERCHANT);
  const key = await apiKey(gateway, MERCHANT);
  await callMerchantApi(gateway, CREATE_WITH_LIST, { key, body: [{ username: 'ada', password: 'x' }] });
  const through = async (fromAddress: string, forwarded: string, password: string) => {
    const headers = { 'x-forwarded-for': forwarded, 'x-forwarded-proto': 'https' };
    const answer = await callMerchantApi(gateway, `/v2/user/login?username=ada&password=${password}`, {
      key,
      fromAddress,
      headers,
    });
    return { ...answer, isSecure: /; Secure$/.test(String(answer.headers['set-cookie'])) };
  };
  // The client invented the first entry; the proxies wrote the others.
  for (let guess = 0; guess < 10; guess += 1)
    t.match(await through('127.0.0.5', `198.51.100.${guess}, 203.0.113.9, 10.1.2.3`, 'wrong'), { status: 400 });
  t.match(await through('127.0.0.5', '198.51.100.77, 203.0.113.9:4711, 10.1.2.3', 'x'), { status: 429 });
  t.match(await through('127.0.0.5', '203.0.113.10, 10.1.2.3', 'x'), { status: 200, isSecure: true });
  for (const proxy of ['10.9.1.2', '::ffff:10.9.1.2', '192.0.2.1'])
    t.match(await through('127.0.0.5', `203.0.113.9, ${proxy}`, 'x'), { status: 429 }, proxy);
  t.match(await through('127.0.0.5', '[2001:db8::1]:443', 'x'), { status: 200 });
  for (let guess = 0; guess < 10; guess += 1)
    t.match(await through('127.0.0.6', `198.51.100.${guess}`, 'wrong'), { status: 400 });
  t.match(
    await through('127.0.0.6', '198.51.100.77', 'x'),
    { status: 429 },
    'the header of an untrusted address is ignored',
  );
  t.match(await through('127.0.0.7', '198.51.100.77', 'x'), { status: 200, isSecure: false });
});

t.test('endless guesses from one address do not keep other users out', async (t) => {
  const passwords = new Passwords();
  const [stored = null] = await passwords.hashAll(['right'], new AbortController().signal);
  const outcomes: string[] = [];
  // The third argument is the client's address: each address has its own queue.
  const guess = () => passwords.check('wrong', stored, 'attacker').then(String, ({ code }) => code);
  const guesses = Array.from({ length: 100 }, async () => outcomes.push(await guess()));
  t.equal(await passwords.check('right', stored, 'honest'), true);
  const compared = outcomes.filter((each) => each === 'false').length;
  // Of one address 32 guesses may wait while at most 3 are being compared. Addresses take turns, so the honest one does
  // not wait for those 32.
  t.ok(compared < 20, `${compared} of the 100 guesses were compared before it`);
  await Promise.all(guesses);
  t.ok(outcomes.filter((each) => each === 'busy').length >= 100 - 32 - 3, 'most are refused');
});

t.test('beyond 1,000 concurrent attempts at one account from one address, further ones must retry later', async (t) => {
  const guard = guardOfSoleGateway(new ManualClock());
  const begin = (address: string) => guard.begin(MERCHANT_ID, 'ada', address);
  const first = await begin('home');
  const waiting = Array.from({ length: 999 }, () => begin('home'));
  t.equal((await begin('home')).retryAfterMs, Seconds(1), 'one is under way, and 999 wait');
  t.equal((await begin('elsewhere')).retryAfterMs, undefined);
  first.end('wrong');
  let limited = 0;
  for (const attempt of waiting) {
    const { retryAfterMs, end } = await attempt;
    if (retryAfterMs !== undefined) limited += 1;
    end(retryAfterMs === undefined ? 'wrong' : 'undecided');
  }
  t.equal(limited, 990, 'after the first one, nine may guess: ten in all');
});
