/**
 * The documentation of the merchants' interface: its OpenAPI document, its page, docs/http.md, and third-party clients
 * and testers that use only the document (interfaces.md §2). Prism's proxy compares each answer's status and shape with
 * the document. The routes tested here are those of the service specification, some of which are operations of the
 * public Petstore example: pets, and users with their sessions.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { MAX_GUESSES } from '../../../gateway/accounts/login-guard.js';
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import { INVITATION_ROUTES } from '../../../gateway/http/merchant/invitation-routes.js';
import { OWN_DATA_ROUTES } from '../../../gateway/http/merchant/own-data/routes.js';
import { HTTP_ROUTES } from '../../../gateway/http/merchant/routes.js';
import { TESTS_PER_MINUTE } from '../../../gateway/webhooks/webhook-test.js';
import { ManualClock } from '../../../proto/clock.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { petstoreClient, prismProgram, validateOpenapi } from '../../clients/openapi-tools.js';
import { Program, runProgram } from '../../helpers/cli/program.js';
import { MERCHANT, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { type TestReceiver, testReceiver } from '../../helpers/gateway/test-receiver.js';
import { root } from '../../helpers/house/our-files.js';
import { freePort } from '../../helpers/http/free-port.js';
import { accessToken, apiKey, basicAuthorization, callMerchantApi } from '../../helpers/http/merchant-call.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** The routes that own-data/document.slow.test.ts and invitations.test.ts call. */
const OTHER_ROUTES: readonly unknown[] = [...OWN_DATA_ROUTES, ...INVITATION_ROUTES];
/** The routes that this test calls: the operations of the specification. */
const SPEC_ROUTES = HTTP_ROUTES.filter((route) => !OTHER_ROUTES.includes(route));

/** An operation of the OpenAPI document, as far as this test reads it. */
interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, unknown>>;
}

/** The OpenAPI document, as far as these tests read it. */
interface ApiDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

async function documentOf(gateway: Gateway): Promise<ApiDocument> {
  return (await callMerchantApi(gateway, '/openapi.json')).body as ApiDocument;
}

/** Starts a gateway with a merchant, a lock, an API key, and a receiver for its webhook URL. */
async function setUpGateway(
  t: Test,
  options: GatewayOptions = {},
): Promise<{ gateway: Gateway; key: string; mac: string; receiver: TestReceiver }> {
  const gateway = await testGateway(t, options);
  const receiver = await testReceiver(t);
  const mac = testMac(1);
  await gateway.accounts.addDevice({ merchant: MERCHANT, mac });
  await gateway.accounts.addWebhookUrl({ merchant: MERCHANT, url: receiver.url });
  return { gateway, key: await apiKey(gateway, MERCHANT), mac: formatMac(mac), receiver };
}

t.test('the document is valid OpenAPI, and has exactly the served routes', async (t) => {
  const gateway = await testGateway(t);
  const answer = await callMerchantApi(gateway, '/openapi.json');
  t.match(answer, { status: 200, headers: { 'content-type': /^application\/json/ } });
  const document = answer.body as ApiDocument;
  t.match(await validateOpenapi(document), { valid: true });
  const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, responses }]) => {
      return [`${method.toUpperCase()} ${path}`, operationId, Object.keys(responses).sort().join(' ')];
    }),
  );
  const served = HTTP_ROUTES.map(({ method, path, operationId, responses }) => {
    // A fault of the gateway itself, which each route of the document may answer with, though none declares it.
    const statuses = [...Object.keys(responses), '500'].sort().join(' ');
    return [`${method} ${path}`, operationId, statuses];
  });
  t.strictSame(documented.sort(), served.sort());
  const named = ['NewPet', 'ChangedPet', 'Pet', 'User', 'Problem', 'Token', 'TestRequest', 'TestResult'];
  const types = Object.keys(document.components.schemas);
  for (const name of named) t.ok(types.includes(name), `generated clients get the type ${name}`);
});

t.test('the page loads everything from the gateway’s port', async (t) => {
  const gateway = await testGateway(t);
  const page = await callMerchantApi(gateway, '/docs');
  t.match(page, { status: 200, headers: { 'content-type': /^text\/html/, 'x-content-type-options': 'nosniff' } });
  t.match(page.headers['content-security-policy'], /default-src 'self'/);
  t.notMatch(
    page.headers['content-security-policy'],
    /https?:|upgrade-insecure|[a-z]\.[a-z]/,
    'its policy forbids other sources',
  );
  const links = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);
  t.ok(links.length > 3, 'the page has scripts and styles');
  for (const link of links) {
    t.notMatch(link, /^(https?:)?\/\//, link);
    const path = new URL(link, 'http://here/docs/').pathname;
    t.match(await callMerchantApi(gateway, path), { status: 200 }, path);
  }
  t.same(
    (await callMerchantApi(gateway, '/docs/json')).body,
    await documentOf(gateway),
    'the page’s document is /openapi.json',
  );
});

/** The sections of docs/http.md by their second-level headings. */
function sectionsOf(text: string): Map<string, string> {
  const [, ...sections] = text.split(/^## /m);
  return new Map(sections.map((section) => [section.slice(0, section.indexOf('\n')), section]));
}

/** docs/http.md up to the section about the merchant's own data. */
const [page = ''] = readFileSync(join(root, 'docs/http.md'), 'utf8').split('## The merchant’s own data\n');

t.test('docs/http.md has a table with exactly the statuses of each route', async (t) => {
  const sections = sectionsOf(page);
  for (const { method, path, responses } of SPEC_ROUTES) {
    const section = sections.get(`${method} ${path}`) ?? '';
    const rows = [...section.matchAll(/^\| (\d+) \| (.+) \|$/gm)].map(([, status, when]) => [status, when]);
    const expected = Object.entries(responses).map(([status, { description }]) => [status, description]);
    t.strictSame(rows, expected, `${method} ${path}`);
  }
  const documented = [...sections.keys()].filter((heading) => /^[A-Z]+ \//.test(heading));
  t.equal(documented.length, SPEC_ROUTES.length);
});

/** Matches an example: a block of `sh`, its output in a block of `json` if shown, and the first status of its table. */
const EXAMPLE_FORM = /^```sh\n([^`]+)\n```\n(?:\n```json\n([^`]+)\n```\n)?(?:\n\| status[^\n]*\n[^\n]*\n\| (\d+) )?/gm;

const NO_CURL = spawnSync('curl', ['--version']).error === undefined ? false : 'curl is not installed';

t.test('the examples of docs/http.md get the documented answers', { skip: NO_CURL }, async (t) => {
  const { gateway, key, receiver } = await setUpGateway(t);
  const folder = tempFolder(t);
  // curl prints the status last, on a separate line, whatever the example requests.
  writeFileSync(join(folder, '.curlrc'), 'silent\nshow-error\nwrite-out = "\\n%{http_code}\\n"\n');
  let token = '';
  let session = '';
  const examples = [...page.matchAll(EXAMPLE_FORM)];
  t.equal(examples.length, SPEC_ROUTES.length + 1, 'an example for each route, and one error');
  // The example without a table shows an error.
  for (const [, script = '', exampleOutput = '', status = '400'] of examples) {
    const env = { BASE: `http://127.0.0.1:${gateway.httpPort}`, KEY: key, TOKEN: token, CURL_HOME: folder };
    const filledScript = script.replace('lgu_…', session).replace(DOCUMENTED_MAC, formatMac(testMac(1)));
    const { stdout } = await runProgram(t, 'bash', ['-c', filledScript], env);
    const answered = stdout.at(-1);
    const body = stdout.slice(0, -1).join('\n');
    t.equal(answered, status, script);
    t.match(
      body === '' ? '' : JSON.parse(body),
      exampleOutput === '' ? '' : asPattern(JSON.parse(exampleOutput)),
      script,
    );
    token = /lgt_[\w-]+/.exec(body)?.[0] ?? token;
    session = /lgu_[\w-]+/.exec(body)?.[0] ?? session;
  }
  t.equal(receiver.requests.length, 1, 'the test webhook arrived');
});

const DOCUMENTED_MAC = 'A4:C1:38:F0:E1:D2';

/**
 * An example's output as a pattern, in which secrets, ports and durations match any value of their form. The examples
 * have `…` for the 43 random characters of a secret.
 */
function asPattern(exampleOutput: unknown): unknown {
  if (Array.isArray(exampleOutput)) return exampleOutput.map(asPattern);
  if (typeof exampleOutput === 'string')
    return exampleOutput.includes('…')
      ? new RegExp(`^${exampleOutput.replace('…', '[\\w-]{43}')}$`)
      : exampleOutput.replace(/^http:\/\/127.0.0.1:9000$/, 'http://127.0.0.1:');
  if (typeof exampleOutput !== 'object' || exampleOutput === null) return exampleOutput;
  return Object.fromEntries(
    Object.entries(exampleOutput).map(([name, value]) => [
      name,
      name === 'duration_ms' ? Number : name === 'origin' ? /^http:\/\/127\.0\.0\.1:\d+$/ : asPattern(value),
    ]),
  );
}

/** An answer as Prism forwarded it. */
interface ProxiedAnswer {
  readonly status: number;
  readonly violations: string;
}

/** Starts Prism's proxy in front of the gateway, which compares every answer with the document. */
async function startPrism(t: Test, gateway: Gateway): Promise<string> {
  const file = join(tempFolder(t), 'openapi.json');
  writeFileSync(file, JSON.stringify(await documentOf(gateway)));
  const port = await freePort();
  const flags = ['--errors', '--validate-request', 'false', '--port', String(port)];
  const args = [prismProgram(), 'proxy', file, `http://127.0.0.1:${gateway.httpPort}`, ...flags];
  const proxy = new Program(t, process.execPath, args);
  await proxy.waitForLine(/Prism is listening/);
  return `http://127.0.0.1:${port}`;
}

t.test('Prism finds no status and no shape that the document lacks', async (t) => {
  // Budgets do not refill during the test.
  const { gateway, key, mac, receiver } = await setUpGateway(t, { httpBudgetClock: new ManualClock() });
  const proxy = await startPrism(t, gateway);
  const answeredStatuses = new Set<string>();
  const callRoute = async (route: string, options: RequestInit & { query?: string } = {}): Promise<ProxiedAnswer> => {
    const [method = '', path = ''] = route.split(' ');
    const answer = await fetch(`${proxy}${path}${options.query ?? ''}`, { method, ...options });
    await answer.arrayBuffer();
    const violations = answer.headers.get('sl-violations') ?? '';
    t.equal(violations, '', `${route} ${answer.status}`);
    answeredStatuses.add(`${route} ${answer.status}`);
    return { status: answer.status, violations };
  };
  await callEveryStatus(callRoute, { gateway, key, mac, receiver });
  await exceedEveryBudget(callRoute, gateway, key);
  const missingStatuses = SPEC_ROUTES.flatMap(({ method, path, responses }) =>
    Object.keys(responses)
      .map((status) => `${method} ${path} ${status}`)
      // These need a gateway that starts, stops or fails.
      .filter((each) => !answeredStatuses.has(each) && !each.endsWith(' 503')),
  );
  t.strictSame(
    missingStatuses,
    [],
    'every documented status was seen, except those of a starting, stopping or failing gateway',
  );
});

type CallRoute = (route: string, options?: RequestInit & { query?: string }) => Promise<ProxiedAnswer>;

/** Calls each route with each of its statuses as the answer. */
async function callEveryStatus(callRoute: CallRoute, setup: Awaited<ReturnType<typeof setUpGateway>>): Promise<void> {
  const { gateway, key, mac, receiver } = setup;
  const json = { 'content-type': 'application/json' };
  const withKey = { ...json, authorization: basicAuthorization(key) };
  const form = { authorization: basicAuthorization(key), 'content-type': 'application/x-www-form-urlencoded' };
  const token = await accessToken(gateway, key);
  const bearer = { ...json, authorization: `Bearer ${token}` };
  const tooLongBody = JSON.stringify({ name: 'x'.repeat(1024 * 1024) });
  const body = (value: unknown): string => JSON.stringify(value);

  for (const route of ['GET /healthz', 'GET /readyz']) await callRoute(route);
  await callWithoutScope(callRoute, gateway);
  await callRoute('POST /oauth/token', { headers: form, body: 'grant_type=client_credentials' });
  await callRoute('POST /oauth/token', { headers: form, body: 'grant_type=password' });
  await callRoute('POST /oauth/token', { headers: { 'content-type': form['content-type'] }, body: 'grant_type=x' });
  await callRoute('POST /oauth/token', { headers: withKey, body: '{}' });
  await callRoute('POST /oauth/token', { headers: form, body: 'x'.repeat(1024 * 1024 + 1) });

  const pet = { name: 'Rex', owner_id: '42', species: 'dog', breed: 'Beagle' };
  const change = { id: 1, name: 'Rex', photoUrls: ['a'], status: 'sold', category: { id: 1 }, tags: [{ name: 'b' }] };
  for (const value of [pet, { name: 'Rex' }, { name: '' }])
    await callRoute('POST /v1/pet', { headers: withKey, body: body(value) });
  for (const value of [change, { ...change, id: 0 }, { ...change, id: 99 }, { id: 1 }])
    await callRoute('PUT /v2/pet', { headers: bearer, body: body(value) });
  const testsOnly = { ...json, authorization: `Bearer ${await accessToken(gateway, key, 'webhooks:test')}` };
  await callRoute('PUT /v2/pet', { headers: testsOnly, body: body(change) });

  const lists = ['POST /v2/user/createWithList', 'POST /v2/user/createWithArray'];
  for (const [index, route] of lists.entries()) {
    const user = { id: index + 1, username: `ada${index}`, password: 'correct horse', userStatus: 1 };
    for (const value of [[user], [user], [{ id: 'x' }], {}])
      await callRoute(route, { headers: withKey, body: body(value) });
  }
  for (const route of [...lists, 'POST /v1/pet', 'PUT /v2/pet']) {
    const headers = route === 'PUT /v2/pet' ? bearer : withKey;
    await callRoute(route, { headers: json, body: '[]' });
    await callRoute(route, { headers: { ...headers, 'content-type': 'application/xml' }, body: '<x/>' });
    await callRoute(route, { headers, body: tooLongBody });
  }

  const login = 'GET /v2/user/login';
  await callRoute(login, { headers: withKey, query: '?username=ada0&password=correct%20horse' });
  await callRoute(login, { query: '?username=ada0&password=x' });
  for (let guess = 0; guess <= MAX_GUESSES; guess += 1)
    await callRoute(login, { headers: withKey, query: '?username=ada0&password=wrong' });
  await callRoute('GET /v2/user/logout', { headers: { ...withKey, 'x-session': 'x' } });
  await callRoute('GET /v2/user/logout');

  await callTestWebhooks(callRoute, { json, token, mac, receiver, tooLongBody, gateway, key });
}

/** Calls each route that takes an API key with a key that lacks these routes' scope, `spec`. */
async function callWithoutScope(callRoute: CallRoute, gateway: Gateway): Promise<void> {
  const { text } = await gateway.merchants.apiKeys.create(MERCHANT, 'map', { scopes: ['locks:read'] });
  for (const { method, path, scheme } of SPEC_ROUTES)
    if (scheme === 'api-key')
      await callRoute(`${method} ${path}`, { headers: { authorization: basicAuthorization(text) } });
}

/**
 * Calls, as a caller whose budget is exhausted, each route that has only the common limits. Logins and test webhooks
 * have narrower ones, which {@link callEveryStatus} exceeds.
 */
async function exceedEveryBudget(callRoute: CallRoute, gateway: Gateway, key: string): Promise<void> {
  const authorization = basicAuthorization(key);
  const bearer = `Bearer ${await accessToken(gateway, key)}`;
  const { budgets } = gateway.merchants;
  // Requests of the merchant 1 without a body (0 bytes), and calls without a key for the state of the gateway.
  spend(() => budgets.takeRequest(1, 0));
  spend(() => budgets.takeStranger('127.0.0.1', 'probe'));
  for (const route of ['GET /healthz', 'GET /readyz']) await callRoute(route);
  for (const route of ['POST /v1/pet', 'POST /oauth/token']) await callRoute(route, { headers: { authorization } });
  for (const path of ['createWithList', 'createWithArray'])
    await callRoute(`POST /v2/user/${path}`, { headers: { authorization } });
  await callRoute('GET /v2/user/logout', { headers: { authorization } });
  await callRoute('PUT /v2/pet', { headers: { authorization: bearer } });
}

/** Calls `take` until it throws, which means that the budget is exhausted. */
function spend(take: () => void): void {
  try {
    for (;;) take();
  } catch {
    // The budget is exhausted.
  }
}

/** Calls POST /test_webhook with each of its statuses as the answer. Removes the webhook URL at the end. */
async function callTestWebhooks(
  callRoute: CallRoute,
  setup: {
    json: Record<string, string>;
    token: string;
    mac: string;
    receiver: TestReceiver;
    tooLongBody: string;
    gateway: Gateway;
    key: string;
  },
): Promise<void> {
  const { json: headers, token, mac, receiver, tooLongBody, gateway, key } = setup;
  const route = 'POST /test_webhook';
  const sendTest = (members: Record<string, unknown>): Promise<ProxiedAnswer> =>
    callRoute(route, { headers, body: JSON.stringify({ access_token: token, mac_addr: mac, ...members }) });
  await sendTest({});
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  await sendTest({});
  await sendTest({ mac_addr: 'x' });
  await sendTest({ mac_addr: formatMac(testMac(2)) });
  await sendTest({ access_token: 'x' });
  await sendTest({ access_token: await accessToken(gateway, key, 'pets:write') });
  await callRoute(route, { headers: { 'content-type': 'application/xml' }, body: '<x/>' });
  await callRoute(route, { headers, body: tooLongBody });
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  for (let sent = 0; sent <= TESTS_PER_MINUTE; sent += 1) await sendTest({});
  await gateway.webhooks.settings.remove(1);
  await sendTest({});
}

t.test('a client generated from the public Petstore document gets the answers of that document', async (t) => {
  const gateway = await testGateway(t);
  const key = await apiKey(gateway, MERCHANT);
  const token = await accessToken(gateway, key, 'pets:write');
  const client = await petstoreClient(`127.0.0.1:${gateway.httpPort}`, {
    authorizations: { petstore_auth: { token: { access_token: token } } },
    requestInterceptor: (request: { headers: Record<string, string> }) => {
      request.headers.authorization ??= basicAuthorization(key);
      return request;
    },
  });
  const { pet = {}, user = {} } = client.apis;
  await callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'Rex' } });
  /** The status with which the client's call fails; 0 if it succeeds. */
  const statusOfFailure = (promise: Promise<unknown> | undefined): Promise<number> =>
    Promise.resolve(promise).then(
      () => 0,
      (error: { status?: number }) => error.status ?? -1,
    );

  // The client returns an empty body without a content type as a Blob.
  const expectEmptyBody = (answer: { status: number; text: unknown } | undefined): void => {
    t.same([answer?.status, (answer?.text as Blob | undefined)?.size], [200, 0]);
  };

  const change = { id: 1, name: 'Max', photoUrls: ['https://example.com/max.jpg'], status: 'sold' };
  t.match(await pet.updatePet?.({ body: change }), { status: 200, body: change });
  t.equal(await statusOfFailure(pet.updatePet?.({ body: { ...change, id: 'x' } })), 400, 'Invalid ID supplied');
  t.equal(await statusOfFailure(pet.updatePet?.({ body: { ...change, id: 99 } })), 404, 'Pet not found');
  t.equal(await statusOfFailure(pet.updatePet?.({ body: { id: 1, photoUrls: [] } })), 405, 'Validation exception');

  const ada = { id: 10, username: 'ada', firstName: 'Ada', lastName: 'L', email: 'a@example.com', userStatus: 0 };
  expectEmptyBody(await user.createUsersWithArrayInput?.({ body: [{ ...ada, password: 'x y' }] }));
  expectEmptyBody(await user.createUsersWithListInput?.({ body: [{ username: 'bo' }] }));
  const loginAnswer = await user.loginUser?.({ username: 'ada', password: 'x y' });
  t.match(loginAnswer, { status: 200, body: /^logged in user session:/ });
  t.match((loginAnswer as unknown as { headers: object }).headers, {
    'x-rate-limit': /^\d+$/,
    'x-expires-after': /Z$/,
  });
  t.equal(await statusOfFailure(user.loginUser?.({ username: 'ada', password: 'y' })), 400);
  expectEmptyBody(await user.logoutUser?.({}));
});
