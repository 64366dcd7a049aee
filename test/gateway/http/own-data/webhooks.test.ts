/**
 * A merchant's webhook URLs and deliveries over HTTP (/v1/webhooks): figures, pages, sending events again, and recovery
 * of undelivered ones (interfaces.md §2). A delivery that was not made because its URL was disabled has the state
 * `kept`.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import type { GatewayOptions } from '../../../../gateway/gateway.js';
import { type AttemptFigures, sumUpAttempts } from '../../../../gateway/store/contract/webhooks/attempt-figures.js';
import { NEWEST_ATTEMPTS, SUCCEEDED_EVENTS } from '../../../../gateway/store/sqlite/tables/webhooks/webhook-rows.js';
import { Hours, ManualClock } from '../../../../proto/clock.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { MERCHANT, testBytes, testGateway, testMac } from '../../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../../helpers/gateway/test-receiver.js';
import { eventually, receivedSequences } from '../../../helpers/gateway/webhook-setup.js';
import { callMerchantApi, type MerchantCall } from '../../../helpers/http/merchant-call.js';
import { ownDataSite } from '../../../helpers/http/own-data/site.js';
import { connectedLock } from '../../../helpers/mqtt/test-lock.js';
import type { Teardown } from '../../../helpers/store/temp-folder.js';

/** A page of a list, as far as these tests read it. */
interface DeliveryPage {
  readonly data: readonly {
    readonly event_id: string;
    readonly mac_addr: string;
    readonly received_at: string;
    readonly state: string;
    readonly attempts: unknown;
  }[];
  readonly next_cursor: string | null;
}

/** A gateway with a receiver at a secret path of its merchant's URL, and a function that calls its interface. */
async function setUpGateway(t: Teardown, options: GatewayOptions = {}) {
  const gateway = await testGateway(t, options);
  const receiver = await testReceiver(t);
  const { url } = await gateway.accounts.addWebhookUrl({ url: `${receiver.url}secret`, headers: { 'X-Team': 'b' } });
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  const lock = await connectedLock(t, gateway, testMac());
  const call = (where: string, terms: MerchantCall = {}) => callMerchantApi(gateway, where, { key, ...terms });
  const list = async (where: string) => (await call(where)).body as unknown as DeliveryPage;
  return { gateway, receiver, url, lock, call, list };
}

t.test('a URL is shown by its origin, with figures about its newest attempts', async (t) => {
  const { receiver, url, lock, call } = await setUpGateway(t);
  t.match((await call('/v1/webhooks')).body, {
    data: [{ attempts: 0, success_rate: null, p95_ms: null, last_success_at: null, last_error: null }],
  });
  await lock.send(testBytes(1));
  await receiver.waitForRequests(1);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  await lock.send(testBytes(2));
  await eventually('both attempts are counted', async () => /"attempts":2/.test((await call('/v1/webhooks')).text));
  const { text, body } = await call('/v1/webhooks');
  t.match(body, {
    data: [
      {
        id: url.id,
        origin: new URL(url.url).origin,
        state: 'active',
        success_rate: 0.5,
        p95_ms: Number,
        last_error: { status: 500, error: /500/ },
        failing_since: String,
      },
    ],
    next_cursor: null,
  });
  t.notMatch(text, /secret|X-Team/i, 'neither the path nor headers are shown');
});

t.test('pages of deliveries are newest first and have each delivery once, also while events arrive', async (t) => {
  const { receiver, url, lock, list } = await setUpGateway(t);
  for (let sequence = 1; sequence <= 7; sequence += 1) await lock.send(testBytes(sequence));
  await receiver.waitForRequests(7);
  const deliveriesPath = `/v1/webhooks/${url.id}/deliveries`;
  const allAtOnce = await list(deliveriesPath);
  t.equal(allAtOnce.data.length, 7);
  t.equal(allAtOnce.next_cursor, null);
  const paged: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: DeliveryPage = await list(`${deliveriesPath}?limit=3&cursor=${cursor}`);
    paged.push(...page.data.map(({ event_id }) => event_id));
    cursor = page.next_cursor;
    await lock.send(testBytes(8 + paged.length));
  }
  t.strictSame(
    paged,
    allAtOnce.data.map(({ event_id }) => event_id),
  );
  t.match(paged[0], /_7_/, 'an event’s id has the sequence number of its ping');
});

t.test('deliveries are selected by lock and by time of receipt', async (t) => {
  const { gateway, receiver, url, lock, call, list } = await setUpGateway(t);
  const other = await connectedLock(t, gateway, testMac(2));
  await lock.send(testBytes(1));
  await other.send(testBytes(2));
  await receiver.waitForRequests(2);
  const deliveriesPath = `/v1/webhooks/${url.id}/deliveries`;
  const [ownDelivery] = (await list(`${deliveriesPath}?mac_addr=${formatMac(testMac())}`)).data;
  t.equal(ownDelivery?.mac_addr, formatMac(testMac()));
  t.equal((await list(`${deliveriesPath}?mac_addr=${formatMac(testMac())}`)).data.length, 1);
  t.equal(
    (await list(`${deliveriesPath}?mac_addr=${formatMac(testMac(2))}&from=${ownDelivery?.received_at}`)).data.length,
    1,
  );
  const later = new Date(Date.parse(ownDelivery?.received_at ?? '') + Hours(1)).toISOString();
  t.equal((await list(`${deliveriesPath}?from=${later}`)).data.length, 0, 'none is that late');
  t.match(await call(`${deliveriesPath}?from=soon`), { status: 400, body: { errors: [{ pointer: '/from' }] } });
  await gateway.accounts.addMerchant('Basil');
  await gateway.accounts.addDevice({ mac: testMac(3), merchant: 'Basil' });
  for (const mac of [formatMac(testMac(3)), formatMac(testMac(4))])
    t.match(await call(`${deliveriesPath}?mac_addr=${mac}`), { status: 404, body: { code: 'no-such-device' } }, mac);
  const { next_cursor: cursor } = await list(`${deliveriesPath}?limit=1`);
  t.not(cursor, null);
  t.match(
    await call(`${deliveriesPath}?limit=1&cursor=${cursor}&from=${later}`),
    { status: 400 },
    'a cursor is valid only for its query',
  );
});

t.test('the last 24 hours have delivered, failed and waiting events, by the hour of their receipt', async (t) => {
  const runClock = new ManualClock(Date.UTC(2026, 10, 20, 6, 30));
  const { receiver, url, lock, call } = await setUpGateway(t, { runClock });
  const hours = async () => {
    const { body } = await call(`/v1/webhooks/${url.id}/hours`);
    return (body as unknown as { data: { from: string; [count: string]: unknown }[] }).data;
  };
  const none = { delivered: 0, failed_attempts: 0, dead: 0, waiting: 0, estimated: false };
  const empty = await hours();
  t.equal(empty.length, 24, 'an entry for each hour');
  t.strictSame(empty.at(-1), { from: '2026-11-20T06:00:00.000Z', ...none });
  t.strictSame(empty[0], { from: '2026-11-19T07:00:00.000Z', ...none });
  await lock.send(testBytes(1));
  await receiver.waitForRequests(1);
  await eventually('one is delivered', async () => (await hours()).at(-1)?.delivered === 1);
  runClock.advance(Hours(1));
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  await lock.send(testBytes(2));
  await eventually('one has failed', async () => (await hours()).at(-1)?.failed_attempts === 1);
  const [before, present] = (await hours()).slice(-2);
  t.strictSame(before, { ...none, from: '2026-11-20T06:00:00.000Z', delivered: 1 });
  t.strictSame(present, { ...none, from: '2026-11-20T07:00:00.000Z', failed_attempts: 1, waiting: 1 });
});

t.test('events that a disabled URL does not get count as waiting, except those its filter leaves out', async (t) => {
  const runClock = new ManualClock(Date.UTC(2026, 10, 20, 6, 30));
  const { gateway, url, lock, call } = await setUpGateway(t, { runClock });
  const waiting = async () => {
    const { body } = await call(`/v1/webhooks/${url.id}/hours`);
    return (body as unknown as { data: { waiting: number }[] }).data.at(-1)?.waiting;
  };
  await gateway.webhooks.settings.set(url.id, { state: 'disabled' });
  for (let sequence = 1; sequence <= 3; sequence += 1) await lock.send(testBytes(sequence));
  t.equal(await waiting(), 3);
  await gateway.webhooks.settings.set(url.id, { filter: { reasons: ['REASON_THEFT'] } });
  t.equal(await waiting(), 0);
});

t.test('deliveries are selected by state, resent and recovered', async (t) => {
  const { gateway, receiver, url, lock, call, list } = await setUpGateway(t);
  const deliveries = `/v1/webhooks/${url.id}/deliveries`;
  await lock.send(testBytes(1));
  await receiver.waitForRequests(1);
  await eventually('it is delivered', async () => (await list(`${deliveries}?state=delivered`)).data.length === 1);
  const [delivered] = (await list(deliveries)).data;
  const resent = await call(`${deliveries}/${delivered?.event_id}/resend`, { method: 'POST' });
  t.match(resent, { status: 202, body: { event_id: delivered?.event_id, webhook_id: url.id, became: 'due' } });
  await receiver.waitForRequests(2);
  await eventually('nothing waits', async () => (await list(`${deliveries}?state=pending`)).data.length === 0);

  await gateway.webhooks.settings.set(url.id, { state: 'disabled' });
  await lock.send(testBytes(2));
  await lock.send(testBytes(3));
  t.match(await list(`${deliveries}?state=kept`), { data: [{ state: 'kept', attempts: [] }, { state: 'kept' }] });
  const since = { method: 'POST', body: { since: '2026-01-01T00:00:00Z' } } as const;
  t.match(await call(`/v1/webhooks/${url.id}/recover`, since), { status: 409, body: { code: 'webhook-disabled' } });
  await gateway.webhooks.settings.set(url.id, { state: 'active' });
  const until = { ...since, body: { ...since.body, until: '2026-01-01T00:00:00Z' } };
  t.match(await call(`/v1/webhooks/${url.id}/recover`, until), {
    status: 400,
    body: { errors: [{ pointer: '/until' }] },
  });
  const sinceMs = Date.UTC(2026, 0, 1);
  const { redelivery } = gateway.webhooks;
  const first = redelivery.recoverOwn(url, { sinceMs, untilMs: sinceMs + 1 });
  await t.rejects(redelivery.recoverOwn(url, { sinceMs }), { code: 'recovery-under-way' }, 'one recovery at a time');
  t.equal(await first, 0);
  t.match(await call(`/v1/webhooks/${url.id}/recover`, since), { status: 202, body: { events: 2 } });
  await receiver.waitForRequests(4);
  t.strictSame(receivedSequences(receiver), [1, 1, 2, 3]);
});

t.test('another merchant’s event gets the answer of an unknown event, also at the caller’s own URL', async (t) => {
  const { gateway, amber, basil } = await ownDataSite(t);
  const resend = (event: string, key: string, id: number) =>
    callMerchantApi(gateway, `/v1/webhooks/${id}/deliveries/${event}/resend`, { method: 'POST', key });
  const answers = [
    await resend(amber.event, basil.key, basil.webhookId),
    // Well-formed, but there is no such lock.
    await resend('evt_A4C138000063_1_1_1_0123456789abcdef', basil.key, basil.webhookId),
    await resend('nonsense', basil.key, basil.webhookId),
  ];
  for (const { status, body } of answers) {
    t.equal(status, 404);
    t.strictSame(body, answers[0]?.body, 'the same answer');
  }
  t.match(await resend(amber.event, amber.key, amber.webhookId), { status: 202 });
});

t.test('figures sum up attempts in any order', async (t) => {
  const attempt = (atMs: number, durationMs: number, error: string | null = null) => {
    return { atMs, durationMs, status: error === null ? 200 : 500, error };
  };
  const noFigures: AttemptFigures = {
    attempts: 0,
    successRate: null,
    p95Ms: null,
    lastSuccessAtMs: null,
    lastError: null,
  };
  t.strictSame(sumUpAttempts([]), noFigures);
  const twenty = Array.from({ length: 20 }, (_, index) => attempt(index, index + 1));
  t.match(sumUpAttempts(twenty.reverse()), { attempts: 20, successRate: 1, p95Ms: 19, lastSuccessAtMs: 19 });
  const failed = [attempt(5, 1, 'b'), attempt(2, 9), attempt(9, 2, 'a'), attempt(7, 3, 'c')];
  t.match(sumUpAttempts(failed), {
    successRate: 0.25,
    p95Ms: 9,
    lastSuccessAtMs: 2,
    lastError: { atMs: 9, error: 'a' },
  });
  t.match(sumUpAttempts(failed, 7), { attempts: 2, successRate: 0, lastError: { atMs: 9 } }, 'since a time');
});

t.test('delivered events after a URL’s cursor are found by their attempts, not by reading the log', async (t) => {
  const { folder } = await ownDataSite(t);
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  t.teardown(() => db.close());
  // A plan does not depend on the values.
  const parameters = { urlId: 1, merchantId: 1, from: 1, to: 9, kindsBelow: 9, limit: 100 };
  const plan = db.prepare(`EXPLAIN QUERY PLAN ${SUCCEEDED_EVENTS}`).all(parameters) as { detail: string }[];
  t.equal(plan[0]?.detail, 'SEARCH a USING INDEX attempt_by_event (url_id=? AND uplink_id>? AND uplink_id<?)');
  t.notMatch(plan.map(({ detail }) => detail).join(), /SCAN|TEMP B-TREE/);
});

t.test('the newest attempts are read by an index', async (t) => {
  const { folder } = await ownDataSite(t);
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  t.teardown(() => db.close());
  const plan = (db.prepare(`EXPLAIN QUERY PLAN ${NEWEST_ATTEMPTS}`).all(1, 500) as { detail: string }[]).map(
    ({ detail }) => detail,
  );
  t.strictSame(plan, ['SEARCH attempt USING INDEX attempt_by_event (url_id=?)']);
});
