/**
 * The log: its lines, its rate limits, and that no secret appears in it or in any answer of the gateway. A canary is a
 * text that is sent in place of a secret and then searched for.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import got from 'got';
import t, { type Test } from 'tap';
import { prettyLine } from '../../cli/commands/serve/serve-log.js';
import { GatewayEvents } from '../../gateway/events.js';
import type { Gateway } from '../../gateway/gateway.js';
import { listenToAll } from '../../gateway/http/operator/json/event.js';
import { logEvents, makeLog } from '../../gateway/log/log.js';
import { scrubSecrets } from '../../gateway/log/log-scrub.js';
import { ManualClock, Seconds } from '../../proto/clock.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { connackCode, TestLock } from '../helpers/mqtt/test-lock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

type Line = Readonly<Record<string, unknown>>;

/** A log whose lines are recorded. */
function recordingLog(
  events: GatewayEvents,
  clock: ManualClock,
): { lines: Line[]; text: () => string; stop: () => void } {
  const written: string[] = [];
  const lines: Line[] = [];
  const log = makeLog('debug', (line) => {
    written.push(line);
    lines.push(JSON.parse(line) as Line);
  });
  const stop = logEvents(log, events, clock);
  return { lines, text: () => written.join(''), stop };
}

/** A client that is refused, and the event that reports it. */
const STRANGER = { clientId: 'x', mac: null, source: 'lock', isAuthenticated: false, address: '127.0.0.1' } as const;
const REFUSAL = { ...STRANGER, atMs: 0, what: 'connect', reason: 'unknown-lock', why: 'no such lock' } as const;

t.test('each line is JSON with its time and level', async (t) => {
  const events = new GatewayEvents();
  const { lines, stop } = recordingLog(events, new ManualClock());
  events.emit('connected', { atMs: 0, mac: testMac(), source: 'lock', simulated: false });
  events.emit('refused', REFUSAL);
  events.emit('url-disabled', { atMs: 0, urlId: 7, why: 'gone' });
  events.emit('circuit', { atMs: 0, urlId: 7, state: 'opened', why: '500' });
  events.emit('circuit', { atMs: 0, urlId: 7, state: 'closed', why: 'an attempt succeeded' });
  events.emit('store-failed', { atMs: 0, why: 'full' });
  events.emit('degraded', { atMs: 0, reason: 'store', why: 'full' });
  events.emit('recovered', { atMs: 0, reason: 'store', lastedMs: 1500.4 });
  events.emit('store-broken', { atMs: 0, why: 'broken' });
  const request = { atMs: 0, requestId: 'req_1', method: 'GET', route: '/v2/user/login', durationMs: 1.4 };
  events.emit('request', { ...request, status: 200, why: undefined });
  events.emit('request', { ...request, status: 500, why: 'broken' });
  t.match(lines, [
    { level: 'debug', time: /^\d{4}-\d\d-\d\dT.*Z$/, event: 'connect', mac: 'A4:C1:38:00:00:01' },
    { level: 'warn', event: 'refused', what: 'connect', client_id: 'x', why: 'no such lock' },
    { level: 'warn', event: 'url-disabled', url_id: 7 },
    { level: 'warn', event: 'circuit', url_id: 7, state: 'opened', why: '500' },
    { level: 'info', event: 'circuit', url_id: 7, state: 'closed' },
    { level: 'error', event: 'store-failed' },
    { level: 'error', event: 'degraded', reason: 'store' },
    { level: 'info', event: 'recovered', lasted_ms: 1500 },
    { level: 'fatal', event: 'store-broken' },
    { level: 'debug', event: 'request', request_id: 'req_1', route: '/v2/user/login', status: 200, duration_ms: 1 },
    { level: 'debug', event: 'request', status: 500 },
    { level: 'error', event: 'request', request_id: 'req_1', status: 500, why: 'broken' },
  ]);
  stop();
  events.emit('store-failed', { atMs: 0, why: 'full' });
  t.equal(lines.length, 12, 'no line is written after the stop');
});

t.test('a secret that is logged by mistake is censored', async (t) => {
  const written: string[] = [];
  const log = makeLog('info', (line) => written.push(line));
  const key = 'lgs_AbCdEf0123456789';
  log.info({ why: `${key} was given`, headers: { 'x-key': 'canary' }, request: { token: 'canary' } }, `for ${key}`);
  log.info({ password: 'canary', secret: 'canary', authorization: 'canary', merchant: { secrets: ['canary'] } }, 'x');
  log.debug('below the setting');
  t.equal(written.length, 2, 'the line below the level is left out');
  for (const line of written) t.notMatch(line, /canary|AbCdEf/);
  t.match(JSON.parse(written[0] ?? ''), { why: '[secret] was given', msg: 'for [secret]' });
});

t.test('lines that strangers can cause are limited, and the omitted ones are counted', async (t) => {
  const events = new GatewayEvents();
  const clock = new ManualClock();
  const { lines, stop } = recordingLog(events, clock);
  for (let count = 0; count < 1000; count += 1) events.emit('refused', REFUSAL);
  t.equal(lines.length, 10, 'at most ten in 10 s');
  clock.advance(Seconds(10));
  t.match(lines.slice(10), [{ event: 'refused', left_out: 990 }]);
  events.emit('refused', REFUSAL);
  t.equal(lines.length, 12, 'the next window starts with a new limit');
  // This window has had one of its ten lines already.
  for (let count = 0; count < 20; count += 1) events.emit('refused', REFUSAL);
  stop();
  t.match(lines.at(-1), { left_out: 11 }, 'the stop reports the omitted lines too');
  t.equal(clock.pending, 0);
});

t.test('only slow commits are logged', async (t) => {
  const events = new GatewayEvents();
  const { lines, stop } = recordingLog(events, new ManualClock());
  const commit = { atMs: 0, what: 'ingest', rows: 3, failure: undefined } as const;
  for (let count = 0; count < 100; count += 1) events.emit('commit', { ...commit, durationMs: 5 });
  events.emit('commit', { ...commit, durationMs: 1200 });
  t.match(lines, [{ level: 'warn', event: 'slow-commit', duration_ms: 1200, rows: 3 }]);
  t.equal(lines.length, 1, 'no line for an ordinary commit');
  stop();
});

t.test('a line for people has the time of day and no control characters', async (t) => {
  const time = '2026-11-21T13:37:00.029Z';
  const line = prettyLine(
    JSON.stringify({
      level: 'warn',
      time,
      event: 'refused',
      why: 'a b',
      client_id: '\u001b[2J',
      msg: 'connect refused',
    }),
  );
  t.equal(line, '13:37:00 warn  connect refused why="a b" client_id="\\u001b[2J"');
});

t.test('scrubSecrets censors everything that looks like a secret', async (t) => {
  const secrets = [
    'lgs_AbCdEf0123456789-_',
    'lgo_AbCdEf0123456789',
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw==',
    'lgp_abcdef',
  ];
  for (const secret of secrets) t.equal(scrubSecrets(`client ${secret}, gone`), 'client [secret], gone');
  t.equal(scrubSecrets('authorization: Bearer abc.def-123'), 'authorization: Bearer [secret]');
  t.equal(scrubSecrets('Basic bGdrXzEyMzQ6'), 'Basic [secret]');
  const harmless = 'lgs_ is a prefix, A4:C1:38:F0:E1:D2 a MAC, evt_A4C138F0E1D2_1_1_7_abcdefgh an id';
  t.equal(scrubSecrets(harmless), harmless);
});

/** A webhook receiver that answers 500 and echoes the request's headers. */
async function echoingMerchant(t: Test): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(500).end(JSON.stringify(request.headers)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** The CONNACK code of a refused login. */
const NOT_AUTHORIZED = 5;
/** A secret that is easy to find in a text. */
const CANARY = 'canary-Zq7vX2';

/** Sends a secret in every place of the operators' interface, and returns the answers' bodies. */
async function sendSecretEverywhere(gateway: Gateway): Promise<string[]> {
  const base = `http://127.0.0.1:${gateway.operatorPort}`;
  const validToken = `Bearer ${gateway.operatorToken}`;
  const post = async (path: string, body: string, authorization = validToken): Promise<string> => {
    const headers = { authorization, 'content-type': 'application/json' };
    return (await got.post(base + path, { headers, body, throwHttpErrors: false, retry: { limit: 0 } })).body;
  };
  const url = (text: string, headers = {}): string => JSON.stringify({ url: text, headers });
  return [
    await post('/merchants', '{}', `Bearer ${CANARY}`),
    await post('/merchants', `{"name": ${CANARY}`),
    await post('/webhooks', url(`http://user:${CANARY}@127.0.0.1/`)),
    await post('/webhooks', url(`ftp://user:${CANARY}@127.0.0.1/`)),
    await post('/webhooks', url('http://127.0.0.1/', { 'X-Key': `${CANARY}\n` })),
    await post('/webhooks', url('http://127.0.0.1/', { Host: CANARY })),
    await post('/devices', JSON.stringify({ mac: 7, secret: CANARY })),
  ];
}

/** All answers of the operators' interface afterwards, including the metrics. */
async function showEverything(gateway: Gateway): Promise<string[]> {
  const headers = { authorization: `Bearer ${gateway.operatorToken}` };
  const paths = ['/status', '/merchants', '/devices', `/devices/${testMac()}`, '/webhooks', '/readyz', '/metrics'];
  return await Promise.all(
    paths.map(async (each) => (await got(`http://127.0.0.1:${gateway.operatorPort}${each}`, { headers })).body),
  );
}

t.test('a secret that is sent to every input appears in no log line, event or answer', async (t) => {
  const events = new GatewayEvents();
  const { text, lines, stop } = recordingLog(events, new ManualClock());
  const gateway = await openGateway(t, tempFolder(t), { events });
  await gateway.accounts.addMerchant(MERCHANT);
  const streamed: string[] = [];
  t.teardown(listenToAll(events, (event) => streamed.push(JSON.stringify(event))));
  const { secret: lockSecret } = await gateway.accounts.addDevice({ mac: testMac() });
  const url = await echoingMerchant(t);
  const headers = { 'X-Key': CANARY, Authorization: `Bearer ${CANARY}` };
  const { secret: signingSecret } = await gateway.accounts.addWebhookUrl({ url, headers });

  // A lock sends its secret as the password, and by mistake in other places.
  const identity = { clientId: testMac(), username: testMac() };
  t.equal(await connackCode(gateway.mqttPort, { ...identity, password: `${CANARY}-password` }), NOT_AUTHORIZED);
  t.equal(
    await connackCode(gateway.mqttPort, { clientId: lockSecret, username: lockSecret, password: lockSecret }),
    NOT_AUTHORIZED,
  );
  t.equal(
    await connackCode(gateway.mqttPort, { ...identity, username: lockSecret, password: testMac() }),
    NOT_AUTHORIZED,
  );
  const lock = await TestLock.connect(t, gateway.mqttPort, testMac(), lockSecret);
  const attempted = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(1));
  t.match(await attempted, [{ outcome: 'pending', status: 500 }]);
  lock.client.publish(`up/${lockSecret}`, 'x', { qos: 1 }, () => undefined);
  await lock.closed;

  const answers = [...(await sendSecretEverywhere(gateway)), ...(await showEverything(gateway))];
  await gateway.close();
  stop();
  const texts = { log: text(), stream: streamed.join('\n'), answers: answers.join('\n') };
  for (const [source, text] of Object.entries(texts)) {
    t.ok(text.length > 200, `there is something in the ${source}`);
    for (const secret of [
      CANARY,
      lockSecret,
      signingSecret,
      signingSecret.slice('whsec_'.length),
      gateway.operatorToken,
    ])
      t.notMatch(text, secret, `${source}: ${secret.slice(0, 6)}`);
  }
  const refusals = lines.filter(({ event }) => event === 'refused');
  t.match(refusals.at(-1), { what: 'publish', why: 'topic "up/[secret]": a lock publishes only to "up"' });
});
