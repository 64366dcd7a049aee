/**
 * Webhooks must not reach internal addresses (SSRF: server-side request forgery). A server, the canary, listens on
 * every address of this machine, and no webhook may connect to it. Most tests use 127.0.0.2 as if it were a public
 * address, by allowing it as a range.
 */
import type { LookupAddress } from 'node:dns';
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import t from 'tap';
import { parseRange } from '../../../gateway/webhooks/sending/address-rule.js';
import { type AttemptResult, attemptDelivery } from '../../../gateway/webhooks/sending/attempt.js';
import { GuardedConnections } from '../../../gateway/webhooks/sending/guarded-connections.js';
import type { LookupAll } from '../../../gateway/webhooks/sending/name-service.js';
import { systemClock } from '../../../proto/clock.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { freePort } from '../../helpers/http/free-port.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
const REFUSED = 'the address is not allowed';
const PUBLIC_ADDRESS = '127.0.0.2';
const INTERNAL_ADDRESS = '127.0.0.1';

/** Spellings of hosts in URLs that lead to this machine or into an internal network. */
const SPELLINGS = [
  // Loopback in IPv4, in every base and length that a URL takes.
  ...['127.0.0.1', '127.1', '127.0.1', '127.0.0.1.', '127.127.127.127', '127.255.255.254', '0x7f.1', '0x7f000001'],
  ...[
    '0x7f.0x0.0x0.0x1',
    '0X7F.0.0.1',
    '2130706433',
    '017700000001',
    '0177.0.0.1',
    '0177.0.0.01',
    '0',
    '0.0.0.0',
    '0x0',
  ],
  // Loopback in characters that are not ASCII, and percent-encoded.
  ...['①②⑦.⓪.⓪.①', '１２７.０.０.１', '127。0。0。1', '127%2e0%2e0%2e1', '%31%32%37.0.0.1'],
  ...['localhost', 'LOCALHOST'],
  // Loopback in IPv6, and IPv4 inside IPv6: compatible, mapped, translated, NAT64, 6to4, Teredo.
  ...['[::1]', '[0:0:0:0:0:0:0:1]', '[::]', '[::127.0.0.1]', '[::7f00:1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]'],
  ...['[0:0:0:0:0:ffff:127.0.0.1]', '[::ffff:0.0.0.0]', '[::ffff:0:127.0.0.1]', '[64:ff9b::127.0.0.1]'],
  ...['[64:ff9b::7f00:1]', '[64:ff9b:1:7f00:0:100:808:808]', '[2002:7f00:1::]', '[2002:7f00:1::1]'],
  ...['[2001:0:4136:e378:8000:63bf:80ff:fffe]'],
  // Private, link-local, metadata, multicast.
  ...['10.0.0.1', '172.16.0.1', '192.168.1.1', '100.100.100.200', '169.254.169.254', '[::ffff:169.254.169.254]'],
  ...['[fd00:ec2::254]', '[fe80::1]', '224.0.0.1', '255.255.255.255', '[ff02::1]', '[64:ff9b::a9fe:a9fe]'],
];

/** A server that only counts connections. */
interface Canary {
  readonly port: number;
  connections: number;
}

/** Listens on every address, IPv4 and if possible IPv6. */
async function startCanary(test: Teardown): Promise<Canary> {
  const server = createServer((socket) => {
    canary.connections += 1;
    socket.destroy();
  });
  await listenUntilTestEnd(server, test);
  const canary = { port: (server.address() as AddressInfo).port, connections: 0 };
  return canary;
}

/** Lets a server listen; it is closed after the test. By default on any free port. */
async function listenUntilTestEnd(server: Server | HttpServer, test: Teardown, host?: string, port = 0): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  test.teardown(() => {
    if ('closeAllConnections' in server) server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
}

t.test('no spelling reaches an internal address, and a test webhook reveals nothing about it', async (t) => {
  t.ok(SPELLINGS.length >= 48, 'no spelling was lost');
  const canary = await startCanary(t);
  const closedPort = await freePort();
  const gateway = await openGateway(t, tempFolder(t), {}, { allowWebhookRange: [] });
  await gateway.accounts.addMerchant(MERCHANT);
  const hostByUrlId = new Map<number, string>();
  for (const port of [canary.port, closedPort])
    for (const host of SPELLINGS) {
      const { url } = await gateway.accounts.addWebhookUrl({ url: `http://${host}:${port}/hook` });
      hostByUrlId.set(url.id, host);
    }
  const lock = await connectedLock(t, gateway, MAC);
  const attempted = waitForEvents(gateway, 'delivery', hostByUrlId.size);
  await lock.send(testBytes(1));
  for (const { urlId, status, error, outcome } of await attempted)
    t.same(
      { status, error, outcome },
      { status: null, error: REFUSED, outcome: 'pending' },
      hostByUrlId.get(urlId) ?? '',
    );
  const { deliveries } = await gateway.webhooks.tester.test(MAC);
  t.equal(deliveries.length, hostByUrlId.size);
  const results = deliveries.map(({ status, error, durationMs }) => ({ status, error, durationMs }));
  const spellingCount = SPELLINGS.length;
  t.same(results.slice(0, spellingCount), results.slice(spellingCount), 'open and closed ports give the same answer');
  t.same(new Set(results.map((each) => JSON.stringify(each))).size, 1, 'all spellings give the same answer');
  t.match(results[0], { status: null, error: REFUSED, durationMs: null });
  t.equal(canary.connections, 0, 'nothing connected to the canary');
});

/** A receiver and a canary (a server that must not be reached), which listen on one port at two addresses. */
interface ReceiverAndCanary {
  readonly port: number;
  /** What reached the receiver at the allowed address, and how it answers. */
  readonly outside: {
    requests: number;
    connections: number;
    answer: (response: import('node:http').ServerResponse) => void;
  };
  /** What reached the canary at the forbidden address. */
  readonly inside: { connections: number };
}

/** A receiver at 127.0.0.2 and a canary at 127.0.0.1, on one port. */
async function startReceiverAndCanary(test: Teardown): Promise<ReceiverAndCanary> {
  const outside: ReceiverAndCanary['outside'] = {
    requests: 0,
    connections: 0,
    answer: (response) => void response.writeHead(204).end(),
  };
  const inside = { connections: 0 };
  const server = createHttpServer((request, response) => {
    outside.requests += 1;
    request.resume().on('end', () => outside.answer(response));
  });
  server.on('connection', (socket) => {
    if (socket.localAddress === PUBLIC_ADDRESS) {
      outside.connections += 1;
    } else {
      inside.connections += 1;
      socket.destroy();
    }
  });
  // One server for both addresses: a second one could find the first one's port taken on its own address.
  await listenUntilTestEnd(server, test, '0.0.0.0');
  const { port } = server.address() as AddressInfo;
  return { port, outside, inside };
}

/**
 * The gateway's connections to receivers, with a name service that answers each look-up with the next entry of this
 * list, and then always with the last one.
 */
function connectionsWithAddresses(answers: readonly (readonly string[])[]): {
  connections: GuardedConnections;
  lookups: () => number;
} {
  let lookups = 0;
  const lookUp: LookupAll = (_hostname, _options, callback) => {
    const addresses = answers[Math.min(lookups, answers.length - 1)] ?? [];
    lookups += 1;
    const found: LookupAddress[] = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    callback(null, found);
  };
  return { connections: new GuardedConnections([parseRange(`${PUBLIC_ADDRESS}/32`)], lookUp), lookups: () => lookups };
}

/** Makes one attempt at this URL. */
function attemptAt(url: string, connections: GuardedConnections): Promise<AttemptResult> {
  return attemptDelivery({ url, headers: {}, body: '{}' }, connections, systemClock, new AbortController().signal);
}

t.test('if a name’s address changes after the check, the connection still goes to the checked address', async (t) => {
  const { port, outside, inside } = await startReceiverAndCanary(t);
  outside.answer = (response) => void response.writeHead(204, { connection: 'close' }).end();
  const { connections, lookups } = connectionsWithAddresses([[PUBLIC_ADDRESS], [INTERNAL_ADDRESS]]);
  t.match(await attemptAt(`http://merchant.test:${port}/`, connections), { status: 204 });
  t.equal(lookups(), 1, 'the name is looked up once: the connection uses the checked address');
  t.match(await attemptAt(`http://merchant.test:${port}/`, connections), { status: null, error: REFUSED });
  t.same([outside.requests, inside.connections], [1, 0]);
});

t.test('a name is refused if one of its addresses is internal, or if it has none', async (t) => {
  const { port, outside, inside } = await startReceiverAndCanary(t);
  const addressLists = [
    [PUBLIC_ADDRESS, INTERNAL_ADDRESS],
    [INTERNAL_ADDRESS, PUBLIC_ADDRESS],
    [PUBLIC_ADDRESS, '::1'],
    [PUBLIC_ADDRESS, `::ffff:${INTERNAL_ADDRESS}`],
    [PUBLIC_ADDRESS, '64:ff9b::7f00:1'],
    [PUBLIC_ADDRESS, '10.0.0.1'],
    [],
  ];
  for (const addresses of addressLists) {
    const { connections } = connectionsWithAddresses([addresses]);
    t.match(await attemptAt(`http://merchant.test:${port}/`, connections), { status: null, error: REFUSED });
    t.match(await attemptAt(`https://merchant.test:${port}/`, connections), { status: null, error: REFUSED });
  }
  t.same([outside.connections, inside.connections], [0, 0]);
});

t.test('a reused connection leads to its checked address; the next connection is checked again', async (t) => {
  const { port, outside, inside } = await startReceiverAndCanary(t);
  const { connections, lookups } = connectionsWithAddresses([[PUBLIC_ADDRESS], [INTERNAL_ADDRESS]]);
  const url = `http://merchant.test:${port}/`;
  t.match(await attemptAt(url, connections), { status: 204 });
  outside.answer = (response) => void response.writeHead(204, { connection: 'close' }).end();
  t.match(
    await attemptAt(url, connections),
    { status: 204 },
    'the name now leads to an internal address, the connection does not',
  );
  t.equal(lookups(), 1);
  t.match(await attemptAt(url, connections), { error: REFUSED });
  t.match(await attemptAt(`http://${INTERNAL_ADDRESS}:${port}/`, connections), { error: REFUSED });
  t.same([outside.connections, outside.requests, inside.connections], [1, 2, 0]);
});

t.test('a redirect to an internal address is an ordinary failure', async (t) => {
  const { port, outside, inside } = await startReceiverAndCanary(t);
  const { connections } = connectionsWithAddresses([[PUBLIC_ADDRESS]]);
  const target = `http://${INTERNAL_ADDRESS}:${port}/`;
  const headers = {
    location: target,
    refresh: `0; url=${target}`,
    'alt-svc': `http/1.1="${INTERNAL_ADDRESS}:${port}"`,
  };
  for (const status of [300, 301, 302, 303, 305, 307, 308]) {
    outside.answer = (response) => void response.writeHead(status, headers).end();
    t.match(await attemptAt(`http://merchant.test:${port}/`, connections), {
      status,
      error: `the receiver answered ${status}`,
    });
  }
  t.same([outside.requests, inside.connections], [7, 0]);
});
