/**
 * Operators list deliveries (of an event to a webhook URL) and send events again: `resend` sends one event, `recover`
 * all undelivered events since a time (interfaces.md §3, §4).
 */
import t from 'tap';
import { openKeys } from '../../../gateway/data-folder/keys.js';
import type { IncomingUplink } from '../../../gateway/store/contract/log/commit.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { Days, Hours, ManualClock, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { type Answer, testReceiver } from '../../helpers/gateway/test-receiver.js';
import {
  advanceToNextTimer,
  eventually,
  readDeliveries,
  receivedSequences,
  setUpWebhooks,
} from '../../helpers/gateway/webhook-setup.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
const OTHER_MAC = testMac(2);

const failing: Answer = (_request, response) => void response.writeHead(500).end('sorry');
const succeeding: Answer = (_request, response) => void response.writeHead(204).end();

t.test('each delivery is listed with its attempts, also one whose first attempt succeeded', async (t) => {
  const { clock, gateway, receiver } = await setUpWebhooks(t);
  receiver.answer = (request, response) => (request.json.sequence === 2 ? failing : succeeding)(request, response);
  const [lock, other] = [await connectedLock(t, gateway, MAC), await connectedLock(t, gateway, OTHER_MAC)];
  for (const sequence of [1, 2, 3]) await lock.send(testBytes(sequence));
  await other.send(testBytes(1));
  await eventually('all attempts are recorded', async () => {
    const deliveries = await readDeliveries(gateway);
    return deliveries.length === 4 && deliveries.every(({ attempts }) => attempts.length === 1);
  });
  const states = (await readDeliveries(gateway)).map(({ uplink, state, nextAttemptAtMs }) => {
    return [uplink.mac, uplink.sequence, state, nextAttemptAtMs];
  });
  t.same(states, [
    [OTHER_MAC, 1, 'delivered', null],
    [MAC, 3, 'delivered', null],
    [MAC, 2, 'pending', clock.now() + Seconds(5)],
    [MAC, 1, 'delivered', null],
  ]);
  const failed = { number: 1, atMs: clock.now(), status: 500, error: 'the receiver answered 500', answer: 'sorry' };
  t.match(await readDeliveries(gateway, ['pending']), [{ attempts: [failed] }]);
  const { webhooks } = gateway.store;
  const selection = { urlIds: [1], states: ['delivered', 'pending'] as const, fromId: 0, toId: 99, limit: 9 };
  const ofOtherLock = await webhooks.readDeliveries({ ...selection, deviceId: 2 });
  t.match(ofOtherLock, [{ uplink: { mac: OTHER_MAC } }]);
  t.equal(ofOtherLock.length, 1, 'none of the first lock');
  t.same(
    (await webhooks.readDeliveries({ ...selection, limit: 2 })).map(({ uplink }) => uplink.id),
    [4, 3],
  );
  t.same(
    (await webhooks.readDeliveries({ ...selection, fromId: 2, toId: 3 })).map(({ uplink }) => uplink.id),
    [3, 2],
  );
});

t.test('resend sends a delivered event again under its id, to one URL or all', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t);
  const other = await testReceiver(t);
  const { url } = await gateway.accounts.addWebhookUrl({ url: other.url });
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await Promise.all([receiver.waitForRequests(1), other.waitForRequests(1)]);
  await eventually(
    'both deliveries are recorded',
    async () => (await readDeliveries(gateway, ['delivered'])).length === 2,
  );
  const id = String(receiver.requests[0]?.headers['webhook-id']);
  const { redelivery } = gateway.webhooks;
  t.same(await redelivery.resend(id, url.id), [{ urlId: url.id, became: 'due' }]);
  await other.waitForRequests(2);
  t.equal(receiver.requests.length, 1, 'the other URL got nothing');
  await eventually('it is noted', async () => (await readDeliveries(gateway, ['delivered'])).length === 2);
  t.same(await redelivery.resend(id), [
    { urlId: 1, became: 'due' },
    { urlId: url.id, became: 'due' },
  ]);
  await Promise.all([receiver.waitForRequests(2), other.waitForRequests(3)]);
  const bodies = [...receiver.requests, ...other.requests].map(({ headers, body }) => [headers['webhook-id'], body]);
  t.same(bodies, Array(5).fill([id, receiver.requests[0]?.body]), 'the same id and the same body');
  await eventually('all attempts are listed', async () => {
    const [, second] = await readDeliveries(gateway, ['delivered']);
    return second?.attempts.map(({ number }) => number).join() === '1,2,3';
  });
});

// A delivery is dead after its eighth failed attempt: it has no further retry.
t.test('a dead delivery is listed, and resend starts its schedule again', async (t) => {
  const { clock, gateway, receiver } = await setUpWebhooks(t);
  receiver.answer = failing;
  const lock = await connectedLock(t, gateway, MAC);
  const dead = waitForEvents(gateway, 'delivery', 1, ({ outcome }) => outcome === 'dead');
  let attempts = 0;
  gateway.events.on('delivery', () => {
    attempts += 1;
  });
  await lock.send(testBytes(1));
  for (let retry = 1; retry < 8; retry++) {
    await eventually('an attempt', () => attempts === retry && clock.nextDueMs !== undefined);
    await advanceToNextTimer(clock);
  }
  const [{ eventId } = { eventId: '' }] = await dead;
  t.match(await readDeliveries(gateway, ['dead']), [{ nextAttemptAtMs: null, attempts: { length: 8 } }]);
  const again = waitForEvents(gateway, 'delivery', 1);
  await gateway.webhooks.redelivery.resend(eventId);
  t.match(await again, [{ number: 9, outcome: 'pending', nextAttemptAtMs: clock.now() + Seconds(5) }]);
  receiver.answer = succeeding;
  const delivered = waitForEvents(gateway, 'delivery', 1);
  await advanceToNextTimer(clock);
  t.match(await delivered, [{ number: 10, outcome: 'delivered' }]);
});

t.test('recover sends all undelivered events since a time, and none twice', async (t) => {
  const { clock, gateway, receiver, urlId } = await setUpWebhooks(t);
  const { settings, redelivery } = gateway.webhooks;
  const lock = await connectedLock(t, gateway, MAC);
  /** When each event was received, by its sequence number. */
  const receivedAtMs: number[] = [];
  const send = async (sequence: number): Promise<void> => {
    const stored = waitForEvents(gateway, 'uplink', 1);
    await lock.send(testBytes(sequence));
    receivedAtMs[sequence] = (await stored)[0]?.atMs ?? 0;
    // Each event in a millisecond of its own, so that a time separates one from the next.
    await eventually('the next millisecond', () => gateway.clock.now() > (receivedAtMs[sequence] ?? 0));
  };
  await send(1);
  await eventually('the first is delivered', async () => (await readDeliveries(gateway, ['delivered'])).length === 1);
  // 410 means that the URL is gone: the gateway disables it.
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  const disabled = waitForEvents(gateway, 'url-disabled', 1);
  await send(2);
  await disabled;
  for (const sequence of [3, 4, 5]) await send(sequence);
  await t.rejects(redelivery.recover({ sinceMs: 0, urlId }), { code: 'webhook-disabled' });
  t.same(await redelivery.recover({ sinceMs: 0 }), [{ urlId, events: null }], 'a disabled URL is left out');
  receiver.answer = succeeding;
  await settings.set(urlId, { state: 'active' });
  t.same(await redelivery.recover({ sinceMs: receivedAtMs[4] ?? 0, untilMs: receivedAtMs[5], urlId }), [
    { urlId, events: 1 },
  ]);
  await receiver.waitForRequests(3);
  t.same(receivedSequences(receiver), [1, 2, 4]);
  await eventually('it is noted', async () => (await readDeliveries(gateway, ['delivered'])).length === 2);
  t.same(await redelivery.recover({ sinceMs: 0 }), [{ urlId, events: 3 }]);
  await receiver.waitForRequests(6);
  t.same(receivedSequences(receiver).slice(3), [2, 3, 5], 'the dead event too, in order');
  await eventually('all is delivered', async () => (await readDeliveries(gateway, ['delivered'])).length === 5);
  t.same(await redelivery.recover({ sinceMs: 0 }), [{ urlId, events: 0 }]);
  clock.advance(Hours(1));
  await send(6);
  await receiver.waitForRequests(7);
  t.same(receivedSequences(receiver).at(-1), 6, 'no retry was left from before');
});

t.test('recover works across several commits and keeps the order of an ordered URL', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t, { ordered: true });
  const { settings, redelivery } = gateway.webhooks;
  const lock = await connectedLock(t, gateway, MAC);
  await settings.set(urlId, { state: 'disabled' });
  // More than one commit of recovered events holds.
  const count = 503;
  const sent: Promise<void>[] = [];
  for (let sequence = 1; sequence <= count; sequence++) sent.push(lock.send(testBytes(sequence)));
  await Promise.all(sent);
  await settings.set(urlId, { state: 'active' });
  t.same(await redelivery.recover({ sinceMs: 0, urlId }), [{ urlId, events: count }]);
  await lock.send(testBytes(count + 1));
  await receiver.waitForRequests(count + 1);
  t.same(
    receivedSequences(receiver),
    Array.from({ length: count + 1 }, (_, index) => index + 1),
  );
});

t.test('an event that waits for its first attempt, or for its answer, is not sent twice by resend', async (t) => {
  const { clock, gateway, receiver } = await setUpWebhooks(t);
  const lock = await connectedLock(t, gateway, MAC);
  let answerFirst: () => void = () => undefined;
  receiver.answer = (_request, response) => {
    answerFirst = () => void response.writeHead(204).end();
  };
  const stored = waitForEvents(gateway, 'uplink', 2);
  for (const sequence of [1, 2]) await lock.send(testBytes(sequence));
  await receiver.waitForRequests(1);
  for (const { eventId } of await stored)
    t.same(await gateway.webhooks.redelivery.resend(eventId), [{ urlId: 1, became: 'on-its-way' }]);
  receiver.answer = succeeding;
  answerFirst();
  await receiver.waitForRequests(2);
  clock.advance(Minutes(1));
  await lock.send(testBytes(3));
  await receiver.waitForRequests(3);
  t.same(receivedSequences(receiver), [1, 2, 3]);
});

t.test(
  'a URL that is added with the events of the last day gets them once, in order, and then new events',
  async (t) => {
    const folder = tempFolder(t);
    const nowMs = systemClock.now();
    const sinceMs = nowMs - Days(1);
    const expectedOf = (mac: Mac, sequences: readonly number[]) =>
      sequences.map((sequence) => `${formatMac(mac)} ${sequence}`);
    const [lastDay, before] = await writeHistory(folder, nowMs, sinceMs);
    t.ok(lastDay.length > 40 && before.length > 80, 'there are many of both');
    const clock = new ManualClock(nowMs);
    const first = await openGateway(t, folder, { deliveryClock: clock });
    const receiver = await testReceiver(t);
    await first.accounts.addWebhookUrl({ url: receiver.url, sinceMs });
    // Each of the two locks has made as many.
    await receiver.waitForRequests(2 * lastDay.length);
    await eventually('all deliveries are recorded', async () => {
      return (await readDeliveries(first, ['delivered'])).length === 2 * lastDay.length;
    });
    // `kept` is the state of events that came while their URL was disabled.
    t.same(await readDeliveries(first, ['pending', 'dead', 'kept']), [], 'the URL gets no other events');
    await first.close();
    const second = await openGateway(t, folder, { deliveryClock: clock });
    const { secret } = await second.accounts.addDevice({ mac: testMac(3) });
    const lock = await TestLock.connect(t, second.mqttPort, testMac(3), secret);
    await lock.send(testBytes(1));
    await receiver.waitForRequests(2 * lastDay.length + 1);
    const receivedEvents = receiver.requests.map(({ json }) => `${json.mac_addr} ${json.sequence}`);
    for (const mac of [MAC, OTHER_MAC])
      t.same(
        receivedEvents.filter((each) => each.startsWith(formatMac(mac))),
        expectedOf(mac, lastDay),
        'each event of the day once, in order',
      );
    t.same(receivedEvents.at(-1), expectedOf(testMac(3), [1])[0], 'then the events after it was added');
    t.equal(receivedEvents.length, 2 * lastDay.length + 1);
  },
);

/**
 * Stores three days of a merchant with two locks: each lock sends a ping every half hour, and an acknowledgement of a
 * command, which is no event. Returns the sequence numbers of the pings since `sinceMs`, and of the earlier ones.
 */
async function writeHistory(folder: string, nowMs: number, sinceMs: number): Promise<[number[], number[]]> {
  const store = await openStore(sqliteUrl(folder));
  await store.addMerchant(MERCHANT, 0);
  for (const mac of [MAC, OTHER_MAC])
    await store.addDevice({ mac, merchant: MERCHANT, simulated: false, secretHash: Buffer.alloc(32), nowMs: 0 });
  const [lastDay, before]: [number[], number[]] = [[], []];
  let sequence = 0;
  // One ping is received exactly at `sinceMs`.
  for (let receivedAtMs = sinceMs - Days(2); receivedAtMs < nowMs; receivedAtMs += Minutes(30)) {
    sequence += 1;
    (receivedAtMs >= sinceMs ? lastDay : before).push(sequence);
    const [ping, acknowledgement] = [1, 0]; // the store's numbers for these kinds of uplinks
    const incoming = [1, 2].flatMap((deviceId) =>
      [ping, acknowledgement].map((kind): IncomingUplink => {
        const bytes = testBytes(sequence);
        const boot = kind === ping ? 1 : 2;
        const uplinkKey = { credentialId: deviceId, boot, sequence, digest: uplinkDigest(bytes) };
        return { type: 'uplink', deviceId, merchantId: 1, ...uplinkKey, kind, bytes, receivedAtMs, buffered: false };
      }),
    );
    await store.append({ incoming, judged: [], states: new Map() });
  }
  await store.close();
  // Makes the folder's key: a gateway refuses to start on a store that has hashed secrets if there is none.
  const isInUse = false;
  openKeys(folder, isInUse);
  return [lastDay, before];
}

/** Advances the clock by ten minutes, with every retry and probe that is due in them. */
async function passTenMinutes(clock: ManualClock, isAttempting: () => boolean): Promise<void> {
  const endMs = clock.now() + Minutes(10);
  for (let nextMs = clock.now(); nextMs <= endMs; nextMs = clock.nextDueMs ?? Infinity) {
    clock.advance(nextMs - clock.now());
    await eventually('the next attempt is planned', () => clock.nextDueMs !== undefined && !isAttempting());
  }
  clock.advance(endMs - clock.now());
}

t.test('recover after an outage of the receiver of two hours sends exactly the missing events', async (t) => {
  // No other wait is as long as an attempt's time limit, so that a timer that far away means an attempt in progress.
  const timeoutMs = Seconds(13);
  const { clock, gateway, receiver, urlId } = await setUpWebhooks(t, { timeoutMs });
  const lock = await connectedLock(t, gateway, MAC);
  const accepted: unknown[] = [];
  const acceptingReceiver: Answer = (request, response) => {
    accepted.push(request.json.sequence);
    succeeding(request, response);
  };
  let sequence = 0;
  /** Sends the next ping, and returns when it was received, ms since the epoch. */
  const send = async (): Promise<number> => {
    const stored = waitForEvents(gateway, 'uplink', 1);
    await lock.send(testBytes(++sequence));
    const [{ atMs } = { atMs: 0 }] = await stored;
    await eventually('the next millisecond', () => gateway.clock.now() > atMs);
    return atMs;
  };
  const isAttempting = (): boolean => clock.isDueAt(clock.now() + timeoutMs);
  receiver.answer = acceptingReceiver;
  const sendSix = async (): Promise<void> => {
    for (let count = 0; count < 6; count++) await send();
    await eventually(
      'all are delivered',
      async () => (await readDeliveries(gateway, ['delivered'])).length === sequence,
    );
  };
  await sendSix();
  receiver.answer = failing;
  const downMs = await send();
  await passTenMinutes(clock, isAttempting);
  for (let count = 1; count < 12; count++) {
    await send();
    await passTenMinutes(clock, isAttempting);
  }
  const backMs = gateway.clock.now();
  t.same(accepted, [1, 2, 3, 4, 5, 6], 'nothing arrives during the outage of two hours');
  receiver.answer = acceptingReceiver;
  const [recovered] = await gateway.webhooks.redelivery.recover({ sinceMs: downMs, untilMs: backMs });
  t.equal(recovered?.urlId, urlId);
  // The next attempt is the open circuit's probe. An event whose attempt failed meanwhile has its own next attempt.
  await eventually('the missing events have arrived', async () => {
    const pending = await readDeliveries(gateway, ['pending']);
    // A circuit that is open may put off an attempt beyond its own due time. Here all clocks are the manual one.
    const dueMs = Math.min(...pending.map((each) => gateway.webhooks.nextAttemptWallClockMs(each) ?? Infinity));
    if (!isAttempting() && dueMs < Infinity) clock.advance(dueMs - clock.now());
    return accepted.length === sequence;
  });
  await sendSix();
  // Six before the outage, twelve in it and six after it.
  const all = Array.from({ length: 24 }, (_, index) => index + 1);
  t.same(
    [...accepted].sort((a, b) => Number(a) - Number(b)),
    all,
    'each event was accepted exactly once',
  );
  t.same(
    await gateway.webhooks.redelivery.recover({ sinceMs: 0 }),
    [{ urlId, events: 0 }],
    'no undelivered event is left',
  );
  clock.advance(Days(2));
  await send();
  await eventually('the last one', () => accepted.length === 25);
  t.equal(accepted.at(-1), 25, 'no event is sent twice');
});
