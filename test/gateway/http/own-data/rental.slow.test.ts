/**
 * A rental business needs nothing but the merchants' interface and an API key: it finds a lock, unlocks it, follows the
 * ride, locks it, gets its bill, and reads what its webhooks lost (interfaces.md §2). The test calls through
 * third-party clients that work from the OpenAPI document.
 */
import t, { type Test } from 'tap';
import type { Gateway } from '../../../../gateway/gateway.js';
import type { Month } from '../../../../gateway/usage/month.js';
import { makeStatement } from '../../../../gateway/usage/statement.js';
import { Hours, ManualClock, Minutes } from '../../../../proto/clock.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { MERCHANT, testBytes, testGateway, testMac } from '../../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../../helpers/gateway/test-receiver.js';
import {
  fetchClient,
  type Operation,
  type RentalClient,
  swaggerRentalClient,
} from '../../../helpers/http/rental/rental-client.js';
import { RentedLock, RIDE } from '../../../helpers/http/rental/rented-lock.js';
import { connectedLock } from '../../../helpers/mqtt/test-lock.js';

// The operations that the business calls.
const LIST: Operation = { method: 'GET', path: '/v1/locks', tag: 'locks', id: 'listLocks' };
const SHOW: Operation = { method: 'GET', path: '/v1/locks/{mac}', tag: 'locks', id: 'getLock' };
const RENAME: Operation = { method: 'PATCH', path: '/v1/locks/{mac}', tag: 'locks', id: 'changeLock' };
const TRACK: Operation = { method: 'GET', path: '/v1/locks/{mac}/track', tag: 'locks', id: 'getTrack' };
const SEND: Operation = { method: 'POST', path: '/v1/locks/{mac}/commands', tag: 'commands', id: 'sendCommand' };
const COMMAND: Operation = { method: 'GET', path: '/v1/commands/{id}', tag: 'commands', id: 'getCommand' };
const EVENTS: Operation = { method: 'GET', path: '/v1/events', tag: 'events', id: 'listEvents' };
const USAGE: Operation = { method: 'GET', path: '/v1/usage', tag: 'billing', id: 'listUsage' };
const STATEMENT: Operation = { method: 'GET', path: '/v1/statements/{month}', tag: 'billing', id: 'getStatement' };

/** A page of events, as far as this test reads it. */
interface EventPage {
  readonly data: readonly { readonly reason: string; readonly lock_state: string; readonly sequence: number }[];
  readonly next_cursor: string;
}

interface CommandJson {
  readonly id: number;
  readonly state: string;
}

/** Reads all events after a cursor; waits for at least one of them. */
async function eventsAfter(call: RentalClient, cursor: string | undefined): Promise<EventPage> {
  const query = { ...(cursor !== undefined && { after: cursor }), wait: 10, limit: 100 };
  return (await call(EVENTS, { query })) as EventPage;
}

/** Runs the business, from the list to the bill. */
async function runBusiness(t: Test, gateway: Gateway, call: RentalClient, lock: RentedLock): Promise<void> {
  const mac = formatMac(testMac());
  await call(RENAME, { path: { mac }, body: { name: 'Bike 7', labels: { station: 'north' } } });
  t.match(await call(LIST, { query: { label: ['station=north'], presence: ['online'] } }), {
    data: [{ mac_addr: mac, name: 'Bike 7', lock_state: 'locked' }],
    next_cursor: null,
  });
  let cursor: string | undefined;
  /** The sequence numbers of all events read so far. */
  const readSequences: number[] = [];
  /** Reads events until one matches. */
  const readUntil = async (matches: (event: EventPage['data'][0]) => boolean): Promise<void> => {
    for (let hasFound = false; !hasFound; ) {
      const page = await eventsAfter(call, cursor);
      cursor = page.next_cursor;
      readSequences.push(...page.data.map(({ sequence }) => sequence));
      hasFound = page.data.some(matches);
    }
  };
  /** Sends a command, and waits until the lock has done it. */
  const runCommand = async (type: 'unlock' | 'lock', key: string): Promise<void> => {
    const request = { path: { mac }, header: { 'idempotency-key': key }, body: { type } };
    const sent = (await call(SEND, request)) as CommandJson;
    const state = type === 'unlock' ? 'unlocked' : 'locked';
    await readUntil(({ reason, lock_state }) => reason === 'REASON_STATE_PING' && lock_state === state);
    t.equal(lock.state, state);
    t.equal(((await call(SEND, request)) as CommandJson).id, sent.id, 'the repeated call sends nothing');
    t.match(await call(COMMAND, { path: { id: String(sent.id) } }), { id: sent.id, type, state: 'done' });
  };
  await readUntil(() => true);
  await runCommand('unlock', 'rental 1 start');
  await lock.ride();
  const lastPing = lock.sentPings.at(-1);
  await readUntil(({ sequence }) => sequence === lastPing);
  await runCommand('lock', 'rental 1 end');
  t.same(readSequences, lock.sentPings, 'every ping of the lock came once, in order');
  t.match(await call(TRACK, { path: { mac }, query: {} }), {
    geometry: { type: 'LineString', coordinates: RIDE.map(([latitude, longitude]) => [longitude, latitude]) },
  });
  t.match(await call(SHOW, { path: { mac } }), { lock_state: 'locked', position: { latitude: RIDE.at(-1)?.[0] } });

  const { data } = (await call(USAGE)) as { data: { month: string; bytes: number }[] };
  const month = data[0]?.month as Month;
  t.ok((data[0]?.bytes ?? 0) > 0, 'the lock has sent something');
  const merchantId = (await gateway.store.listMerchants())[0]?.id ?? 0;
  await gateway.store.usage.close(merchantId, month, gateway.clock.now(), (basis) =>
    JSON.stringify(makeStatement(basis)),
  );
  t.match(await call(STATEMENT, { path: { month } }), { month, lines: [{ mac, active: true }] });
}

for (const name of ['openapi-fetch', 'swagger-client'])
  t.test(`a rental business with ${name}: list, find, unlock, follow the ride, lock, bill`, async (t) => {
    const gateway = await testGateway(t);
    const { secret } = await gateway.accounts.addDevice({ mac: testMac() });
    const bootedAtMs = gateway.clock.now() - Minutes(2);
    const lock = await RentedLock.connect(t, gateway.mqttPort, testMac(), secret, bootedAtMs);
    const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'rental');
    const baseUrl = `http://127.0.0.1:${gateway.httpPort}`;
    const client = name === 'openapi-fetch' ? fetchClient(baseUrl, key) : await swaggerRentalClient(baseUrl, key);
    await runBusiness(t, gateway, client, lock);
  });

t.test('after a day of lost webhooks, reading events from the last cursor on returns each of them once', async (t) => {
  const runClock = new ManualClock(Date.UTC(2026, 10, 20, 6));
  const gateway = await testGateway(t, { runClock });
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'rental');
  const call = fetchClient(`http://127.0.0.1:${gateway.httpPort}`, key);
  const lock = await connectedLock(t, gateway, testMac());
  const sendPing = (sequence: number) => lock.send(testBytes(sequence, { timeMs: runClock.now() }));
  /** The sequence numbers of the events that the business has, from webhooks or from reading. */
  const known: unknown[] = [];
  receiver.answer = ({ json }, response) => {
    known.push(json.sequence);
    response.writeHead(204).end();
  };
  for (const sequence of [1, 2, 3]) await sendPing(sequence);
  await receiver.waitForRequests(3);
  // The business stores this cursor, before its receiver fails.
  const { next_cursor: storedCursor } = await eventsAfter(call, undefined);

  receiver.answer = (_request, response) => void response.writeHead(503).end();
  for (let hour = 0; hour < 24; hour += 1) {
    runClock.advance(Hours(1));
    await sendPing(4 + hour);
  }
  await receiver.waitForRequests(4);
  t.same(known, [1, 2, 3], 'the webhooks of the day are lost');
  for (let cursor = storedCursor, isAtEnd = false; !isAtEnd; ) {
    const query = { after: cursor, limit: 7 };
    const page = (await call(EVENTS, { query })) as EventPage;
    known.push(...page.data.map(({ sequence }) => sequence));
    isAtEnd = page.data.length === 0;
    cursor = page.next_cursor;
  }
  t.same(
    known,
    Array.from({ length: 27 }, (_, index) => index + 1),
    'each event once, in order',
  );
});
