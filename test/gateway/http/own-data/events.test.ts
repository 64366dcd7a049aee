/**
 * `GET /v1/events`, with which a merchant reads the events that its webhooks deliver: cursors, filters, long polling (a
 * call that waits for the next event), and events that were deleted because of their age (interfaces.md §2).
 */
import t from 'tap';
import type { Gateway } from '../../../../gateway/gateway.js';
import { encodeCursor } from '../../../../gateway/http/merchant/own-data/cursor.js';
import { ReadTurns } from '../../../../gateway/locks/list/read-turns.js';
import { LOG_START } from '../../../../gateway/store/contract/log/log-position.js';
import { readEventPage } from '../../../../gateway/webhooks/event-page.js';
import {
  MAX_WAITING,
  MAX_WAITING_PER_MERCHANT,
  NewEventSignal,
} from '../../../../gateway/webhooks/new-event-signal.js';
import { Hours, ManualClock, Seconds } from '../../../../proto/clock.js';
import { within } from '../../../helpers/clocks/change-signal.js';
import { MERCHANT, testBytes, testGateway, testMac } from '../../../helpers/gateway/test-gateway.js';
import { callMerchantApi, type MerchantAnswer } from '../../../helpers/http/merchant-call.js';
import { connectedLock } from '../../../helpers/mqtt/test-lock.js';

const START_MS = Date.UTC(2026, 10, 20, 6);

/** A page of events, as far as these tests read it. */
interface Page {
  readonly data: readonly { readonly sequence: number; readonly ping_type: string; readonly reason: string }[];
  readonly next_cursor: string;
}

/** @throws Error with the answer's text unless its status is 200 */
async function readEvents(gateway: Gateway, key: string, query: string): Promise<Page> {
  const { status, body, text } = await callMerchantApi(gateway, `/v1/events?${query}`, { key });
  if (status !== 200) throw new Error(text);
  return body as Page;
}

const sequencesOf = ({ data }: Page): number[] => data.map(({ sequence }) => sequence);

t.test(
  'each page continues after the previous one, also with events that arrive meanwhile or another filter',
  async (t) => {
    const gateway = await testGateway(t);
    const lock = await connectedLock(t, gateway, testMac());
    const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
    for (const sequence of [1, 2, 3]) await lock.send(testBytes(sequence));
    const first = await readEvents(gateway, key, 'limit=2');
    t.same(sequencesOf(first), [1, 2]);
    await lock.send(testBytes(4));
    const second = await readEvents(gateway, key, `limit=2&after=${first.next_cursor}`);
    t.same(sequencesOf(second), [3, 4]);
    const none = await readEvents(gateway, key, `after=${second.next_cursor}`);
    t.same(sequencesOf(none), []);
    await lock.send(testBytes(5));
    t.same(sequencesOf(await readEvents(gateway, key, `after=${none.next_cursor}`)), [5], 'a cursor of an empty page');

    const [{ ping_type, reason } = { ping_type: '', reason: '' }] = first.data;
    t.same(sequencesOf(await readEvents(gateway, key, `types=${ping_type}&reasons=${reason}`)), [1, 2, 3, 4, 5]);
    const filtered = await readEvents(gateway, key, `types=gps,close_connection&after=${first.next_cursor}`);
    t.same(sequencesOf(filtered), []);
    t.not(filtered.next_cursor, first.next_cursor, 'the cursor moves past events that the filter leaves out');
    t.same(sequencesOf(await readEvents(gateway, key, 'reasons=REASON_UNRECOGNIZED_99')), []);

    const byCursor = await callMerchantApi(gateway, `/v1/events?limit=2&cursor=${first.next_cursor}`, { key });
    t.same(sequencesOf(byCursor.body as Page), [3, 4], 'the parameter may have the name that other lists use');
    const [, link = ''] = /^<(.+)>; rel="next"$/.exec(String(byCursor.headers.link)) ?? [];
    t.same(sequencesOf((await callMerchantApi(gateway, link, { key })).body as Page), [5]);
  },
);

t.test('a refusal names the parameter that is wrong or has another merchant’s cursor', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Basil');
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  const { text: othersKey } = await gateway.merchants.apiKeys.create('Basil', 'test');
  const { next_cursor: othersCursor } = await readEvents(gateway, othersKey, '');
  const wrongQueries: readonly [query: string, pointer: string][] = [
    ['types=gsm', '/types'],
    ['reasons=REASON_THEFT,theft', '/reasons'],
    ['after=x', '/after'],
    ['cursor=x', '/cursor'],
    ['after=x&cursor=y', '/cursor'],
    [`after=${othersCursor}`, '/after'],
    ['wait=31', '/wait'],
    ['wait=-1', '/wait'],
    ['limit=0', '/limit'],
    ['limit=1001', '/limit'],
  ];
  for (const [query, pointer] of wrongQueries)
    t.match(
      await callMerchantApi(gateway, `/v1/events?${query}`, { key }),
      { status: 400, body: { errors: [{ pointer }] } },
      query,
    );
});

t.test('a call with wait is answered by the next event of its merchant, and of no other', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, testMac());
  await gateway.accounts.addMerchant('Basil');
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  const { text: othersKey } = await gateway.merchants.apiKeys.create('Basil', 'test');
  const answers: string[] = [];
  const others = readEvents(gateway, othersKey, 'wait=2').then((page) => {
    answers.push(`others: ${sequencesOf(page)}`);
  });
  const own = readEvents(gateway, key, 'wait=30').then((page) => {
    answers.push(`own: ${sequencesOf(page)}`);
  });
  await lock.send(testBytes(1));
  await own;
  await others;
  t.same(answers, ['own: 1', 'others: '], 'the other merchant’s call ends with its time, without an event');
});

t.test('a merchant’s waiting calls are limited, and a stop of the gateway cuts them off', async (t) => {
  const gateway = await testGateway(t);
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  const calls = Array.from({ length: MAX_WAITING_PER_MERCHANT + 1 }, () =>
    callMerchantApi(gateway, '/v1/events?wait=30', { key }),
  );
  const refused: MerchantAnswer = await Promise.race(calls);
  t.match(
    refused,
    { status: 429, headers: { 'retry-after': '1' }, body: { budget: 'waiting-calls' } },
    'the call that finds no place is answered first',
  );
  t.equal((await callMerchantApi(gateway, '/v1/events', { key })).status, 200, 'a call that does not wait needs none');
  const ended = Promise.allSettled(calls);
  await gateway.close();
  // Less than the 30 s for which the calls would wait.
  await within(15, () => 'the ends of the calls', ended);
});

t.test('a client that disconnects frees its place', async (t) => {
  const signal = new NewEventSignal(new ManualClock(0));
  const clients = Array.from({ length: MAX_WAITING_PER_MERCHANT }, () => new AbortController());
  // Merchant 1 waits for at most 30 s, or until its client disconnects.
  const waits = clients.map((client) => signal.listen(1, Seconds(30), client.signal));
  const { signal: otherClient } = new AbortController();
  t.equal(signal.listen(1, Seconds(30), otherClient), null);
  t.not(signal.listen(2, Seconds(30), otherClient), null, 'another merchant has its own places');
  for (const client of clients) client.abort();
  for (const wait of waits) {
    await wait?.next();
    t.equal(wait?.isOver(), true);
    wait?.end();
  }
  t.not(signal.listen(1, Seconds(30), otherClient), null);
});

t.test('the waiting calls of all merchants are limited, and finished waits leave no timer', async (t) => {
  const clock = new ManualClock(0);
  const signal = new NewEventSignal(clock);
  const { signal: client } = new AbortController();
  // Enough merchants for more calls than may wait, although each of them stays within its own limit.
  const merchants = Math.floor(MAX_WAITING / MAX_WAITING_PER_MERCHANT) + 1;
  const listenWithAll = () =>
    Array.from({ length: merchants * MAX_WAITING_PER_MERCHANT }, (_, index) => {
      return signal.listen(1 + (index % merchants), Seconds(30), client);
    }).filter((wait) => wait !== null);
  const bytesBefore = process.memoryUsage().heapUsed;
  const waits = listenWithAll();
  t.equal(waits.length, MAX_WAITING);
  t.ok(process.memoryUsage().heapUsed - bytesBefore < 10e6, 'a wait takes less than 10 KB');
  t.equal(signal.listen(merchants + 1, Seconds(30), client), null, 'also for another merchant');
  for (const wait of waits) wait.end();
  t.equal(clock.nextDueMs, undefined, 'no timer is left');
  waits[0]?.end();
  t.equal(listenWithAll().length, MAX_WAITING, 'a wait that is ended twice frees one place');
});

t.test('an event that arrives before a call waits wakes it; then the call waits until its time is up', async (t) => {
  const clock = new ManualClock(0);
  const signal = new NewEventSignal(clock);
  const wait = signal.listen(1, Seconds(30), new AbortController().signal);
  // As if the event were stored while the call reads the log, before it waits with `next`.
  signal.wake(new Set([1]));
  await wait?.next();
  t.equal(wait?.isOver(), false);
  const next = wait?.next();
  clock.advance(Seconds(30));
  await next;
  t.equal(wait?.isOver(), true, 'the time is up');
  wait?.end();
  t.equal(clock.nextDueMs, undefined, 'no timer is left');
});

t.test('a cursor before deleted events is refused; a cursor after them is not', async (t) => {
  const runClock = new ManualClock(START_MS);
  const gateway = await testGateway(t, { runClock });
  const lock = await connectedLock(t, gateway, testMac());
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  await lock.send(testBytes(1, { timeMs: START_MS }));
  const earlyPage = await readEvents(gateway, key, 'limit=1');
  runClock.advance(Hours(1));
  await lock.send(testBytes(2, { timeMs: runClock.now() }));
  const latePage = await readEvents(gateway, key, `after=${earlyPage.next_cursor}`);
  // As if events from before this time had been deleted: the events after the earlier page, which was read an hour
  // before, but none after the later page. The 90 s are more than the minute by which times of receipt in the log may
  // be out of order.
  await gateway.store.writeMetadata('swept-before-ms', String(START_MS + Hours(1) - Seconds(90)));
  t.same(sequencesOf(await readEvents(gateway, key, `after=${latePage.next_cursor}`)), []);
  const refusedCall = await callMerchantApi(gateway, `/v1/events?after=${earlyPage.next_cursor}`, { key });
  t.match(refusedCall, { status: 410, body: { code: 'events-gone', oldest_cursor: String } });
  const { oldest_cursor: oldest } = refusedCall.body as { oldest_cursor: string };
  t.same(sequencesOf(await readEvents(gateway, key, `after=${oldest}`)), [1, 2], 'the oldest cursor is accepted');
});

t.test('cursors of older versions are accepted; wrong positions are refused', async (t) => {
  const gateway = await testGateway(t);
  const [merchant] = await gateway.store.listMerchants();
  const lock = await connectedLock(t, gateway, testMac());
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  for (let sequence = 1; sequence <= 3; sequence += 1) await lock.send(testBytes(sequence));
  const list = `events ${merchant?.id}`;
  // A cursor has a position, and a time before which all events were read. Older versions wrote the id of the last
  // event that was read as the position.
  const olderCursor = encodeCursor(list, [2, 0]);
  t.same(sequencesOf(await readEvents(gateway, key, `after=${olderCursor}`)), [3]);
  // A position has the last id of each slot: the number of the gateway, of several with one store, that gave the ids.
  const severalSlots = encodeCursor(list, ['0:1,5:9007199254740000', 0]);
  t.same(sequencesOf(await readEvents(gateway, key, `after=${severalSlots}`)), [2, 3], 'slot 5 does not affect slot 0');
  for (const place of [-1, 1.5, 'x', null, '0:1,0:2']) {
    const refused = await callMerchantApi(gateway, `/v1/events?after=${encodeCursor(list, [place, 0])}`, { key });
    t.match(refused, { status: 400, body: { code: 'input-cursor' } }, String(place));
  }
});

t.test('a merchant’s budget is charged for all events that a page examines, also if none is selected', async (t) => {
  const gateway = await testGateway(t);
  const [merchant] = await gateway.store.listMerchants();
  const lock = await connectedLock(t, gateway, testMac());
  for (let sequence = 1; sequence <= 250; sequence += 1) await lock.send(testBytes(sequence));
  const filter = { types: ['gps'], reasons: undefined };
  const chargedRows: number[] = [];
  const budgets = { chargeRows: (_merchantId: number, rows: number) => void chargedRows.push(rows) };
  const parts = { store: gateway.store, runClock: gateway.clock, budgets };
  const pageOptions = { filter, limit: 10, turns: new ReadTurns(), signal: new AbortController().signal };
  const cursor = { after: LOG_START, completeToMs: 0 };
  const page = await readEventPage(parts, merchant?.id ?? 0, cursor, pageOptions);
  t.match(page, { events: [], isAtEnd: true });
  t.strictSame(chargedRows, [250]);
});
