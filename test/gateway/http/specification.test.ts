/**
 * The specification's Endpoints, Authentication and Errors, with the additions of interfaces.md §2: one test for each
 * statement, which is the test's name. "Not shown" means that the specification leaves a detail open, and interfaces.md
 * decides it. The other tests in this folder go into detail.
 */
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { MERCHANT, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { type TestReceiver, testReceiver } from '../../helpers/gateway/test-receiver.js';
import { accessToken, apiKey, callMerchantApi } from '../../helpers/http/merchant-call.js';

interface SpecificationSetup {
  readonly gateway: Gateway;
  readonly key: string;
  readonly token: string;
  readonly mac: string;
  readonly receiver: TestReceiver;
}

/** A gateway with a lock, a receiver at its merchant's webhook URL, an API key and an access token. */
async function setUp(t: Test): Promise<SpecificationSetup> {
  const gateway = await testGateway(t);
  const receiver = await testReceiver(t);
  await gateway.accounts.addDevice({ merchant: MERCHANT, mac: testMac(1) });
  await gateway.accounts.addWebhookUrl({ merchant: MERCHANT, url: receiver.url });
  const key = await apiKey(gateway, MERCHANT);
  return { gateway, key, token: await accessToken(gateway, key), mac: formatMac(testMac(1)), receiver };
}

/** In a new store, the first merchant has this id. */
const MERCHANT_ID = 1;
const ADA = { username: 'ada', password: 'correct horse' };
/**
 * The specification's interface has pets and users beside locks: a merchant may store them, and they change no lock.
 */
const PET = { name: 'Rex', owner_id: '42', species: 'dog', breed: 'Beagle' };
/** A valid body of `PUT /v2/pet`. */
const CHANGE = { id: 1, name: 'Max', photoUrls: ['https://example.com/max.jpg'] };
const LOGIN = '/v2/user/login?username=ada&password=correct%20horse';
const PROBLEM = { headers: { 'content-type': /^application\/problem\+json/ } };

/** A statement of the specification, and its check. */
type SpecificationLine = readonly [statement: string, check: (t: Test, setup: SpecificationSetup) => Promise<void>];

const ENDPOINTS: readonly SpecificationLine[] = [
  [
    '1 POST /v1/pet: name required; owner_id, species, breed optional; 201, the pet',
    async (t, { gateway, key }) => {
      t.match(await callMerchantApi(gateway, '/v1/pet', { key, body: PET }), { status: 201, body: { id: 1, ...PET } });
      t.match(await callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'Rex' } }), {
        status: 201,
        body: { id: 2 },
      });
      const owner = { id: '7', name: 'Ada' };
      t.match(await callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'Rex', owner } }), {
        body: { owner_id: '7' },
      });
      t.match(await callMerchantApi(gateway, '/v1/pet', { key, body: { ...PET, owner } }), { status: 400, ...PROBLEM });
      for (const body of ['{', {}, { name: '' }, { name: 7 }, { name: 'a', species: 7 }])
        t.match(await callMerchantApi(gateway, '/v1/pet', { key, body }), { status: 400, ...PROBLEM });
    },
  ],
  [
    '2 PUT /v2/pet: name and photoUrls required, a bearer token; 200, the pet; 400; 404; 405',
    async (t, { gateway, key, token }) => {
      await callMerchantApi(gateway, '/v1/pet', { key, body: PET });
      const put = (body: unknown) => callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body });
      const completePet = {
        ...CHANGE,
        status: 'sold',
        category: { id: 1, name: 'Dogs' },
        tags: [{ id: 2, name: 'brown' }],
      };
      t.match(await put(completePet), { status: 200, body: completePet });
      for (const id of [undefined, 'x', 1.5, 0, -1]) t.match(await put({ ...CHANGE, id }), { status: 400, ...PROBLEM });
      t.match(await put({ ...CHANGE, id: 99 }), { status: 404, ...PROBLEM });
      for (const wrongMembers of [{ name: undefined }, { name: 7 }, { photoUrls: undefined }, { photoUrls: [7] }])
        t.match(await put({ ...CHANGE, ...wrongMembers }), { status: 405, headers: { allow: 'PUT' } });
      t.match(await put({ ...CHANGE, status: 'lost' }), { status: 405, headers: { allow: 'PUT' } });
    },
  ],
  [
    '3 GET /v2/user/login: username and password in the query; 200, a body of type string; 400',
    async (t, { gateway, key }) => {
      await callMerchantApi(gateway, '/v2/user/createWithList', { key, body: [ADA] });
      const answer = await callMerchantApi(gateway, LOGIN, { key });
      t.match(answer, { status: 200, body: /^logged in user session:/, headers: { 'x-rate-limit': /^\d+$/ } });
      t.match(answer.headers['x-expires-after'], /^\d{4}-\d\d-\d\dT.*Z$/);
      t.match(String(answer.headers['set-cookie']), /HttpOnly/);
      for (const query of ['username=ada&password=x', 'username=eve&password=x', 'username=ada', ''])
        t.match(await callMerchantApi(gateway, `/v2/user/login?${query}`, { key }), {
          status: 400,
          body: { detail: 'Invalid username/password supplied' },
        });
    },
  ],
  [
    '4 GET /v2/user/logout: no request; successful operation, no content; also where there was no session',
    async (t, { gateway, key }) => {
      t.match(await callMerchantApi(gateway, '/v2/user/logout', { key }), { status: 200, text: '' });
    },
  ],
  [
    '5 POST /v2/user/createWithList: an array of user objects; successful operation, no content',
    async (t, setup) => await assertCreatesUsers(t, setup, '/v2/user/createWithList'),
  ],
  [
    '6 POST /v2/user/createWithArray: the same shape as 5',
    async (t, setup) => await assertCreatesUsers(t, setup, '/v2/user/createWithArray'),
  ],
  [
    '7 POST /test_webhook: access_token and mac_addr; status "success" on success',
    async (t, { gateway, token, mac, receiver }) => {
      const sendTest = (members: object) =>
        callMerchantApi(gateway, '/test_webhook', { body: { access_token: token, mac_addr: mac, ...members } });
      t.match(await sendTest({}), { status: 200, body: { status: 'success', deliveries: [{ status: 204 }] } });
      t.match(await sendTest({ mac_addr: 'x' }), { status: 400, ...PROBLEM });
      t.match(await sendTest({ mac_addr: undefined }), { status: 400, ...PROBLEM });
      t.match(await sendTest({ access_token: 'x' }), { status: 401, ...PROBLEM });
      t.match(await sendTest({ mac_addr: formatMac(testMac(9)) }), { status: 404, ...PROBLEM });
      receiver.answer = (_request, response) => void response.writeHead(500).end();
      t.match(await sendTest({}), { status: 502, body: { status: 'error', deliveries: [{ status: 500 }] } });
      await gateway.webhooks.settings.remove(1);
      t.match(await sendTest({}), { status: 409, ...PROBLEM });
    },
  ],
  [
    'Rule 1: operation 7 triggers a test webhook to the merchant’s URLs, to confirm that they receive data',
    async (t, { gateway, token, mac, receiver }) => {
      await callMerchantApi(gateway, '/test_webhook', { body: { access_token: token, mac_addr: mac } });
      t.match(receiver.requests, [{ json: { test: true, mac_addr: mac } }]);
    },
  ],
  [
    'Rule 2: operation 4 ends the current logged-in user session',
    async (t, { gateway, key }) => {
      await callMerchantApi(gateway, '/v2/user/createWithList', { key, body: [ADA] });
      const session = String((await callMerchantApi(gateway, LOGIN, { key })).body).split(':')[1] ?? '';
      t.ok(await gateway.merchants.users.findSession(MERCHANT_ID, session), 'the session is valid before');
      await callMerchantApi(gateway, '/v2/user/logout', { key, headers: { 'x-session': session } });
      t.notOk(await gateway.merchants.users.findSession(MERCHANT_ID, session), 'the session ends at once');
    },
  ],
  [
    'Rule 3, not shown: the failure of operation 7 is a problem, or 502 with each URL’s answer (interfaces.md §2)',
    async (t, { gateway, token }) => {
      t.match(await callMerchantApi(gateway, '/test_webhook', { body: { access_token: token } }), {
        status: 400,
        ...PROBLEM,
      });
    },
  ],
];

const AUTHENTICATION: readonly SpecificationLine[] = [
  [
    '1 a request without an API key returns an error; keys are generated at any time',
    async (t, { gateway }) => {
      t.match(await callMerchantApi(gateway, '/v1/pet', { body: PET }), {
        status: 401,
        headers: { 'www-authenticate': /^Basic/ },
      });
      t.match(await callMerchantApi(gateway, '/v1/pet', { key: await apiKey(gateway, MERCHANT), body: PET }), {
        status: 201,
      });
    },
  ],
  [
    '2 a key is the user part of HTTP basic authentication with an empty password',
    async (t, { gateway, key }) => {
      const authorization = `Basic ${Buffer.from(`${key}:`).toString('base64')}`;
      t.match(await callMerchantApi(gateway, '/v1/pet', { headers: { authorization }, body: PET }), { status: 201 });
    },
  ],
  [
    '3 operation 2 is authorized with a bearer token in the header Authorization',
    async (t, { gateway, key, token }) => {
      await callMerchantApi(gateway, '/v1/pet', { key, body: PET });
      const headers = { authorization: `Bearer ${token}` };
      t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', headers, body: CHANGE }), { status: 200 });
      t.match(
        await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', key, body: CHANGE }),
        { status: 401 },
        'not with a key',
      );
    },
  ],
  [
    '4 operation 7 takes an access_token member in its body',
    async (t, { gateway, token, mac }) => {
      const body = { mac_addr: mac };
      t.match(await callMerchantApi(gateway, '/test_webhook', { body: { ...body, access_token: token } }), {
        status: 200,
      });
      t.match(await callMerchantApi(gateway, '/test_webhook', { token, body }), { status: 400 }, 'not in a header');
    },
  ],
  [
    '5 the session carrier, not described: the cookie, or the header X-Session (interfaces.md §2)',
    async (t, { gateway, key }) => {
      await callMerchantApi(gateway, '/v2/user/createWithList', { key, body: [ADA] });
      const cookie = String((await callMerchantApi(gateway, LOGIN, { key })).headers['set-cookie']).split(';')[0] ?? '';
      const session = cookie.split('=')[1] ?? '';
      t.ok(await gateway.merchants.users.findSession(MERCHANT_ID, session), 'the session is valid before');
      await callMerchantApi(gateway, '/v2/user/logout', { key, headers: { cookie } });
      t.notOk(await gateway.merchants.users.findSession(MERCHANT_ID, session), 'and ended by the logout');
    },
  ],
  [
    '6 how a bearer token is obtained, not shown: POST /oauth/token, client credentials (interfaces.md §2)',
    async (t, { gateway, key }) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const answer = await callMerchantApi(gateway, '/oauth/token', {
        key,
        headers,
        body: 'grant_type=client_credentials',
      });
      t.match(answer, { status: 200, body: { token_type: 'Bearer', expires_in: 3600, access_token: String } });
    },
  ],
  [
    '7 which operations require which scheme beyond that, not shown: a key for 1, 3, 4, 5 and 6 (interfaces.md §2)',
    async (t, { gateway }) => {
      for (const [route, body] of [[LOGIN], ['/v2/user/logout'], ['/v2/user/createWithList', []]] as const)
        t.match(await callMerchantApi(gateway, route, { body }), { status: 401, ...PROBLEM }, route);
      t.match(await callMerchantApi(gateway, '/v2/user/createWithArray', { body: [] }), { status: 401, ...PROBLEM });
    },
  ],
];

const ERRORS: readonly SpecificationLine[] = [
  [
    'PUT /v2/pet 400 Invalid ID supplied',
    async (t, { gateway, token }) =>
      void t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: { ...CHANGE, id: 'x' } }), {
        status: 400,
        body: { detail: 'Invalid ID supplied' },
      }),
  ],
  [
    'PUT /v2/pet 404 Pet not found',
    async (t, { gateway, token }) =>
      void t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: CHANGE }), {
        status: 404,
        body: { detail: 'Pet not found' },
      }),
  ],
  [
    'PUT /v2/pet 405 Validation exception',
    async (t, { gateway, token }) =>
      void t.match(await callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: { id: 1 } }), {
        status: 405,
        body: { detail: 'Validation exception' },
      }),
  ],
  [
    'GET /v2/user/login 400 Invalid username/password supplied',
    async (t, { gateway, key }) =>
      void t.match(await callMerchantApi(gateway, LOGIN, { key }), {
        status: 400,
        body: { detail: 'Invalid username/password supplied' },
      }),
  ],
  [
    'any request without API key: an error is returned',
    async (t, { gateway }) => void t.match(await callMerchantApi(gateway, LOGIN), { status: 401, ...PROBLEM }),
  ],
];

for (const [part, lines] of Object.entries({ Endpoints: ENDPOINTS, Authentication: AUTHENTICATION, Errors: ERRORS }))
  for (const [statement, check] of lines) t.test(`${part}: ${statement}`, async (t) => await check(t, await setUp(t)));

/** Asserts that this route, one of two for the same, creates lists of users and refuses wrong ones as a whole. */
async function assertCreatesUsers(t: Test, { gateway, key }: SpecificationSetup, route: string): Promise<void> {
  const create = (body: unknown) => callMerchantApi(gateway, route, { key, body });
  const completeUser = {
    id: 5,
    ...ADA,
    firstName: 'A',
    lastName: 'L',
    email: 'a@example.com',
    phone: '1',
    userStatus: 1,
  };
  t.match(await create([completeUser, {}]), { status: 200, text: '' });
  for (const body of [{}, [7], [{ id: 'x' }], [{}, { userStatus: 2 ** 31 }]])
    t.match(await create(body), { status: 400, ...PROBLEM });
  t.match(await create([{}, { userStatus: 'x' }]), { body: { errors: [{ pointer: '/1/userStatus' }] } });
  for (const body of [[{ username: 'ada' }], [{ id: 5 }], [{ username: 'bo' }, { username: 'bo' }]])
    t.match(await create(body), { status: 409, ...PROBLEM });
  t.match(await create(Array.from({ length: 1001 }, () => ({}))), { status: 413, ...PROBLEM });
}
