/**
 * An HTTP port with as many connections as it may have: which connections make room for new ones, and the places and
 * file descriptors reserved for probes (/healthz, /readyz) and operators.
 */
import type { Socket } from 'node:net';
import t from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import { DEFAULT_FAIRNESS } from '../../../gateway/fairness/fairness-settings.js';
import { HttpBudgets } from '../../../gateway/fairness/http-budgets.js';
import { Health } from '../../../gateway/health/health.js';
import { HttpConnections } from '../../../gateway/http/connections/connections.js';
import { type OpenConnection, Places } from '../../../gateway/http/connections/places.js';
import { HttpServer } from '../../../gateway/http/merchant/server.js';
import { MAX_CONNECTIONS } from '../../../gateway/http/shared/limits.js';
import { NO_STREET_MAP } from '../../../gateway/map/street-map.js';
import { DescriptorWatch } from '../../../gateway/network/descriptor-watch.js';
import { Descriptors } from '../../../gateway/network/descriptors.js';
import { TrustedProxies } from '../../../gateway/network/trusted-proxies.js';
import { ManualClock, Seconds } from '../../../proto/clock.js';
import { MERCHANT, testGateway } from '../../helpers/gateway/test-gateway.js';
import { apiKey, callMerchantApi } from '../../helpers/http/merchant-call.js';
import { getRequest, RawHttp } from '../../helpers/http/raw-http.js';

/** More connections than a port allows. */
const CONNECTION_COUNT = MAX_CONNECTIONS + 100;

t.test('a port full of idle connections answers probes, operators and other clients', async (t) => {
  const gateway = await testGateway(t);
  const merchant = { key: await apiKey(gateway, MERCHANT) };
  for (const port of [gateway.httpPort, gateway.operatorPort]) {
    const idle: RawHttp[] = [];
    for (let count = 0; count < CONNECTION_COUNT; count += 1) idle.push(await RawHttp.open(port));
    for (const fromAddress of ['127.0.0.1', '127.0.0.9']) {
      for (const path of ['/healthz', '/readyz'])
        t.match(await callMerchantApi(gateway, path, { fromAddress }), { status: 200 }, `${path} from ${fromAddress}`);
      t.match(await callMerchantApi(gateway, '/v2/user/logout', { ...merchant, fromAddress }), { status: 200 });
      t.match(
        await callMerchantApi({ httpPort: gateway.operatorPort }, '/status', {
          fromAddress,
          token: gateway.operatorToken,
        }),
        {
          status: 200,
        },
      );
    }
    for (const { socket } of idle) socket.destroy();
  }
});

/** Makes connections with names, and records the names of those that were closed to make room. */
function recordClosings() {
  const closedNames: string[] = [];
  const make = (name: string, address: string, isProxy = false): OpenConnection => {
    return { address, isProxy, end: () => closedNames.push(name) };
  };
  return { closedNames, make };
}

t.test('silent and idle connections make room for new ones in the documented order', async (t) => {
  const { closedNames, make } = recordClosings();
  const places = new Places({ total: 5, perAddress: 3, reserve: 1 });
  const [idle, silent, busy] = [make('idle', '10.0.0.1'), make('silent', '10.0.0.1'), make('busy', '10.0.0.1')];
  for (const connection of [idle, silent, busy]) t.ok(places.admit(connection));
  places.note(idle, 'busy');
  places.note(idle, 'idle');
  places.note(busy, 'busy');
  t.ok(places.admit(make('fourth', '10.0.0.1')));
  t.same(closedNames, ['silent'], 'an address has at most three, and its silent one is closed first');
  t.ok(places.admit(make('fifth', '::ffff:10.0.0.1')));
  t.same(closedNames.slice(1), ['fourth'], 'IPv4 in IPv6 spelling is the same address');
  const proxied = ['a', 'b', 'c'].map((name) => make(`proxied ${name}`, '10.0.0.2', true));
  for (const connection of proxied) t.ok(places.admit(connection));
  t.same(
    closedNames.slice(2),
    ['fifth'],
    'at the total limit, one of the address with the most closable ones is closed, a trusted proxy’s last',
  );
  t.equal(places.count, 5, 'as many as allowed');
  for (const connection of [...proxied, idle]) places.note(connection, 'busy');
  const [spare, next] = [make('spare', '10.0.0.3'), make('next', '10.0.0.4')];
  t.ok(places.admit(spare));
  t.ok(places.isReserved(spare), 'all are busy, so the new one gets a place in the reserve');
  t.ok(places.admit(next));
  t.same(closedNames.slice(3), ['spare']);
  places.note(next, 'busy');
  t.notOk(places.admit(make('refused', '10.0.0.5')), 'a full reserve refuses');
  places.leave(idle);
  t.notOk(places.admit(make('short', '10.0.0.5'), 'short'), 'without a free descriptor it is refused');
  places.note(busy, 'idle');
  t.notOk(places.admit(make('instead', '10.0.0.5'), 'none'), 'a connection on a reserved descriptor can’t stay');
  t.same(closedNames.slice(4), ['busy'], 'another one is closed to make room for the next');
});

t.test('a port whose connections are all busy answers only probes', async (t) => {
  const proxies = new TrustedProxies([]);
  const connections = new HttpConnections({ limits: { total: 1, perAddress: 0, reserve: 2 }, proxies });
  const health = new Health({ events: new GatewayEvents(), clock: new ManualClock(), now: () => 0 });
  health.end('starting');
  const server = await HttpServer.start({
    ...{ host: '127.0.0.1', port: 0, corsOrigins: [], connections, proxies, health, map: NO_STREET_MAP },
    ...{ fairness: DEFAULT_FAIRNESS, budgets: new HttpBudgets(DEFAULT_FAIRNESS, new ManualClock()) },
    merchants: () => undefined,
    onAnswered: () => undefined,
  });
  t.teardown(() => server.close());
  const busy = await RawHttp.open(server.port);
  // The client requests far more than the system's buffers hold, and reads only the start.
  busy.write(getRequest('/docs/static/swagger-ui-bundle.js').repeat(100));
  await busy.waitForText(/HTTP\/1\.1 200/);
  busy.socket.pause();
  const target = { httpPort: server.port };
  const [probe, ready] = [await callMerchantApi(target, '/healthz'), await callMerchantApi(target, '/readyz')];
  t.match([probe, ready], [{ status: 200, headers: { connection: 'close' } }, { status: 200 }]);
  t.match(await callMerchantApi(target, '/openapi.json'), {
    status: 503,
    headers: { 'retry-after': '5' },
    body: { code: 'busy' },
  });
});

t.test('descriptors are reserved for operators, and a shortage is reported', async (t) => {
  const descriptors = new Descriptors(200);
  t.equal(descriptors.reserve, 32);
  /** What there is room for when a new socket gets this descriptor; the system gives out the lowest free number. */
  const descriptorStates = (number: number) => {
    // Node has a socket's descriptor at `_handle.fd`.
    const socket = { _handle: { fd: number } } as unknown as Socket;
    return (['lock', 'merchant', 'operator'] as const).map((caller) => descriptors.roomFor(caller, socket));
  };
  // The reserve begins at 168 = 200 - 32. Locks leave all of it free, merchants half of it, and operators a quarter.
  t.same(descriptorStates(167), ['enough', 'enough', 'enough']);
  t.same(descriptorStates(168), ['short', 'enough', 'enough']);
  t.same(descriptorStates(184), ['none', 'short', 'enough']);
  t.same(descriptorStates(192), ['none', 'none', 'short']);
  t.same(new Descriptors(1_000_000).reserve, 256);

  const clock = new ManualClock();
  const events = new GatewayEvents();
  const reports: string[] = [];
  events.on('descriptors', ({ state, why }) => reports.push(`${state}: ${why}`));
  let isShort = false;
  const fake = Object.defineProperty(new Descriptors(200), 'isShort', { get: () => isShort });
  const watch = new DescriptorWatch({ descriptors: fake, events, clock, now: () => 0 });
  t.notOk(
    new DescriptorWatch({ descriptors: new Descriptors(20_000), events, clock, now: () => 0 }).expectLocks(400),
    '20,000 descriptors are enough for 400 locks, whatever else the gateway opens',
  );
  t.ok(watch.expectLocks(100), 'there are enough for 100 locks, but few are left');
  t.same(reports, [], 'which is not reported');
  t.ok(watch.expectLocks(400), '200 are too few for 400 locks');
  // 464 descriptors for the locks and the store's files, and the reserve of an eighth.
  t.match(reports, [/^few: 400 locks .* 200 descriptors .*"ulimit -n 531"/]);
  clock.advance(Seconds(10));
  isShort = true;
  clock.advance(Seconds(3));
  isShort = false;
  // The watch looks each second, and takes a shortage for over after five seconds without one.
  clock.advance(Seconds(4));
  t.match(
    reports.slice(1),
    [/^short: of the 200 descriptors .* only the 32 /],
    'reported once, and not resolved at once',
  );
  clock.advance(Seconds(1));
  t.match(reports.slice(2), [/^enough: /]);
  watch.stop();
});
