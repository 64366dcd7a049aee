/**
 * The requests of a connection to one of the gateway's HTTP ports, the merchants' and the operators': pipelined
 * requests (sent without waiting for answers), Host headers, compressed files and unread bodies.
 */
import { get, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { HttpConnections } from '../../../gateway/http/connections/connections.js';
import { MAX_SHARE_OF_TURN } from '../../../gateway/http/connections/loop-share.js';
import type { PlaceLimits } from '../../../gateway/http/connections/places.js';
import type { RequestHandler } from '../../../gateway/http/connections/request-turns.js';
import { PAGE_FILES } from '../../../gateway/http/merchant/documentation/page.js';
import { OPERATOR_ROUTES } from '../../../gateway/http/operator/server.js';
import { TrustedProxies } from '../../../gateway/network/trusted-proxies.js';
import { afterThisTurn } from '../../../proto/clock.js';
import { within } from '../../helpers/clocks/change-signal.js';
import { collectGarbage } from '../../helpers/collect-garbage.js';
import { MERCHANT, testGateway } from '../../helpers/gateway/test-gateway.js';
import { apiKey, basicAuthorization, callMerchantApi } from '../../helpers/http/merchant-call.js';
import { getRequest, openDescriptors, RawHttp } from '../../helpers/http/raw-http.js';

/** The number of requests that one connection sends without waiting for an answer. */
const PIPELINED_REQUESTS = 1_000;

const PAGE_PATHS = PAGE_FILES.map((file) => `/docs/static/${file}`);

/** Every other GET path of the merchants' port. */
const MERCHANT_PATHS = [
  '/healthz',
  '/readyz',
  '/openapi.json',
  '/docs',
  '/docs/json',
  '/docs/yaml',
  '/v2/user/logout',
  '/v2/user/login?username=a&password=b',
  '/nowhere',
];

/** Every GET path of the operators' port except streams; the ids do not exist. */
const OPERATOR_PATHS = [
  '/healthz',
  '/readyz',
  '/metrics',
  '/openapi.json',
  ...OPERATOR_ROUTES.filter(({ method }) => method === 'GET').map(({ path }) => path.replace(/:\w+/g, '1')),
];

/**
 * Resolves when the condition is true; checks it in each turn of the event loop. @throws Error with `what` after 20 s
 */
async function eventually(what: () => string, condition: () => boolean): Promise<void> {
  let isLate = false;
  const pollCondition = async (): Promise<void> => {
    while (!condition() && !isLate) await new Promise<void>(afterThisTurn);
  };
  await within(20, what, pollCondition()).finally(() => {
    isLate = true;
  });
}

/** Waits until no more file descriptors are open than before. */
async function waitForDescriptors(before: number, what: string): Promise<void> {
  await eventually(
    () => `${what}: ${openDescriptors()} descriptors are open, and ${before} were before`,
    () => openDescriptors() <= before,
  );
}

/** The ways in which a client may abandon its pipelined requests. */
const ABANDON_METHODS: Readonly<Record<string, (client: RawHttp) => Promise<void>>> = {
  'hangs up at once': async ({ socket }) => void socket.destroy(),
  'reads a part and hangs up': async (client) => {
    await client.waitForText(/HTTP\/1\.1 /);
    client.socket.destroy();
  },
  'reads a part and resets': async (client) => {
    await client.waitForText(/HTTP\/1\.1 /);
    client.socket.resetAndDestroy();
  },
};

/** Abandons `count` requests of each path in each of these ways. */
async function abandonRequests(port: number, paths: readonly string[], count: number, header: string): Promise<void> {
  // Resources that the first request creates once must not count.
  for (const path of paths) {
    const client = await RawHttp.open(port);
    client.write(getRequest(path, ['host: a', header, 'connection: close']));
    await client.waitForClose();
  }
  const before = openDescriptors();
  for (const path of paths)
    for (const [method, abandon] of Object.entries(ABANDON_METHODS)) {
      const client = await RawHttp.open(port);
      await client.flush(getRequest(path, ['host: a', header]).repeat(count));
      await abandon(client);
      await waitForDescriptors(before, `${path}, a client that ${method}`);
    }
}

t.test('clients that pipeline requests and hang up leave no open file or socket', async (t) => {
  const gateway = await testGateway(t);
  const merchant = `authorization: ${basicAuthorization(await apiKey(gateway, MERCHANT))}`;
  const operator = `authorization: Bearer ${gateway.operatorToken}`;
  await abandonRequests(gateway.httpPort, PAGE_PATHS, PIPELINED_REQUESTS, merchant);
  await abandonRequests(gateway.httpPort, MERCHANT_PATHS, PIPELINED_REQUESTS / 10, merchant);
  await abandonRequests(gateway.operatorPort, OPERATOR_PATHS, PIPELINED_REQUESTS / 10, operator);
  t.pass();
});

/** Limits of a server: ten connections, any number (0) from one address, and no further ones for operators. */
const TEN_CONNECTIONS: PlaceLimits = { total: 10, perAddress: 0, reserve: 0 };

t.test('1,000 pipelined requests are answered in order, one at a time', async (t) => {
  let [underWay, maxUnderWay] = [0, 0];
  const port = await serve(t, TEN_CONNECTIONS, (request, response) => {
    underWay += 1;
    maxUnderWay = Math.max(maxUnderWay, underWay);
    response.once('close', () => {
      underWay -= 1;
    });
    afterThisTurn(() => response.end(`answer ${request.url};`));
  });
  const client = await RawHttp.open(port);
  const expectedAnswers = Array.from({ length: PIPELINED_REQUESTS }, (_, number) => `answer /${number};`);
  client.write(expectedAnswers.map((_, number) => getRequest(`/${number}`)).join(''));
  await client.waitUntil(
    () => client.received.endsWith(`answer /${PIPELINED_REQUESTS - 1};`),
    () => `${client.statuses.length} answers came`,
  );
  t.same(client.received.match(/answer \/\d+;/g), expectedAnswers);
  t.equal(maxUnderWay, 1);
  client.write(getRequest('/more').repeat(2 * PIPELINED_REQUESTS));
  await client.waitForClose();
  t.pass('a client that sends far more requests than may wait is disconnected');
});

t.test('a connection whose pipeline is never empty does not keep the requests that were answered', async (t) => {
  const ANSWERED = 300;
  const served: WeakRef<object>[] = [];
  const client: { current?: RawHttp } = {};
  const port = await serve(t, TEN_CONNECTIONS, (request, response) => {
    served.push(new WeakRef(request));
    client.current?.write(getRequest('/more'));
    // The last one is not answered, so that others still wait behind it.
    if (served.length <= ANSWERED) response.end('answer');
  });
  client.current = await RawHttp.open(port);
  client.current.write(getRequest('/first').repeat(10));
  await eventually(
    () => `${served.length} requests were served`,
    () => served.length > ANSWERED,
  );
  await new Promise<void>(afterThisTurn);
  collectGarbage();
  const kept = served.filter((request) => request.deref() !== undefined).length;
  t.ok(kept < ANSWERED / 10, `${kept} of ${ANSWERED} are kept`);
});

t.test('a request after the last answer of its connection is not served', async (t) => {
  const startedRequests: (string | undefined)[] = [];
  const port = await serve(t, TEN_CONNECTIONS, (request, response) => {
    startedRequests.push(request.url);
    if (request.url === '/last') response.setHeader('connection', 'close');
    response.end();
  });
  const client = await RawHttp.open(port);
  client.write(['/first', '/last', '/never'].map((path) => getRequest(path)).join(''));
  await client.waitForClose();
  t.same(startedRequests, ['/first', '/last']);
});

t.test(
  'requests of many connections take only a share of each turn of the event loop, and start in the order of arrival',
  async (t) => {
    const CLIENTS = 40;
    let nowMs = 0;
    const startedRequests: { readonly url: string | undefined; readonly turn: number }[] = [];
    let turn = 0;
    let isOver = false;
    const countTurns = (): void => {
      turn += 1;
      if (!isOver) afterThisTurn(countTurns);
    };
    const handle: RequestHandler = (request, response) => {
      startedRequests.push({ url: request.url, turn });
      // Most of a request's work runs after a promise has resolved.
      void Promise.resolve().then(() => {
        nowMs += MAX_SHARE_OF_TURN / 2;
        response.end();
      });
    };
    const port = await serve(t, { total: CLIENTS, perAddress: 0, reserve: 0 }, handle, () => nowMs);
    const clients: RawHttp[] = [];
    for (let count = 0; count < CLIENTS; count += 1) clients.push(await RawHttp.open(port));
    countTurns();
    for (const [index, client] of clients.entries())
      client.write(getRequest(`/${index}`, ['host: a', 'connection: close']));
    // Its request may have started or not; the others keep their order.
    clients[CLIENTS / 2]?.socket.destroy();
    await Promise.all(clients.map((client) => client.waitForClose()));
    isOver = true;
    const abortedUrl = `/${CLIENTS / 2}`;
    t.same(
      startedRequests.map(({ url }) => url).filter((url) => url !== abortedUrl),
      clients.map((_, index) => `/${index}`).filter((url) => url !== abortedUrl),
    );
    const countsByTurn = new Map<number, number>();
    for (const each of startedRequests) countsByTurn.set(each.turn, (countsByTurn.get(each.turn) ?? 0) + 1);
    // Each request takes half of the share.
    t.ok(Math.max(...countsByTurn.values()) <= 2, `in one turn: ${[...countsByTurn.values()]}`);
  },
);

/** Starts a server with these limits; resolves to its port. `monotonic` is its clock, in ms. */
async function serve(
  test: Test,
  limits: PlaceLimits,
  handle: RequestHandler,
  monotonic?: () => number,
): Promise<number> {
  const options = { limits, proxies: new TrustedProxies([]), ...(monotonic !== undefined && { monotonic }) };
  const server = new HttpConnections(options).makeServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

t.test(
  'the page’s files are compressed for clients that accept it, and not sent again to clients that have them',
  async (t) => {
    const gateway = await testGateway(t);
    for (const path of ['/openapi.json', '/docs/static/swagger-ui-bundle.js', '/docs/static/swagger-ui.css']) {
      const plain = await callMerchantApi(gateway, path);
      // An ETag has 27 characters of a hash in base64url.
      t.match(plain, {
        status: 200,
        headers: { etag: /^".{27}"$/, 'cache-control': 'no-cache', vary: 'Accept-Encoding' },
      });
      t.equal(plain.headers['content-encoding'], undefined);
      const compressed = await callForBytes(gateway, path, { 'accept-encoding': 'br, gzip;q=0.8' });
      t.match(compressed.headers, { 'content-encoding': 'gzip' }, path);
      t.equal(gunzipSync(compressed.bytes).toString(), plain.text);
      t.not(compressed.headers.etag, plain.headers.etag, 'the compressed bytes have another ETag');
      for (const { headers } of [plain, compressed]) {
        const plainKnown = { 'if-none-match': String(headers.etag) };
        const gzipKnown = { 'if-none-match': `"other", W/${headers.etag}`, 'accept-encoding': 'gzip' };
        const repeatedAnswer = await callMerchantApi(gateway, path, {
          headers: headers === plain.headers ? plainKnown : gzipKnown,
        });
        t.match(repeatedAnswer, { status: 304, text: '', headers: { etag: headers.etag } }, `${path} again`);
      }
      const head = await callMerchantApi(gateway, path, { method: 'HEAD' });
      t.match(head, { status: 200, text: '', headers: { 'content-length': plain.headers['content-length'] } });
      const withoutGzip = await callMerchantApi(gateway, path, { headers: { 'accept-encoding': 'gzip;q=0' } });
      t.equal(withoutGzip.headers['content-encoding'], undefined);
    }
    // Neither path is in the list of the files that are served.
    t.match(await callMerchantApi(gateway, '/docs/static/csp.json'), { status: 404 });
    t.match(await callMerchantApi(gateway, '/docs/static/%2e%2e/package.json'), { status: 404 });
  },
);

/** A GET that returns the answer's bytes unchanged. */
function callForBytes(gateway: Gateway, path: string, headers: Readonly<Record<string, string>>): Promise<BytesAnswer> {
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port: gateway.httpPort, path, headers, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
      answer.on('end', () => resolve({ headers: answer.headers, bytes: Buffer.concat(chunks) }));
    });
    request.on('error', reject);
  });
}

interface BytesAnswer {
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

t.test('a missing, repeated or invalid Host header gets 400 and closes the connection', async (t) => {
  const gateway = await testGateway(t);
  const wrongHosts: Readonly<Record<string, readonly string[]>> = {
    'two that differ': ['host: a', 'host: b'],
    'two of the same': ['host: a', 'Host: a'],
    none: [],
    'a list': ['host: a, b'],
    'a port that is no number': ['host: a:b'],
    'a path': ['host: a/b'],
  };
  const ports = { merchants: gateway.httpPort, operators: gateway.operatorPort };
  const validHosts = ['host: a', 'host: localhost:8080', 'host: [::1]:80', 'host: 127.0.0.1', 'host:'];
  for (const [name, port] of Object.entries(ports)) {
    const header = `authorization: Bearer ${gateway.operatorToken}`;
    for (const [what, hosts] of Object.entries(wrongHosts))
      for (const path of ['/healthz', '/nowhere']) {
        const client = await RawHttp.open(port);
        client.write(getRequest(path, [...hosts, header]).repeat(2));
        await client.waitForClose();
        t.same(client.statuses, [400], `${name}, ${path}, ${what}: ${client.received}`);
        t.match(client.received, /application\/problem\+json.*"code":"input-host"/s);
      }
    for (const host of validHosts) {
      const client = await RawHttp.open(port);
      client.write(getRequest('/healthz', [host, header, 'connection: close']));
      await client.waitForClose();
      t.same(client.statuses, [200], `${name}, ${host}`);
    }
    const oldClient = await RawHttp.open(port);
    oldClient.write(`GET /healthz HTTP/1.0\r\n${header}\r\n\r\n`);
    await oldClient.waitForClose();
    t.same(oldClient.statuses, [200], 'HTTP/1.0 does not require Host');
  }
});

/** Far more than the system's buffers for a connection hold. */
const ENDLESS_BYTES = 64 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

/**
 * Sends a body in chunks until the connection closes or ENDLESS_BYTES are sent; resolves to the number of bytes sent.
 */
async function sendEndless({ socket }: RawHttp): Promise<number> {
  const chunk = `${CHUNK_BYTES.toString(16)}\r\n${'x'.repeat(CHUNK_BYTES)}\r\n`;
  let wake: () => void = () => undefined;
  socket.once('close', () => wake());
  let sentBytes = 0;
  while (socket.writable && sentBytes < ENDLESS_BYTES) {
    await new Promise<void>((resolve) => {
      wake = resolve;
      socket.write(chunk, () => afterThisTurn(resolve));
    });
    sentBytes += chunk.length;
  }
  return sentBytes;
}

t.test('a long body after an early answer is not read to its end', async (t) => {
  const gateway = await testGateway(t);
  const json = ['host: a', 'content-type: application/json', 'transfer-encoding: chunked'];
  const cases: readonly (readonly [what: string, status: string, port?: number])[] = [
    ['GET /healthz', '200'],
    ['GET /docs', '200'],
    ['POST /nowhere', '404'],
    ['DELETE /v1/pet', '405'],
    ['POST /v1/pet', '401'],
    ['POST /v2/user/createWithList', '401'],
    ['POST /merchants', '401', gateway.operatorPort],
  ];
  for (const [what, status, port = gateway.httpPort] of cases) {
    const client = await RawHttp.open(port);
    await client.flush(`${[`${what} HTTP/1.1`, ...json].join('\r\n')}\r\n\r\n`);
    await client.waitForText(new RegExp(`^HTTP/1\\.1 ${status} `));
    t.ok((await sendEndless(client)) < ENDLESS_BYTES, what);
    client.socket.destroy();
  }
});

t.test('a short body after an early answer leaves the connection open', async (t) => {
  const gateway = await testGateway(t);
  const client = await RawHttp.open(gateway.httpPort);
  const body = 'x'.repeat(CHUNK_BYTES);
  await client.flush(`POST /nowhere HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`);
  await client.waitForText(/^HTTP\/1\.1 404 /);
  await client.flush(body + getRequest('/healthz'));
  await client.waitForText(/HTTP\/1\.1 200 /);
  t.same(client.statuses, [404, 200]);
  client.socket.destroy();
});
