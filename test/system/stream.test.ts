/**
 * A theft as pages see it: the merchant's stream and the operators' stream of a gateway in a separate process show the
 * theft and the ride, in order. After a kill, a client that reconnects with its last event id sees the theft too
 * (interfaces.md §2). That a lock is sent at most once a second is tested with a manual clock, in
 * test/gateway/live/feed.test.ts.
 */
import t from 'tap';
import { systemClock } from '../../proto/clock.js';
import { formatMac } from '../../proto/wire/mac.js';
import type { Ping } from '../../proto/wire/ping.js';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { testBytes, testMac } from '../helpers/gateway/test-gateway.js';
import { basicAuthorization } from '../helpers/http/merchant-call.js';
import { StreamClient, type StreamEvent } from '../helpers/http/stream-client.js';
import { TestLock } from '../helpers/mqtt/test-lock.js';

t.setTimeout(60_000);

const MAC = formatMac(testMac());
/** The ride: a few times, so many pings one after another, until the stream shows the last one. */
const BURSTS = 3;
const PINGS_PER_BURST = 4;
/** The lock's clock between two pings, ms. */
const PING_INTERVAL_MS = 250;

/** Where the ride is at a step. */
const longitudeAt = (step: number): number => 13.4 + step / 1_000;

/** A ping of a ride, some metres after the one before. */
function ridePing(reason: Ping['reason'], step: number): Ping {
  return {
    kind: 'gps',
    reason,
    lockState: 'locked',
    batteryPercent: 80,
    ebikeVolts: null,
    tetherState: 'detached',
    position: { latitudeDegrees: 52.52, longitudeDegrees: longitudeAt(step), uncertaintyMeters: 6 },
    speedMetersPerSecond: 5,
    directionDegrees: 90,
  };
}

/** The longitude of a lock's position in an event of a stream; NaN without a position. */
const longitudeOf = ({ data }: StreamEvent): number =>
  (data.position as { longitude: number } | null)?.longitude ?? Number.NaN;

t.test('a theft and its ride appear on the streams, and survive a kill', async (t) => {
  const gateway = await GatewayChild.start(t);
  const { secret } = await gateway.post<{ secret: string }>('/devices', { mac: MAC });
  const { key } = await gateway.post<{ key: string }>('/keys', { name: 'page' });
  const authorization = basicAuthorization(key);
  const open = (headers = {}) => StreamClient.open(t, gateway.httpPort, '/v1/stream', { authorization, ...headers });
  const stream = await open();
  const operators = await StreamClient.open(t, gateway.options.operatorPort, '/stream', {
    authorization: `Bearer ${gateway.token}`,
  });
  await stream.until(({ name }) => name === 'snapshot');
  await operators.until(({ name }) => name === 'snapshot');

  const lock = await TestLock.connect(t, gateway.mqttPort, testMac(), secret);
  const nowMs = systemClock.now();
  const send = (sequence: number, reason: Ping['reason']) =>
    lock.send(testBytes(sequence, { timeMs: nowMs + sequence * PING_INTERVAL_MS, body: ridePing(reason, sequence) }));
  await send(1, 'REASON_STATE_PING');
  await send(2, 'REASON_THEFT');
  const theft = await stream.until(({ data }) => data.trouble === 'theft');
  t.ok(stream.named('lock').indexOf(theft) <= 1, 'the merchant sees it with the first change or the one after it');
  const theftForOperators = await operators.until(({ name, data }) => name === 'lock' && data.trouble === 'theft');
  t.match(theftForOperators.data, { mac: MAC, merchant: 'Amber' });
  t.ok(operators.named('lock').indexOf(theftForOperators) <= 1, 'so do operators');

  let sequence = 2;
  for (let burst = 0; burst < BURSTS; burst += 1) {
    for (let ping = 0; ping < PINGS_PER_BURST; ping += 1) {
      sequence += 1;
      await send(sequence, 'REASON_THEFT');
    }
    const end = longitudeAt(sequence);
    await stream.until((event) => Math.abs(longitudeOf(event) - end) < 1e-4);
  }
  const changes = stream.named('lock');
  const longitudes = changes.map(longitudeOf).filter((each) => !Number.isNaN(each));
  t.strictSame(
    longitudes,
    [...longitudes].sort((a, b) => a - b),
    'the ride is in order',
  );
  t.ok(new Set(longitudes).size >= BURSTS, 'the stream shows where each burst ends');

  await gateway.kill();
  await stream.ended;
  await gateway.start();
  const reconnected = await open({ 'last-event-id': stream.lastId });
  // `last`: no further part of the snapshot follows.
  const { data } = await reconnected.until(() => true);
  t.match(data, { last: true, locks: [{ mac_addr: MAC, trouble: 'theft' }] }, 'a new run begins with a snapshot');
});
