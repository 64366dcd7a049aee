/**
 * A flipped bit in a stored ping (quality.md §2): the damaged bytes are never sent, other deliveries continue, and
 * operators see the damage. Once the row matches its checksum again, the ping is delivered.
 */
import path from 'node:path';
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { exportTrace } from '../../../gateway/http/operator/trace-export.js';
import { DELIVERY_STATES } from '../../../gateway/store/contract/webhook-store.js';
import { decodeUplink } from '../../../proto/wire/codec.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { Ping } from '../../../proto/wire/ping.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { requestWhy } from '../../helpers/cli/why-answer.js';
import { openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import type { Answer } from '../../helpers/gateway/test-receiver.js';
import {
  advanceToNextTimer,
  eventually,
  readDeliveries,
  receivedSequences,
  setUpWebhooks,
  type WebhookSetup,
} from '../../helpers/gateway/webhook-setup.js';
import { connectedLock, type TestLock } from '../../helpers/mqtt/test-lock.js';
import { storeFileOf, writeStored } from '../../helpers/store/stored-bytes.js';

const MAC = testMac();

const GPS: Ping = {
  kind: 'gps',
  reason: 'REASON_STATE_PING',
  lockState: 'locked',
  batteryPercent: 81,
  ebikeVolts: null,
  tetherState: 'detached',
  position: { latitudeDegrees: 52.3702157, longitudeDegrees: 4.8951679, uncertaintyMeters: 8 },
  speedMetersPerSecond: 0,
  directionDegrees: 0,
};

// What the receiver answers.
const failing: Answer = (_request, response) => void response.writeHead(500).end('sorry');
const succeeding: Answer = (_request, response) => void response.writeHead(204).end();

/** The latitude of a GPS ping; undefined if the bytes are none. */
function latitudeOf(bytes: Uint8Array): number | undefined {
  const read = decodeUplink(bytes);
  return read.ok && read.value.body.kind === 'gps' ? read.value.body.position?.latitudeDegrees : undefined;
}

/** Returns the bytes with one flipped bit that changes the latitude. */
function withFlippedLatitudeBit(bytes: Buffer): Buffer {
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = Buffer.from(bytes);
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    const latitude = latitudeOf(flipped);
    if (latitude !== undefined && latitude !== latitudeOf(bytes)) return flipped;
  }
  throw new Error('no bit makes another latitude');
}

const gps = (sequence: number): Buffer => testBytes(sequence, { body: GPS });

/** Makes a URL that failed once at the lock's first ping, and then damages that ping in the store. */
async function setUpDamagedPing(
  t: Test,
  url: { readonly ordered?: boolean } = {},
): Promise<WebhookSetup & { lock: TestLock }> {
  const setup = await setUpWebhooks(t, url);
  setup.receiver.answer = failing;
  const lock = await connectedLock(t, setup.gateway, MAC);
  const failed = waitForEvents(setup.gateway, 'delivery', 1);
  await lock.send(gps(1));
  await failed;
  // In a new store, the first uplink has the id 1.
  writeStored(setup.gateway, 1, withFlippedLatitudeBit(gps(1)));
  setup.receiver.answer = succeeding;
  return { ...setup, lock };
}

/** The notices about damaged events. */
async function noticesOf(gateway: Gateway): Promise<{ kind: string; subject: string; resolved_at: string | null }[]> {
  const { body } = await callOperator(gateway, 'GET', '/notices?kind=event-damaged');
  return (body as { notices: { kind: string; subject: string; resolved_at: string | null }[] }).notices;
}

for (const ordered of [false, true])
  t.test(`a damaged ping is never sent and does not delay other pings, ordered: ${ordered}`, async (t) => {
    const { clock, gateway, receiver, lock } = await setUpDamagedPing(t, { ordered });
    const attemptOrDamage = Promise.race([
      waitForEvents(gateway, 'event-damaged', 1),
      waitForEvents(gateway, 'delivery', 1),
    ]);
    await advanceToNextTimer(clock);
    await attemptOrDamage;
    const delivered = waitForEvents(gateway, 'delivery', 2);
    await lock.send(gps(2));
    await lock.send(gps(3));
    t.match(await delivered, [{ outcome: 'delivered' }, { outcome: 'delivered' }]);
    t.same(receivedSequences(receiver), [1, 2, 3], 'the first ping was sent only before it was damaged');
    for (const { json } of receiver.requests) t.equal(json.latitude, 52.3702157);
    const [waiting, ...more] = await readDeliveries(gateway, ['damaged']);
    t.match(waiting, { uplink: { sequence: 1 }, attempts: { length: 1 }, nextAttemptAtMs: null });
    t.same(more, []);
  });

t.test('the API, why, notices and resend show that a ping is damaged', async (t) => {
  const { clock, gateway } = await setUpDamagedPing(t);
  const damaged = waitForEvents(gateway, 'event-damaged', 1);
  await advanceToNextTimer(clock);
  const [{ eventId } = { eventId: '' }] = await damaged;
  const { body } = await callOperator(gateway, 'GET', '/deliveries?state=damaged');
  t.match(body, { deliveries: [{ event_id: eventId, state: 'damaged', reason: null, damaged: true }] });
  const { steps } = await requestWhy(gateway, eventId);
  t.match(steps[0], { kind: 'message', code: 'damaged', sentence: /checksum/ });
  t.match(
    steps.find(({ kind, code }) => kind === 'delivery' && code === 'damaged'),
    { sentence: /waiting, damaged.*resend/s },
  );
  t.match(await noticesOf(gateway), [{ kind: 'event-damaged', subject: eventId, resolved_at: null }]);
  const device = await callOperator(gateway, 'GET', `/devices/${formatMac(MAC)}`);
  t.equal(device.status, 200);
  t.match(device.body, { uplinks: [{ sequence: 1, damaged: true }] });
  const resendAnswer = await callOperator(gateway, 'POST', `/events/${eventId}/resend`, {});
  t.match(resendAnswer, { status: 409, body: { detail: /damaged/ } });
});

t.test('a repaired ping is delivered: on request, or at the next start', async (t) => {
  for (const trigger of ['resend', 'recover', 'start'] as const) {
    const { clock, gateway, receiver } = await setUpDamagedPing(t);
    const damaged = waitForEvents(gateway, 'event-damaged', 1);
    await advanceToNextTimer(clock);
    const [{ eventId } = { eventId: '' }] = await damaged;
    writeStored(gateway, 1, gps(1));
    const { redelivery } = gateway.webhooks;
    if (trigger === 'resend') await redelivery.resend(eventId);
    if (trigger === 'recover') t.match(await redelivery.recover({ sinceMs: 0 }), [{ events: 1 }]);
    if (trigger !== 'start') {
      await receiver.waitForRequests(2);
      t.equal(receiver.requests[1]?.json.latitude, 52.3702157);
      await eventually('the notice is resolved', async () => (await noticesOf(gateway))[0]?.resolved_at !== null);
      continue;
    }
    const folder = path.dirname(storeFileOf(gateway));
    await gateway.close();
    const restarted = await openGateway(t, folder, { deliveryClock: clock });
    await receiver.waitForRequests(2);
    t.equal(receiver.requests[1]?.json.latitude, 52.3702157);
    await eventually('it is recorded', async () => (await readDeliveries(restarted, ['delivered'])).length === 1);
    t.same(
      await readDeliveries(
        restarted,
        DELIVERY_STATES.filter((state) => state !== 'delivered'),
      ),
      [],
    );
  }
});

t.test('a ping that is damaged before its first attempt is not sent either', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const { settings } = gateway.webhooks;
  await settings.set(urlId, { state: 'disabled' });
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(gps(1));
  await lock.send(gps(2));
  writeStored(gateway, 1, withFlippedLatitudeBit(gps(1)));
  await settings.set(urlId, { state: 'active' });
  await gateway.webhooks.redelivery.recover({ sinceMs: 0 });
  await receiver.waitForRequests(1);
  await eventually('both are recorded', async () => {
    return (await readDeliveries(gateway, ['damaged', 'delivered'])).length === 2;
  });
  t.same(receivedSequences(receiver), [2]);
});

t.test('a test webhook uses the latest undamaged ping', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(gps(1));
  await lock.send(gps(2));
  await receiver.waitForRequests(2);
  writeStored(gateway, 2, withFlippedLatitudeBit(gps(2)));
  await gateway.webhooks.tester.test(MAC);
  t.match(receiver.requests[2]?.json, { sequence: 1, test: true, latitude: 52.3702157 });
});

t.test('“why” and an exported trace leave out a damaged ping, and say so', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t);
  const lock = await connectedLock(t, gateway, MAC);
  for (const sequence of [1, 2, 3]) await lock.send(gps(sequence));
  await receiver.waitForRequests(3);
  writeStored(gateway, 2, withFlippedLatitudeBit(gps(2)));
  const { steps } = await requestWhy(gateway, `${formatMac(MAC)} 1/3`);
  t.match(
    steps.find(({ kind, code }) => kind === 'bound' && code === 'damaged'),
    { sentence: /1 uplinks? whose stored bytes are damaged/ },
  );
  const id = (await gateway.store.findDeviceId(MAC)) ?? 0;
  const range = { devices: [{ id, mac: MAC }], sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER };
  const lines: string[] = [];
  for await (const line of exportTrace(gateway.store, range)) lines.push(line);
  const events = lines.map(
    (line) => JSON.parse(line) as { event?: string; note?: string; ping?: { latitude: number } },
  );
  t.same(
    events.filter(({ event }) => event === 'ping').map(({ ping }) => ping?.latitude),
    [52.3702157, 52.3702157],
  );
  t.match(
    events.filter(({ event }) => event === 'tick'),
    [{ note: /left out: uplink 1\/2 of A4.* checksum/ }],
  );
});
