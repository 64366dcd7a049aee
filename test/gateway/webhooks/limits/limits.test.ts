/**
 * The limits of the attempts at a webhook URL (docs/webhooks.md): their rate, their time limit, and the certificate
 * authorities that the gateway accepts for the URL. All times are those of a manual clock.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { generate } from 'selfsigned';
import t, { type Test } from 'tap';
import { checkDatabase } from '../../../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../../../gateway/store/sqlite/durable-file.js';
import { migrationProvider, STEPS } from '../../../../gateway/store/sqlite/migrations.js';
import { Kysely, Migrator, SqliteDialect } from '../../../../gateway/store/tables/kysely.js';
import { checkLimits } from '../../../../gateway/webhooks/limit-input.js';
import { AttemptRate } from '../../../../gateway/webhooks/url/attempt-rate.js';
import { FAILURES_TO_OPEN } from '../../../../gateway/webhooks/url/circuit.js';
import { afterThisTurn, Days, ManualClock, Seconds, systemClock } from '../../../../proto/clock.js';
import { runCommand } from '../../../helpers/cli/command-line.js';
import { callOperator } from '../../../helpers/cli/operator-call.js';
import { openGateway, testBytes, testMac } from '../../../helpers/gateway/test-gateway.js';
import {
  advanceToNextTimer,
  eventually,
  readDeliveries,
  setUpWebhooks,
} from '../../../helpers/gateway/webhook-setup.js';
import { testCertificate } from '../../../helpers/mqtt/test-certificates.js';
import { connectedLock } from '../../../helpers/mqtt/test-lock.js';
import { openStore } from '../../../helpers/store/new-store.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

const MAC = testMac();
/** The kind of key for certificates: an elliptic curve, since RSA keys take long to make. */
const EC = { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const;
/** The number of an IP address among the types of a certificate's alternative names (RFC 5280). */
const IP_ADDRESS = 7;

/** An authority, and a certificate for 127.0.0.1 that it has signed. */
async function privateAuthority() {
  const authority = await generate([{ name: 'commonName', value: 'Bikes CA' }], {
    ...EC,
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'keyUsage', keyCertSign: true },
    ],
  });
  const signed = await generate([{ name: 'commonName', value: 'hooks' }], {
    ...EC,
    ca: { key: authority.private, cert: authority.cert },
    extensions: [{ name: 'subjectAltName', altNames: [{ type: IP_ADDRESS, ip: '127.0.0.1' }] }],
  });
  return { ca: authority.cert, caKey: authority.private, cert: signed.cert, key: signed.private };
}

/** A receiver with https that answers 204. Returns its URL. */
async function secureReceiver(test: Test, certificate: { readonly cert: string; readonly key: string }) {
  const server = createServer(certificate, (_request, response) => void response.writeHead(204).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  test.teardown(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

t.test('attempts at a URL with a rate are evenly spaced, and other events wait', async (t) => {
  const { clock, gateway, receiver, urlId } = await setUpWebhooks(t);
  await gateway.webhooks.settings.set(urlId, { attemptsPerSecond: 2 });
  const startMs = clock.now();
  const attemptTimesMs: number[] = [];
  receiver.answer = (_request, response) => {
    attemptTimesMs.push(clock.now() - startMs);
    response.writeHead(204).end();
  };
  const lock = await connectedLock(t, gateway, MAC);
  for (const sequence of [1, 2, 3, 4, 5]) await lock.send(testBytes(sequence));
  for (let count = 1; count < 5; count += 1) {
    await receiver.waitForRequests(count);
    await advanceToNextTimer(clock);
  }
  await receiver.waitForRequests(5);
  t.strictSame(attemptTimesMs, [0, 500, 1000, 1500, 2000]);
});

// After FAILURES_TO_OPEN failures in a row a URL gets only single attempts, called probes.
t.test('the rate limits retries and probes too', async (t) => {
  const { clock, gateway, receiver, urlId } = await setUpWebhooks(t);
  await gateway.webhooks.settings.set(urlId, { attemptsPerSecond: 0.1 });
  const startMs = clock.now();
  const attemptTimesMs: number[] = [];
  receiver.answer = (_request, response) => {
    attemptTimesMs.push(clock.now() - startMs);
    response.writeHead(500).end();
  };
  const lock = await connectedLock(t, gateway, MAC);
  const count = FAILURES_TO_OPEN + 2;
  for (let sequence = 1; sequence <= count; sequence += 1) await lock.send(testBytes(sequence));
  while (receiver.requests.length < count) {
    const before = receiver.requests.length;
    clock.advance(Seconds(1));
    // The rate allows an attempt every 10 s.
    if ((clock.now() - startMs) % Seconds(10) !== 0) continue;
    await eventually('an attempt or its wait', () => receiver.requests.length > before || clock.pending > 0);
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  }
  const gaps = attemptTimesMs.slice(1).map((each, index) => each - (attemptTimesMs[index] ?? 0));
  t.ok(
    gaps.every((gap) => gap >= Seconds(10)),
    `each at least 10 s after the one before: ${gaps}`,
  );
});

t.test('after a pause attempts are not made up for, and a clock that is set back delays nothing', async (t) => {
  // Two attempts per second, at the time 0.
  const rate = new AttemptRate(2, 0);
  t.equal(rate.free(Seconds(60)), 1, 'a minute without attempts allows one');
  rate.started(Seconds(60));
  t.equal(rate.free(Seconds(60)), 0);
  t.equal(rate.availableAtMs(Seconds(60)), 60_500);
  t.equal(rate.availableAtMs(Seconds(30)), 30_500);
  const fast = new AttemptRate(1000, 0);
  t.ok(fast.free(Seconds(1)) <= 50, 'at high rates 50 ms of attempts may start together');
  let started = 0;
  // Looked at every 7 ms for a second.
  for (let passedMs = 0; passedMs <= Seconds(1); passedMs += 7)
    for (; fast.free(Seconds(1) + passedMs) > 0; started += 1) fast.started(Seconds(1) + passedMs);
  t.ok(started > 950 && started <= 1050, `${started} in a second`);
});

t.test('an attempt ends at the time limit of its URL', async (t) => {
  const { clock, gateway, receiver, urlId } = await setUpWebhooks(t);
  await gateway.webhooks.settings.set(urlId, { timeoutMs: Seconds(2) });
  receiver.answer = () => undefined;
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await receiver.waitForRequests(1);
  clock.advance(Seconds(2) - 1);
  t.strictSame((await readDeliveries(gateway)).flatMap(({ attempts }) => attempts).length, 0, 'not before');
  clock.advance(1);
  const attempts = async () => (await readDeliveries(gateway, ['pending'])).flatMap((delivery) => delivery.attempts);
  await eventually('a failed attempt', async () => (await attempts()).length === 1);
  t.match(await attempts(), [{ status: null, error: 'no complete answer within 2 s' }]);
});

t.test('a receiver with a certificate of a private authority gets deliveries only if the URL names that', async (t) => {
  const { ca, ...certificate } = await privateAuthority();
  const { clock, gateway, urlId } = await setUpWebhooks(t);
  const { settings } = gateway.webhooks;
  await settings.set(urlId, { url: await secureReceiver(t, certificate) });
  const lock = await connectedLock(t, gateway, MAC);
  const waitForAttempted = (state: 'pending' | 'delivered', count: number) =>
    eventually(`${count} attempted and ${state}`, async () => {
      const attempted = (await readDeliveries(gateway, [state])).filter(({ attempts }) => attempts.length > 0);
      return attempted.length === count;
    });
  await lock.send(testBytes(1));
  await waitForAttempted('pending', 1);
  t.match((await readDeliveries(gateway))[0]?.attempts, [{ status: null, error: /certificate/ }]);

  const { url } = await settings.set(urlId, { ca: `Bikes CA\n${ca}` });
  t.equal(
    url.ca?.replaceAll('\r', '').trim(),
    ca.replaceAll('\r', '').trim(),
    'text around the certificate is left out',
  );
  await advanceToNextTimer(clock);
  await waitForAttempted('delivered', 1);

  const other = await testCertificate();
  await settings.set(urlId, { ca: other.cert });
  await lock.send(testBytes(2));
  await waitForAttempted('pending', 1);
  await settings.set(urlId, { ca: null });
  await lock.send(testBytes(3));
  await waitForAttempted('pending', 2);
  t.equal(
    (await readDeliveries(gateway, ['delivered'])).length,
    1,
    'a connection made with the authority is not reused without it',
  );
});

t.test('wrong limits are refused with the name of the member or flag, and change nothing', async (t) => {
  const { ca, caKey } = await privateAuthority();
  const { cert: expired } = await generate([{ name: 'commonName', value: 'old' }], {
    ...EC,
    notBeforeDate: new Date(0),
    notAfterDate: new Date(Days(1)),
  });
  const { gateway, urlId } = await setUpWebhooks(t);
  const before = await gateway.store.webhooks.find(urlId);
  const brokenCertificate = ca.replace(/\n[^-]{20}/, '\n');
  for (const [body, why] of [
    [{ rate: 0 }, /^rate is 0: expected 0\.1 to 1000/],
    [{ rate: 1001 }, /^rate is 1001/],
    [{ timeout_seconds: 0.5 }, /^timeout_seconds is 0\.5 s: expected 1 s to 15 s/],
    [{ timeout_seconds: 16 }, /^timeout_seconds is 16 s/],
    [{ ca: '' }, /^ca: .*no certificate/],
    [{ ca: caKey + ca }, /^ca: .*private key/],
    [{ ca: brokenCertificate }, /^ca: .*can’t be read, number 1/],
    [{ ca: ca + expired }, /^ca: .*ended at 1970-01-02/],
    [{ ca: ca.repeat(17) }, /^ca: .*over 16/],
    [{ ca: ca + ' '.repeat(65_536) }, /^ca: .*longer than 64 KiB/],
  ] as const) {
    t.match(await callOperator(gateway, 'POST', `/webhooks/${urlId}`, body), { status: 400, body: { detail: why } });
    const added = { url: 'http://127.0.0.1:9/', ...body };
    t.match(await callOperator(gateway, 'POST', '/webhooks', added), { status: 400, body: { detail: why } });
  }
  t.match(await callOperator(gateway, 'POST', `/webhooks/${urlId}`, { rate: 'fast' }), { status: 400 });
  t.same(await gateway.store.webhooks.find(urlId), before);
  t.equal((await gateway.store.listWebhookUrls()).length, 1, 'no URL was added');
  t.throws(() => checkLimits({ attemptsPerSecond: Number.NaN }, 0), { code: 'input-webhook' });

  const folder = tempFolder(t);
  writeFileSync(path.join(folder, 'key.pem'), caKey);
  writeFileSync(path.join(folder, 'ended.pem'), expired);
  const address = {
    LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
    LOCKGATE_TOKEN: gateway.operatorToken,
  };
  for (const [flags, why] of [
    ['--rate 5000', /--rate is 5000: expected 0\.1 to 1000/],
    ['--rate often', /--rate.*Expected a number above 0, or none/],
    ['--timeout 20', /--timeout is 20 s: expected 1 s to 15 s/],
    ['--ca key.pem', /--ca key\.pem: it has a private key/],
    ['--ca ended.pem', /--ca: .*ended at 1970/],
    ['--ca none.pem', /--ca none\.pem: ENOENT/],
  ] as const) {
    const result = await runCommand(['webhook', 'set', `${urlId}`, ...flags.split(' ')], {
      environment: address,
      folder,
    });
    t.match(result, { code: 2, stderr: why }, flags);
  }
});

t.test('limits are shown, survive a restart, and are removed by "none"', async (t) => {
  const { ca } = await privateAuthority();
  const folder = tempFolder(t);
  writeFileSync(path.join(folder, 'ca.pem'), ca);
  const data = tempFolder(t);
  const clock = new ManualClock(systemClock.now());
  const first = await openGateway(t, data, { deliveryClock: clock });
  await first.accounts.addMerchant('Amber');
  const { url } = await first.accounts.addWebhookUrl({ url: 'https://127.0.0.1:9/' });
  const run = (gateway: typeof first, ...args: string[]) => {
    const environment = {
      LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
      LOCKGATE_TOKEN: gateway.operatorToken,
    };
    return runCommand(['webhook', ...args], { environment, folder });
  };
  const set = await run(first, 'set', `${url.id}`, '--rate', '2.5', '--timeout', '1.5', '--ca', 'ca.pem');
  t.match(set, { code: 0, stdout: /Rate: at most 2\.5 .*\nTime limit: 1\.5 s .*\nCA: only CN=Bikes CA; ends 20/ });
  const audit = await callOperator(first, 'GET', '/audit?action=webhook.set');
  t.match(audit.body, { entries: [{ after: { rate: 2.5, timeout_seconds: 1.5, ca: { subjects: ['CN=Bikes CA'] } } }] });
  t.notMatch(JSON.stringify(audit.body), /BEGIN CERTIFICATE/);
  await first.close();

  const second = await openGateway(t, data, { deliveryClock: clock });
  const shown = JSON.parse((await run(second, 'show', `${url.id}`, '--json')).stdout);
  t.match(shown, { rate: 2.5, timeout_seconds: 1.5, ca: { subjects: ['CN=Bikes CA'], valid_to: /^20/ } });
  t.match((await run(second, 'show', `${url.id}`)).stdout, /Rate +at most 2\.5 attempts per second\n/);
  t.match((await run(second, 'list')).stdout, /LIMITS[\s\S]*2\.5\/s, 1\.5 s, own CA/);
  await run(second, 'set', `${url.id}`, '--rate', 'none', '--timeout', 'none', '--ca', 'none');
  t.match(await second.store.webhooks.find(url.id), { attemptsPerSecond: null, timeoutMs: null, ca: null });
});

for (const step of ['merchant-events', 'webhook-limits'])
  t.test(`a URL of a store from before ${step} gets pings without limits`, async (t) => {
    const folder = tempFolder(t);
    const file = path.join(folder, 'lockgate.sqlite');
    const db = openDurable(file);
    const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
    const before = STEPS[STEPS.findIndex((name) => name.endsWith(`-${step}`)) - 1] ?? '';
    t.notOk((await new Migrator({ db: tables, provider: migrationProvider }).migrateTo(before)).error);
    db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, 'Amber', 1);
      INSERT INTO webhook_url (id, merchant_id, url, headers, secret_sealed, state, cursor, created_at_ms, filter)
      VALUES (3, 1, 'http://a/', '{}', x'00', 'active', 0, 2, '{"reasons":["REASON_THEFT"]}')`);
    db.close();
    const store = await openStore(folder);
    const limits = { attemptsPerSecond: null, timeoutMs: null, ca: null };
    const filter = { events: null, reasons: ['REASON_THEFT'] };
    t.match(await store.webhooks.find(3), { ...limits, filter });
    t.match(await store.webhooks.change(3, { attemptsPerSecond: 2 }), { ...limits, attemptsPerSecond: 2, filter });
    await store.close();
    t.same((await checkDatabase(file)).damage, [], 'the store is undamaged');
  });
