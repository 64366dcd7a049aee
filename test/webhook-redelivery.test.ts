/** Deliveries as operators look at them and send them again (interfaces.md §3, §4). */
import t from 'tap';
import { Hours, Minutes, Seconds } from '../proto/clock.js';
import { eventsOf, testBytes, testMac } from './helpers/test-gateway.js';
import { connectedLock } from './helpers/test-lock.js';
import { type Answer, testReceiver } from './helpers/test-receiver.js';
import { deliveriesOf, eventually, sequencesOf, toNextTimer, webhookBench } from './helpers/webhook-bench.js';

const MAC = testMac();
const OTHER = testMac(2);

const failing: Answer = (_request, response) => void response.writeHead(500).end('sorry');
const fine: Answer = (_request, response) => void response.writeHead(204).end();

t.test('each delivery is listed with its attempts, one that went well at once included', async (t) => {
  const { clock, gateway, receiver } = await webhookBench(t);
  receiver.answer = (request, response) => (request.json.sequence === 2 ? failing : fine)(request, response);
  const [lock, other] = [await connectedLock(t, gateway, MAC), await connectedLock(t, gateway, OTHER)];
  for (const sequence of [1, 2, 3]) await lock.send(testBytes(sequence));
  await other.send(testBytes(1));
  await eventually('all are noted', async () => {
    return (await deliveriesOf(gateway)).every(({ attempts }) => attempts.length === 1);
  });
  const states = (await deliveriesOf(gateway)).map(({ uplink, state, nextAttemptAtMs }) => {
    return [uplink.mac, uplink.sequence, state, nextAttemptAtMs];
  });
  t.same(states, [
    [OTHER, 1, 'delivered', null],
    [MAC, 3, 'delivered', null],
    [MAC, 2, 'pending', clock.now() + Seconds(5)],
    [MAC, 1, 'delivered', null],
  ]);
  const failed = { number: 1, atMs: clock.now(), status: 500, error: 'the receiver answered 500', answer: 'sorry' };
  t.match(await deliveriesOf(gateway, ['pending']), [{ attempts: [failed] }]);
  const { webhooks } = gateway.store;
  const range = { urlIds: [1], states: ['delivered', 'pending'] as const, fromId: 0, toId: 99, limit: 9 };
  const ofLock = await webhooks.readDeliveries({ ...range, deviceId: 2 });
  t.match(ofLock, [{ uplink: { mac: OTHER } }]);
  t.equal(ofLock.length, 1);
  t.same(
    (await webhooks.readDeliveries({ ...range, limit: 2 })).map(({ uplink }) => uplink.id),
    [4, 3],
  );
  t.same(
    (await webhooks.readDeliveries({ ...range, fromId: 2, toId: 3 })).map(({ uplink }) => uplink.id),
    [3, 2],
  );
});

t.test('an event is sent again under its id, delivered or not, to one URL or all', async (t) => {
  const { gateway, receiver } = await webhookBench(t);
  const other = await testReceiver(t);
  const { url } = await gateway.accounts.addWebhookUrl({ url: other.url });
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await Promise.all([receiver.received(1), other.received(1)]);
  await eventually('both are noted', async () => (await deliveriesOf(gateway, ['delivered'])).length === 2);
  const id = String(receiver.requests[0]?.headers['webhook-id']);
  const { redelivery } = gateway.webhooks;
  t.same(await redelivery.resend(id, url.id), [{ urlId: url.id, became: 'due' }]);
  await other.received(2);
  t.equal(receiver.requests.length, 1, 'the other URL got nothing');
  await eventually('it is noted', async () => (await deliveriesOf(gateway, ['delivered'])).length === 2);
  t.same(await redelivery.resend(id), [
    { urlId: 1, became: 'due' },
    { urlId: url.id, became: 'due' },
  ]);
  await Promise.all([receiver.received(2), other.received(3)]);
  const bodies = [...receiver.requests, ...other.requests].map(({ headers, body }) => [headers['webhook-id'], body]);
  t.same(bodies, Array(5).fill([id, receiver.requests[0]?.body]), 'the same id and the same body');
  await eventually('all attempts are listed', async () => {
    const [, second] = await deliveriesOf(gateway, ['delivered']);
    return second?.attempts.map(({ number }) => number).join() === '1,2,3';
  });
});

t.test('one that is dead is listed, and sent again with the whole schedule before it', async (t) => {
  const { clock, gateway, receiver } = await webhookBench(t);
  receiver.answer = failing;
  const lock = await connectedLock(t, gateway, MAC);
  const dead = eventsOf(gateway, 'delivery', 1, ({ outcome }) => outcome === 'dead');
  let attempts = 0;
  gateway.events.on('delivery', () => {
    attempts += 1;
  });
  await lock.send(testBytes(1));
  for (let retry = 1; retry < 8; retry++) {
    await eventually('an attempt', () => attempts === retry && clock.nextDueMs !== undefined);
    await toNextTimer(clock);
  }
  const [{ eventId } = { eventId: '' }] = await dead;
  t.match(await deliveriesOf(gateway, ['dead']), [{ nextAttemptAtMs: null, attempts: { length: 8 } }]);
  const again = eventsOf(gateway, 'delivery', 1);
  await gateway.webhooks.redelivery.resend(eventId);
  t.match(await again, [{ number: 9, outcome: 'pending', nextAttemptAtMs: clock.now() + Seconds(5) }]);
  receiver.answer = fine;
  const delivered = eventsOf(gateway, 'delivery', 1);
  await toNextTimer(clock);
  t.match(await delivered, [{ number: 10, outcome: 'delivered' }]);
});

t.test('recover sends everything that is not delivered since a time, and nothing twice', async (t) => {
  const { clock, gateway, receiver, urlId } = await webhookBench(t);
  const { settings, redelivery } = gateway.webhooks;
  const lock = await connectedLock(t, gateway, MAC);
  const times: number[] = [];
  const send = async (sequence: number): Promise<void> => {
    const taken = eventsOf(gateway, 'uplink', 1);
    await lock.send(testBytes(sequence));
    times[sequence] = (await taken)[0]?.atMs ?? 0;
    await eventually('the next millisecond', () => gateway.clock.now() > (times[sequence] ?? 0));
  };
  await send(1);
  await eventually('the first is delivered', async () => (await deliveriesOf(gateway, ['delivered'])).length === 1);
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  const disabled = eventsOf(gateway, 'url-disabled', 1);
  await send(2);
  await disabled;
  for (const sequence of [3, 4, 5]) await send(sequence);
  await t.rejects(redelivery.recover({ sinceMs: 0, urlId }), { code: 'webhook-disabled' });
  t.same(await redelivery.recover({ sinceMs: 0 }), [{ urlId, events: null }]);
  receiver.answer = fine;
  await settings.set(urlId, { state: 'active' });
  t.same(await redelivery.recover({ sinceMs: times[4] ?? 0, untilMs: times[5], urlId }), [{ urlId, events: 1 }]);
  await receiver.received(3);
  t.same(sequencesOf(receiver), [1, 2, 4]);
  await eventually('it is noted', async () => (await deliveriesOf(gateway, ['delivered'])).length === 2);
  t.same(await redelivery.recover({ sinceMs: 0 }), [{ urlId, events: 3 }]);
  await receiver.received(6);
  t.same(sequencesOf(receiver).slice(3), [2, 3, 5], 'the dead one too, in order');
  await eventually('all is delivered', async () => (await deliveriesOf(gateway, ['delivered'])).length === 5);
  t.same(await redelivery.recover({ sinceMs: 0 }), [{ urlId, events: 0 }]);
  clock.advance(Hours(1));
  await send(6);
  await receiver.received(7);
  t.same(sequencesOf(receiver).at(-1), 6);
});

t.test('recover reaches further than one commit, and keeps the order of an ordered URL', async (t) => {
  const { gateway, receiver, urlId } = await webhookBench(t, { ordered: true });
  const { settings, redelivery } = gateway.webhooks;
  const lock = await connectedLock(t, gateway, MAC);
  await settings.set(urlId, { state: 'disabled' });
  const count = 503;
  const sent: Promise<void>[] = [];
  for (let sequence = 1; sequence <= count; sequence++) sent.push(lock.send(testBytes(sequence)));
  await Promise.all(sent);
  await settings.set(urlId, { state: 'active' });
  t.same(await redelivery.recover({ sinceMs: 0, urlId }), [{ urlId, events: count }]);
  await lock.send(testBytes(count + 1));
  await receiver.received(count + 1);
  t.same(
    sequencesOf(receiver),
    Array.from({ length: count + 1 }, (_, index) => index + 1),
  );
});

t.test('what waits for its first attempt is on its way, and is not sent twice', async (t) => {
  const { clock, gateway, receiver } = await webhookBench(t);
  const lock = await connectedLock(t, gateway, MAC);
  let release: () => void = () => undefined;
  receiver.answer = (_request, response) => {
    release = () => void response.writeHead(204).end();
  };
  const taken = eventsOf(gateway, 'uplink', 2);
  for (const sequence of [1, 2]) await lock.send(testBytes(sequence));
  await receiver.received(1);
  for (const { eventId } of await taken)
    t.same(await gateway.webhooks.redelivery.resend(eventId), [{ urlId: 1, became: 'on-its-way' }]);
  receiver.answer = fine;
  release();
  await receiver.received(2);
  clock.advance(Minutes(1));
  await lock.send(testBytes(3));
  await receiver.received(3);
  t.same(sequencesOf(receiver), [1, 2, 3]);
});
