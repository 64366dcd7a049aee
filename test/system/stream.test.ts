/**
 * A theft as pages see it: the merchant's stream and the operators' stream of a gateway in a separate process show the
 * theft and the ride, at most one change a second. After a kill, a client that reconnects with its last event id sees
 * the theft too (interfaces.md §2).
 */
import t from 'tap';
import { monotonicMs, systemClock } from '../../proto/clock.js';
import { formatMac } from '../../proto/wire/mac.js';
import type { Ping } from '../../proto/wire/ping.js';
import { realDelay } from '../helpers/clocks/change-signal.js';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { testBytes, testMac } from '../helpers/gateway/test-gateway.js';
import { basicAuthorization } from '../helpers/http/merchant-call.js';
import { StreamClient, type StreamEvent } from '../helpers/http/stream-client.js';
import { TestLock } from '../helpers/mqtt/test-lock.js';

t.setTimeout(60_000);

const MAC = formatMac(testMac());
/** A page must show a theft within this time. */
const MAX_DELAY_MS = 2_000;
const RIDE_PINGS = 12;
const RIDE_INTERVAL_MS = 250;
/** A lock is sent at most once a second; arrivals may be a little closer. */
const MIN_GAP_MS = 900;

/** A ping of a ride, some metres after the one before. */
function ridePing(reason: Ping['reason'], step: number): Ping {
  return {
    kind: 'gps',
    reason,
    lockState: 'locked',
    batteryPercent: 80,
    ebikeVolts: null,
    tetherState: 'detached',
    position: { latitudeDegrees: 52.52, longitudeDegrees: 13.4 + step / 1_000, uncertaintyMeters: 6 },
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
    lock.send(testBytes(sequence, { timeMs: nowMs + sequence * RIDE_INTERVAL_MS, body: ridePing(reason, sequence) }));
  await send(1, 'REASON_STATE_PING');
  const stolenAtMs = monotonicMs();
  await send(2, 'REASON_THEFT');
  const theft = await stream.until(({ data }) => data.trouble === 'theft');
  t.ok(theft.atMs - stolenAtMs < MAX_DELAY_MS, `the merchant sees it after ${theft.atMs - stolenAtMs} ms`);
  const theftForOperators = await operators.until(({ name, data }) => name === 'lock' && data.trouble === 'theft');
  t.match(theftForOperators.data, { mac: MAC, merchant: 'Amber' });
  const operatorsDelayMs = theftForOperators.atMs - stolenAtMs;
  t.ok(operatorsDelayMs < MAX_DELAY_MS, `operators see it after ${operatorsDelayMs} ms`);

  for (let step = 0; step < RIDE_PINGS; step += 1) {
    await send(3 + step, 'REASON_THEFT');
    await realDelay(RIDE_INTERVAL_MS);
  }
  // The longitude of the last ping's position.
  const end = 13.4 + (2 + RIDE_PINGS) / 1_000;
  await stream.until((event) => Math.abs(longitudeOf(event) - end) < 1e-4);
  const changes = stream.named('lock');
  const longitudes = changes.map(longitudeOf).filter((each) => !Number.isNaN(each));
  t.strictSame(
    longitudes,
    [...longitudes].sort((a, b) => a - b),
    'the ride is in order',
  );
  const gaps = changes.slice(1).map(({ atMs }, index) => atMs - (changes[index]?.atMs ?? 0));
  t.ok(Math.min(...gaps) > MIN_GAP_MS, `at most one change a second: ${gaps.map(Math.round).join(', ')} ms apart`);

  await gateway.kill();
  await stream.ended;
  await gateway.start();
  const reconnected = await open({ 'last-event-id': stream.lastId });
  const { data } = await reconnected.until(() => true);
  t.match(data, { last: true, locks: [{ mac_addr: MAC, trouble: 'theft' }] }, 'a new run begins with a snapshot');
});
