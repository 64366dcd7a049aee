/**
 * The OpenAPI document of the operators' interface: it is valid and has every served route; and a third-party validator
 * compares every answer with it, refusing undocumented members.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import t from 'tap';
import { DEFAULT_FAIRNESS } from '../../../gateway/fairness/fairness-settings.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { OPERATOR_ROUTES } from '../../../gateway/http/operator/server.js';
import type { VersionedJudge } from '../../../gateway/ingest/judging.js';
import { systemClock } from '../../../proto/clock.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { validateOpenapi } from '../../clients/openapi-tools.js';
import { callOperator, type OperatorAnswer } from '../../helpers/cli/operator-call.js';
import {
  MERCHANT,
  openGateway,
  testBytes,
  testGateway,
  testMac,
  waitForEvents,
} from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** An operation of the OpenAPI document, as far as this test reads it. */
interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: object }>> }>
  >;
}

interface ApiDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly security: readonly object[];
}

async function documentOf(gateway: Gateway): Promise<ApiDocument> {
  return (await callOperator(gateway, 'GET', '/openapi.json')).body as ApiDocument;
}

t.test('the document is valid, and has every route with its parameters and body', async (t) => {
  const gateway = await testGateway(t);
  const document = await documentOf(gateway);
  t.match(await validateOpenapi(document), { valid: true });
  t.match(document, { openapi: /^3\.1/, security: [{ operatorToken: [] }] });
  const served = OPERATOR_ROUTES.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);
  /** Routes with GET that are not in the table OPERATOR_ROUTES: streams, files, and calls without a token. */
  const otherPaths = [
    '/events',
    '/stream',
    '/trace',
    '/trace/live',
    '/healthz',
    '/readyz',
    '/metrics',
    '/backup',
    '/openapi.json',
  ];
  const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  t.same(documented.sort(), [...served, ...otherPaths.map((path) => `GET ${path}`), 'POST /console/links'].sort());
  const ids = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map((each) => each.operationId),
  );
  t.equal(new Set(ids).size, ids.length);
  // A list with pages, a path with two parameters, and a route with a body.
  t.match(document.paths['/audit']?.get, {
    parameters: [
      { name: 'since', in: 'query', required: false },
      {},
      {},
      {},
      { schema: { maximum: 500, default: 50 } },
      { name: 'cursor' },
    ],
    responses: { 200: { headers: { link: {} } } },
  });
  t.match(document.paths['/devices/{mac}/phones/{name}']?.delete, {
    parameters: [
      { name: 'mac', in: 'path', required: true },
      { name: 'name', in: 'path', required: true },
    ],
  });
  t.match(document.paths['/merchants']?.post, {
    requestBody: { required: true, content: { 'application/json': { schema: { required: ['name'] } } } },
    responses: { 201: {}, 400: {}, 401: {}, 409: {} },
  });
});

/** A schema of the document, changed so that it also refuses members that it does not name. */
function closeSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closeSchema);
  if (typeof schema !== 'object' || schema === null) return schema;
  const members = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closeSchema(value)]));
  const isOpen = members.type === 'object' && members.additionalProperties === undefined;
  return isOpen ? { ...members, additionalProperties: false } : members;
}

type Call = readonly [method: 'GET' | 'POST' | 'PATCH' | 'DELETE', route: string, path?: string, body?: object];

const MAC = 'A4C138000001';

/**
 * A call of every route, in an order in which each finds what earlier ones made; some routes are called again for
 * another answer. In a path, EVENT and KEY stand for the id of a delivered event and of the created API key. The test
 * itself makes lock MAC and webhook URL 1; the other numbers are the ids that the store gives to what the calls make.
 */
const CALLS: readonly Call[] = [
  ['GET', '/status'],
  ['GET', '/config'],
  ['GET', '/clock'],
  ['POST', '/clock/confirm', '/clock/confirm'],
  ['POST', '/merchants', '/merchants', { name: 'Blue' }],
  ['GET', '/merchants'],
  ['POST', '/merchants/{name}', '/merchants/Blue', { name: 'Blue' }],
  ['POST', '/merchants/{name}/close', '/merchants/Blue/close'],
  ['GET', '/merchants', '/merchants?all=true'],
  ['POST', '/merchants/{name}/reopen', '/merchants/Blue/reopen'],
  ['POST', '/merchants/{name}', '/merchants/Blue', { notify_url: 'http://127.0.0.1:9/' }],
  ['POST', '/merchants/{name}/rotate-notify-secret', '/merchants/Blue/rotate-notify-secret', { grace_seconds: 60 }],
  ['POST', '/merchants/{name}/test-notify', '/merchants/Blue/test-notify'],
  ['GET', '/merchants'],
  ['GET', '/devices'],
  ['GET', '/devices/{mac}', `/devices/${MAC}`],
  ['GET', '/devices/{mac}/history', `/devices/${MAC}/history`],
  ['GET', '/devices/{mac}/pings', `/devices/${MAC}/pings?limit=1`],
  ['GET', '/devices/{mac}/track', `/devices/${MAC}/track?since=2026-11-01T00:00:00Z`],
  ['GET', '/devices/{mac}/findings', `/devices/${MAC}/findings`],
  ['GET', '/findings', '/findings?limit=1'],
  ['POST', '/devices', '/devices', { mac: 'A4C138F0E1D2', merchant: 'Blue' }],
  ['GET', '/devices/{mac}', '/devices/A4C138F0E1D2'],
  ['POST', '/devices/import', '/devices/import', { devices: [{ mac: 'A4C138F0E1D3', merchant: 'Blue' }] }],
  ['PATCH', '/devices/{mac}', '/devices/A4C138F0E1D2', { simulated: true }],
  ['POST', '/devices/{mac}/rotate-secret', '/devices/A4C138F0E1D2/rotate-secret'],
  [
    'POST',
    '/devices/{mac}/phones',
    '/devices/A4C138F0E1D2/phones',
    { name: 'Ada', expires_at: '2100-01-01T00:00:00Z' },
  ],
  ['GET', '/devices/{mac}/phones', '/devices/A4C138F0E1D2/phones'],
  ['DELETE', '/devices/{mac}/phones/{name}', '/devices/A4C138F0E1D2/phones/Ada'],
  ['GET', '/devices/{mac}/phones', '/devices/A4C138F0E1D2/phones'],
  ['GET', '/webhooks'],
  ['GET', '/deliveries'],
  ['POST', '/devices/{mac}/test-webhook', `/devices/${MAC}/test-webhook`, {}],
  ['POST', '/events/{id}/resend', '/events/EVENT/resend', {}],
  ['POST', '/deliveries/recover', '/deliveries/recover', { since: '2020-01-01T00:00:00Z' }],
  ['POST', '/webhooks', '/webhooks', { url: 'http://127.0.0.1:9/', merchant: 'Blue', headers: { 'X-Team': 'b' } }],
  ['GET', '/webhooks/{id}', '/webhooks/2'],
  ['GET', '/webhooks/{id}/hours', '/webhooks/2/hours'],
  ['POST', '/webhooks/{id}', '/webhooks/2', { state: 'disabled' }],
  ['POST', '/webhooks/{id}/rotate-secret', '/webhooks/2/rotate-secret', { grace_seconds: 60 }],
  ['POST', '/webhooks/{id}/remove', '/webhooks/2/remove'],
  [
    'POST',
    '/commands',
    '/commands',
    { macs: ['A4C138F0E1D2', 'A4C138F0E1D3'], type: 'siren', parameters: { seconds: 3 } },
  ],
  ['GET', '/commands'],
  ['GET', '/commands/{id}', '/commands/1'],
  ['POST', '/commands/{id}/cancel', '/commands/1/cancel'],
  ['GET', '/merchants/{name}/fleet', '/merchants/Blue/fleet'],
  ['POST', '/usage/plans', '/usage/plans', { merchant: 'Blue', per_mb: '0.12', per_sim: '0.80', currency: 'EUR' }],
  ['GET', '/usage/plans'],
  ['GET', '/usage'],
  ['POST', '/usage/close', '/usage/close', {}],
  ['GET', '/usage/statements'],
  ['POST', '/keys', '/keys', { name: 'till', merchant: 'Blue' }],
  ['GET', '/keys'],
  ['POST', '/keys/{id}/revoke', '/keys/KEY/revoke'],
  ['POST', '/tokens', '/tokens', { name: 'till', role: 'read', expires_at: '2100-01-01T00:00:00Z' }],
  ['GET', '/tokens'],
  ['POST', '/tokens/{name}/revoke', '/tokens/till/revoke'],
  ['POST', '/users', '/users', { username: 'ada', merchant: 'Blue', password: 'x' }],
  ['GET', '/users', '/users?merchant=Blue'],
  ['PATCH', '/users/{name}', '/users/ada', { merchant: 'Blue', dashboard: 'staff' }],
  [
    'POST',
    '/invitations',
    '/invitations',
    { merchant: 'Blue', dashboard: 'owner', expires_at: new Date(systemClock.now() + 3_600_000).toISOString() },
  ],
  ['GET', '/invitations', '/invitations?merchant=Blue'],
  ['DELETE', '/invitations/{id}', '/invitations/1?merchant=Blue'],
  ['DELETE', '/users/{name}', '/users/ada?merchant=Blue'],
  ['GET', '/notices'],
  ['GET', '/why', `/why?id=${MAC}`],
  ['GET', '/why', '/why?id=EVENT'],
  ['POST', '/notices/read', '/notices/read', { all: true }],
  ['POST', '/notices/rotate-secret', '/notices/rotate-secret', {}],
  ['POST', '/notices/test', '/notices/test'],
  ['GET', '/audit'],
  ['POST', '/devices/{mac}/rejudge', `/devices/${MAC}/rejudge`],
  ['POST', '/devices/{mac}/reflashed', '/devices/A4C138F0E1D2/reflashed', { at: '2026-11-20T06:00:00Z' }],
  ['POST', '/devices/{mac}/erase', '/devices/A4C138F0E1D2/erase'],
  ['DELETE', '/devices/{mac}', '/devices/A4C138F0E1D2'],
  ['GET', '/healthz'],
  ['GET', '/readyz'],
];

/** A judge that fails at the first uplink (a lock's message), so that `rejudge` has an uplink to judge again. */
function failingOnce(): VersionedJudge {
  let hasFailed = false;
  const judge: VersionedJudge['judge'] = (model, belief, event, out) => {
    const fails = !hasFailed && event.type === 'uplink';
    hasFailed ||= fails;
    if (fails) throw new Error('a mistake of ours');
    judgeInPlace(model, belief, event, out);
  };
  return { judge, version: '1.0.0' };
}

t.test('every answer matches the document', async (t) => {
  const gateway = await testGateway(t, { judging: failingOnce() }, { notifyUrl: 'http://127.0.0.1:9/' });
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ merchant: MERCHANT, url: receiver.url });
  const delivered = waitForEvents(gateway, 'delivery', 1);
  const lock = await connectedLock(t, gateway, testMac(1));
  await lock.send(testBytes(1));
  const eventId = (await delivered)[0]?.eventId ?? '';
  // Makes a notice, so that the list of notices is not empty.
  gateway.events.emit('url-disabled', { atMs: 0, urlId: 7, why: 'gone' });
  const { paths } = await documentOf(gateway);
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  // The package's types say that the function is the module's default export; Node loads the function itself.
  (formats as unknown as (to: Ajv2020) => void)(ajv);
  const check = (method: string, route: string, { status, type = '', body }: OperatorAnswer): unknown => {
    const operation = paths[route]?.[method.toLowerCase()];
    const schema = operation?.responses[status]?.content[type.split(';', 1)[0] ?? '']?.schema;
    if (schema === undefined) return `${status} ${type} is not documented`;
    const isDocumented = ajv.compile(closeSchema(schema) as object);
    return isDocumented(body) ? 'as documented' : { errors: ajv.errorsText(isDocumented.errors), body };
  };
  const called = new Set<string>();
  let key = '';
  for (const [method, route, path = route, body] of CALLS) {
    const answer = await callOperator(gateway, method, path.replace('EVENT', eventId).replace('KEY', key), body);
    if (route === '/keys' && method === 'POST') key = (answer.body as { id: string }).id;
    t.ok(
      answer.status < 300,
      `${method} ${path}: ${answer.status} ${answer.status < 300 ? '' : JSON.stringify(answer.body)}`,
    );
    t.equal(check(method, route, answer), 'as documented', `${method} ${path}`);
    called.add(`${method} ${route}`);
  }
  const served = OPERATOR_ROUTES.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);
  t.same(
    served.filter((route) => !called.has(route)),
    [],
    'every route was called',
  );
  const problem = { $ref: '#/components/schemas/Problem' };
  t.match(paths['/devices/{mac}']?.get?.responses[404], {
    content: { 'application/problem+json': { schema: problem } },
  });
  t.match(await callOperator(gateway, 'GET', '/devices/A4C138F0E1FF'), {
    status: 404,
    type: 'application/problem+json',
  });
});

t.test('a full quota is refused with 429, which the document has', async (t) => {
  const fairness = { ...DEFAULT_FAIRNESS, quota: { ...DEFAULT_FAIRNESS.quota, users: 1 } };
  const gateway = await openGateway(t, tempFolder(t), {}, { fairness });
  await gateway.accounts.addMerchant(MERCHANT);
  const add = (username: string) => callOperator(gateway, 'POST', '/users', { username, merchant: MERCHANT });
  t.match(await add('ada'), { status: 201 });
  t.match(await add('bo'), { status: 429, body: { code: 'quota-full', budget: 'users' } });
  const { paths } = await documentOf(gateway);
  const refused = { content: { 'application/problem+json': {} }, headers: { 'retry-after': {} } };
  // A route with a quota, and one with a budget.
  for (const route of ['/users', '/devices/{mac}/test-webhook'])
    t.match(paths[route]?.post?.responses, { 429: refused }, route);
});
