/**
 * The pure functions of webhook delivery: signature, retry schedule, body, event ids, the rule for addresses, and the
 * limit of concurrent attempts (interfaces.md §3).
 */

import t from 'tap';
import type { StoredUplink } from '../../../gateway/store/contract/log/stored-uplink.js';
import { eventId, parseEventId, uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { webhookBody } from '../../../gateway/webhooks/payload/body.js';
import { makeWebhookSecret, signHeaders, verifySignature } from '../../../gateway/webhooks/payload/signature.js';
import { isAllowedAddress, parseRange } from '../../../gateway/webhooks/sending/address-rule.js';
import { ConcurrencyLimiter } from '../../../gateway/webhooks/url/concurrency-limiter.js';
import { parseRetryAfter, RETRY_DELAYS, retryDelay } from '../../../gateway/webhooks/url/schedule.js';
import { Hours, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { Webhook } from '../../clients/webhook-libraries.js';
import { testBytes, testMac } from '../../helpers/gateway/test-gateway.js';

/** A body with characters of one to four bytes. */
const BODY = '{"a":"é 🔒 \\u0000 ا"}';

t.test('the published Standard Webhooks vector is reproduced', async (t) => {
  const headers = signHeaders(
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    1_614_265_330_000,
    '{"test": 2432232314}',
  );
  t.equal(headers['webhook-signature'], 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

t.test('the standardwebhooks library verifies signed requests and refuses all others', async (t) => {
  const [secret, older] = [makeWebhookSecret(), makeWebhookSecret()];
  // The library checks against the machine's clock.
  const now = systemClock.now();
  const headers = signHeaders([secret, older], 'evt_1', now, BODY);
  for (const each of [secret, older]) t.same(new Webhook(each).verify(BODY, { ...headers }), JSON.parse(BODY));
  t.throws(() => new Webhook(makeWebhookSecret()).verify(BODY, { ...headers }));
  t.throws(() => new Webhook(secret).verify(BODY.replace('a', 'b'), { ...headers }));
  t.match(verifySignature(secret, { ...headers }, BODY, now), { ok: true, value: { id: 'evt_1' } });
  t.match(verifySignature(secret, { ...headers }, `${BODY} `, now), { ok: false, error: { code: 'bad-signature' } });
  t.match(verifySignature(secret, { ...headers }, BODY, now + Minutes(6)), { error: { code: 'bad-timestamp' } });
  t.match(verifySignature(secret, {}, BODY, now), { ok: false, error: { code: 'unsigned' } });
});

t.test('retries wait 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, each ± 10 %, then the delivery is dead', async (t) => {
  const expected = [Seconds(5), Minutes(5), Minutes(30), Hours(2), Hours(5), Hours(10), Hours(10)];
  t.same(RETRY_DELAYS, expected);
  // The second argument is a random number from 0 to 1, for the 10 %.
  for (const [index, delay] of expected.entries()) {
    t.equal(retryDelay(index + 1, 0.5), delay);
    t.equal(retryDelay(index + 1, 0), Math.round(delay * 0.9));
    t.ok((retryDelay(index + 1, 0.999999) ?? 0) <= delay * 1.1);
  }
  t.equal(retryDelay(expected.length + 1, 0.5), undefined);
});

t.test('the wait is the longer of Retry-After (at most 24 h) and the schedule’s', async (t) => {
  t.equal(retryDelay(1, 0.5, Minutes(2)), Minutes(2));
  t.equal(retryDelay(2, 0.5, Minutes(2)), Minutes(5));
  t.equal(retryDelay(1, 0.5, Hours(240)), Hours(24));
  t.equal(parseRetryAfter('120', 0), Seconds(120));
  t.equal(parseRetryAfter('Thu, 01 Jan 1970 00:01:00 GMT', Seconds(20)), Seconds(40));
  t.equal(parseRetryAfter('Thu, 01 Jan 1970 00:00:01 GMT', Seconds(20)), 0);
  for (const nonsense of [undefined, 'soon', '-5', '']) t.equal(parseRetryAfter(nonsense, 0), undefined);
});

/** When the stored pings were received. */
const RECEIVED_AT_MS = Date.UTC(2025, 10, 20, 6, 1, 40);

/** A ping of lock 1 with boot 41 and sequence 12, as the store has it, with some members replaced. */
function storedPing(members: Partial<Uplink>, receivedAtMs = RECEIVED_AT_MS): StoredUplink {
  const bytes = testBytes(12, { boot: 41, ...members });
  const key = { mac: testMac(), credentialId: 7, boot: 41, sequence: 12, digest: uplinkDigest(bytes) };
  return {
    ...key,
    id: 1,
    deviceId: 1,
    merchantId: 1,
    simulated: false,
    source: 'lock',
    bytes,
    receivedAtMs,
    buffered: true,
    kind: 1,
    isDamaged: false,
  };
}

t.test('the body is one flat object with the members of its ping type', async (t) => {
  const timeMs = Date.UTC(2026, 10, 20, 6);
  // Members that every body has, before and after those of its ping type.
  const head = { mac_addr: 'A4:C1:38:00:00:01', date: '2026-11-20T06:00:00.000Z', boot: 41, sequence: 12 };
  const tail = { received_at: '2025-11-20T06:01:40.000Z', buffered: true, test: false, simulated: false };
  const { event_id: id, ...cellular } = webhookBody(storedPing({ timeMs }));
  t.match(id, /^evt_A4C138000001_7_41_12_[0-9a-f]{16}$/);
  t.strictSame(cellular, {
    ...head,
    ping_type: 'cellular',
    reason: 'REASON_STATE_PING',
    lock_state: 'locked',
    battery_percent: 81,
    firmware_version: '2.4.1',
    ebike_voltage: null,
    tether_state: 'detached',
    ...tail,
  });
  const position = { latitudeDegrees: 52.3702157, longitudeDegrees: 4.8951679, uncertaintyMeters: 8 };
  const gps = {
    ...{ kind: 'gps', reason: 'REASON_THEFT', lockState: 'locked', batteryPercent: 9, tetherState: 'attached' },
    ...{ ebikeVolts: 36.5, position, speedMetersPerSecond: 4.2, directionDegrees: 359.99 },
  } as Uplink['body'];
  const { event_id: _gpsId, ...gpsBody } = webhookBody(storedPing({ timeMs, body: gps }));
  t.strictSame(gpsBody, {
    ...head,
    ping_type: 'gps',
    reason: 'REASON_THEFT',
    lock_state: 'locked',
    battery_percent: 9,
    ebike_voltage: 36.5,
    tether_state: 'attached',
    latitude: 52.3702157,
    longitude: 4.8951679,
    speed: 4.2,
    direction: 359.99,
    uncertainty: 8,
    ...tail,
  });
  const reason = 'REASON_CLOSE_CONNECTION';
  const close = { kind: 'close_connection', reason, lockState: 'unlocked', batteryPercent: 80 } as const;
  const { event_id: _closeId, ...closeBody } = webhookBody(storedPing({ timeMs, body: close }));
  const members = { ping_type: 'close_connection', reason, lock_state: 'unlocked', battery_percent: 80 };
  t.strictSame(closeBody, { ...head, ...members, ...tail });
});

t.test('a ping with a time outside the years 1970–9999 has the date at which it was received', async (t) => {
  // 253,402,300,800,000 ms is the start of the year 10000.
  for (const timeMs of [-1, 253_402_300_800_000, -(2 ** 60)])
    t.equal(webhookBody(storedPing({ timeMs })).date, '2025-11-20T06:01:40.000Z');
  t.equal(webhookBody(storedPing({ timeMs: 253_402_300_799_999 })).date, '9999-12-31T23:59:59.999Z');
});

t.test('an event id identifies its uplink and is the same in every store', async (t) => {
  const uplink = storedPing({});
  const { mac, credentialId, boot, sequence, digest } = uplink;
  t.same(parseEventId(eventId(uplink)), { mac, credentialId, boot, sequence, digest });
  t.not(eventId(uplink), eventId({ ...uplink, digest: uplinkDigest(Buffer.from('other')) }));
  for (const text of ['', 'evt_', 'msg_A4C138000001_7_41_12_0011223344556677', `${eventId(uplink)}0`])
    t.equal(parseEventId(text), undefined);
});

t.test('webhooks may go only to public addresses and to ranges that the operator allows', async (t) => {
  const refused = [
    ...['127.0.0.1', '0.0.0.0', '10.1.2.3', '172.16.0.1', '192.168.0.1', '169.254.169.254', '100.64.0.1', '224.0.0.1'],
    ...['255.255.255.255', '::1', '::', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', 'fe80::1', 'fc00::1'],
    ...['ff02::1', '64:ff9b::7f00:1', '64:ff9b:1::a00:1', '2002:7f00:1::', '2002:c0a8:1::1', '2001:db8::1', 'fec0::1'],
    ...['localhost', '', '1.2.3', '::ffff:10.0.0.1', '192.0.2.1', '198.18.0.1', '240.0.0.1', '4000::1'],
    // An internal IPv4 address in the middle, followed by a public one.
    ...['64:ff9b:1:7f00:0:100:808:808', '2001:0:4136:e378:8000:63bf:80ff:fffe', '::ffff:0:127.0.0.1', 'fe80::1%lo'],
  ];
  for (const address of refused) t.equal(isAllowedAddress(address, []), false, `${address} is refused`);
  for (const address of ['93.184.216.34', '2606:2800:220:1::1', '64:ff9b::5db8:d822', '::ffff:93.184.216.34'])
    t.equal(isAllowedAddress(address, []), true, `${address} is allowed`);
  const ranges = [parseRange('127.0.0.0/8'), parseRange('fd00::/8'), parseRange('10.0.0.7')];
  for (const address of ['127.9.9.9', '::ffff:127.0.0.1', 'fd12::1', '10.0.0.7'])
    t.equal(isAllowedAddress(address, ranges), true, `${address} is in a range that is allowed`);
  t.equal(isAllowedAddress('10.0.0.8', ranges), false);
  for (const wrong of ['127.0.0.0/33', '10/8', '10.1/16', '0x7f.0.0.1', '10.0.0.0/', '10.0.0.0/8/8', ''])
    t.throws(() => parseRange(wrong), { code: 'input-range' }, wrong);
});

t.test('the limit of attempts at a URL is 4 to 16, grows with quick successes and halves at overload', async (t) => {
  const limiter = new ConcurrencyLimiter();
  /** Reports an attempt to the limiter, made while `running` attempts were running, and returns the new limit. */
  const limitAfter = (status: number | null, durationMs = 10, running = 16): number => {
    const error = status === 204 ? null : 'no';
    const result = { status, durationMs, error, answer: null, retryAfter: undefined, isAddressRefused: false };
    limiter.note(result, running);
    return limiter.limit;
  };
  t.equal(limiter.limit, 4);
  t.equal(limiter.retryLimit, 2);
  t.equal(limitAfter(204, 10, 3), 4, 'the limit was not reached');
  t.same(
    Array.from({ length: 14 }, () => limitAfter(204)),
    [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 16],
  );
  t.equal(limiter.retryLimit, 8);
  t.equal(limitAfter(204, Seconds(14)), 16, 'a slow success does not lower the limit');
  for (const status of [302, 400, 404]) t.equal(limitAfter(status), 16, `${status} does not change the limit`);
  t.equal(limitAfter(null, Seconds(15)), 8);
  t.equal(limitAfter(204, Seconds(14)), 8, 'a slow success does not raise the limit');
  t.equal(limitAfter(503), 4);
  t.equal(limitAfter(429), 4, 'never below the minimum');
  t.equal(limitAfter(204), 5);
});
