/**
 * A webhook URL gets events other than pings only if its filter names them: `command` (a command has ended), `presence`
 * (a lock is late or back) and `battery` (low or charged) (docs/webhooks.md, "What your URL gets"). They are as durable
 * as pings and come in the order of the log.
 */
import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import t, { type Test } from 'tap';
import type { Gateway } from '../../../../gateway/gateway.js';
import { LOG_START } from '../../../../gateway/store/contract/log/log-position.js';
import { checkDatabase } from '../../../../gateway/store/sqlite/check/check.js';
import { Hours, ManualClock, Minutes, systemClock } from '../../../../proto/clock.js';
import { decodeDownlink } from '../../../../proto/wire/codec.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import type { Ping } from '../../../../proto/wire/ping.js';
import { MERCHANT, openGateway, testBytes, testMac } from '../../../helpers/gateway/test-gateway.js';
import { type TestReceiver, testReceiver } from '../../../helpers/gateway/test-receiver.js';
import { eventually, readDeliveries } from '../../../helpers/gateway/webhook-setup.js';
import { root } from '../../../helpers/house/our-files.js';
import { callMerchantApi } from '../../../helpers/http/merchant-call.js';
import { TestLock } from '../../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

const ALL_EVENTS = ['ping', 'command', 'presence', 'battery'];
/** In a new store, the first merchant has this id. */
const MERCHANT_ID = 1;
const MAC = testMac();
const START_MS = Date.UTC(2026, 10, 20, 6);
const BODY = { kind: 'cellular', ebikeVolts: null, tetherState: 'detached', lockState: 'locked' };

/** The bytes of a cellular ping, made at this time. */
function ping(sequence: number, atMs: number, batteryPercent = 80, reason = 'REASON_PERIOD_TRACKING'): Buffer {
  const body = { ...BODY, batteryPercent, reason, firmwareVersion: '2', position: null } as Ping;
  return testBytes(sequence, { timeMs: atMs, body });
}

const ajv = new Ajv2020({ strict: true, allErrors: true });
addFormats.default(ajv);
/** Whether a body matches the merchants' JSON Schema of webhooks; the errors are in `validate.errors`. */
const validate = ajv.compile(JSON.parse(readFileSync(path.join(root, 'docs/webhook-payload.schema.json'), 'utf8')));

interface Setup {
  readonly folder: string;
  readonly clock: ManualClock;
  readonly gateway: Gateway;
  readonly receiver: TestReceiver;
  readonly urlId: number;
  readonly secret: string;
  readonly key: string;
}

/** A gateway on a manual clock, with a lock and a URL that gets these types of events. */
async function setUp(t: Test, events: readonly string[] = ALL_EVENTS): Promise<Setup> {
  const folder = tempFolder(t);
  const clock = new ManualClock(START_MS);
  const gateway = await openGateway(t, folder, { runClock: clock });
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  const { url } = await gateway.accounts.addWebhookUrl({ url: receiver.url, filter: { events } });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  return { folder, clock, gateway, receiver, urlId: url.id, secret, key };
}

/** A lock that answers each command with `result`. */
async function answeringLock(t: Test, { gateway, secret, clock }: Setup, result: 'ok' | 'rejected' = 'ok') {
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  // Apart from the sequence numbers of the tests' pings.
  let sequence = 1000;
  lock.client.on('message', (_topic, bytes) => {
    const downlink = decodeDownlink(bytes);
    if (!downlink.ok) throw downlink.error;
    const detail = result === 'ok' ? '' : 'held';
    const body = { kind: 'ack', commandId: downlink.value.id, result, detail, highWindow: null } as const;
    void lock.send(testBytes(sequence++, { timeMs: clock.now(), body }));
  });
  await lock.client.subscribeAsync('down', { qos: 1 });
  return lock;
}

/** Requests a command over the merchants' interface. */
const requestCommand = (gateway: Gateway, key: string, body: object) =>
  callMerchantApi(gateway, `/v1/locks/${formatMac(MAC)}/commands`, { method: 'POST', key, body });

/** The type of each received event; of pings, which have none, the reason. */
const typesOf = ({ requests }: TestReceiver): unknown[] => requests.map(({ json }) => json.type ?? json.reason);

t.test('the end of a command is an event, with its own schema and the same signature and id', async (t) => {
  const setup = await setUp(t);
  const { gateway, receiver, clock, key } = setup;
  const lock = await answeringLock(t, setup, 'rejected');
  await lock.send(ping(1, clock.now()));
  t.match(await requestCommand(gateway, key, { type: 'siren', parameters: { seconds: 5 } }), { status: 202 });
  await receiver.waitForRequests(2);
  const [, event] = receiver.requests;
  t.match(event?.json, {
    type: 'command',
    mac_addr: formatMac(MAC),
    command: 'siren',
    parameters: { seconds: 5 },
    state: 'rejected',
    detail: 'held',
    sent_count: 1,
    asked_by: /test/,
    test: false,
    simulated: false,
  });
  t.equal(event?.headers['webhook-id'], event?.json.event_id);
  t.match(event?.headers['webhook-signature'], /^v1,/);
  t.ok(validate(event?.json), JSON.stringify(validate.errors));
  await eventually('its delivery is listed', async () => (await readDeliveries(gateway, ['delivered'])).length === 2);

  const deliveries = await callMerchantApi(gateway, `/v1/webhooks/${setup.urlId}/deliveries`, { key });
  t.match(deliveries.body, { data: [{ type: 'command', ping_type: null, reason: null }, { type: 'ping' }] });
  t.match(await gateway.webhooks.redelivery.resend(String(event?.json.event_id)), [{ became: 'due' }]);
  await receiver.waitForRequests(3);
  t.equal(receiver.requests[2]?.body, event?.body, 'sent again, the body is the same');
  t.match(await callMerchantApi(gateway, '/v1/events', { key }), { body: { data: [{ sequence: 1 }] } });
  t.equal(
    ((await callMerchantApi(gateway, '/v1/events', { key })).body as { data: unknown[] }).data.length,
    1,
    'it has pings only',
  );
  const why = await callMerchantApi(gateway, `/v1/why/${event?.json.event_id}`, { key });
  t.match(why, { status: 200, text: /rejected/ });
});

t.test('a command that expires or is cancelled is an event too', async (t) => {
  const { gateway, receiver, clock, key } = await setUp(t, ['command']);
  const first = (await requestCommand(gateway, key, { type: 'unlock' })).body as { id: number };
  const second = (
    await requestCommand(gateway, key, { type: 'lock', not_before: new Date(START_MS + Hours(1)).toISOString() })
  ).body as { id: number };
  clock.advance(Minutes(3));
  await receiver.waitForRequests(1);
  t.match(receiver.requests[0]?.json, { command_id: first.id, state: 'expired', first_sent_at: null });
  t.match(await callMerchantApi(gateway, `/v1/commands/${second.id}/cancel`, { method: 'POST', key }), { status: 200 });
  await receiver.waitForRequests(2);
  t.match(receiver.requests[1]?.json, { command_id: second.id, state: 'cancelled' });
  for (const { json } of receiver.requests) t.ok(validate(json), JSON.stringify(validate.errors));
});

t.test('presence and battery events come once each, in order with pings', async (t) => {
  const setup = await setUp(t);
  const { gateway, receiver, clock, secret } = setup;
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await lock.send(ping(1, clock.now()));
  await lock.send(ping(2, clock.now(), 8, 'REASON_THEFT'));
  await lock.send(ping(3, clock.now(), 7, 'REASON_THEFT'));
  await lock.send(ping(4, clock.now(), 60, 'REASON_STATE_PING'));
  await receiver.waitForRequests(6);
  t.strictSame(typesOf(receiver), [
    'REASON_PERIOD_TRACKING',
    'REASON_THEFT',
    'battery',
    'REASON_THEFT',
    'REASON_STATE_PING',
    'battery',
  ]);
  t.match(receiver.requests[2]?.json, { battery: 'low', battery_percent: 8 });
  t.match(receiver.requests[5]?.json, { battery: 'charged', battery_percent: 60 });
  await lock.client.endAsync();
  await lock.closed;
  // An hour passes in each turn of the event loop. A lock that sends nothing is late within three days.
  let silentHours = 0;
  await eventually('the lock is late', () => {
    if (silentHours < 72) clock.advance(Hours(1));
    silentHours += 1;
    return receiver.requests.length === 7;
  });
  t.match(receiver.requests[6]?.json, { type: 'presence', presence: 'late' });
  const again = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await again.send(ping(5, clock.now()));
  await receiver.waitForRequests(9);
  t.strictSame(typesOf(receiver).slice(7), ['presence', 'REASON_PERIOD_TRACKING']);
  const [late, back] = [receiver.requests[6]?.json, receiver.requests[7]?.json];
  t.match(back, { presence: 'back', late_since: late?.late_since });
  for (const { json } of receiver.requests) t.ok(validate(json), JSON.stringify(validate.errors));
});

t.test('a URL that did not ask for other events gets only pings, and the log has no others', async (t) => {
  const { gateway, receiver, clock, secret, urlId } = await setUp(t, ['ping']);
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await lock.send(ping(1, clock.now(), 5, 'REASON_THEFT'));
  await lock.send(ping(2, clock.now(), 50));
  await receiver.waitForRequests(2);
  // “all”: also events that are no pings.
  t.equal((await gateway.store.readEvents(MERCHANT_ID, LOG_START, 9, 'all')).length, 2);
  // When another URL of the merchant gets them, the log has them, but the first URL still gets none.
  const other = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: other.url, filter: { events: ['battery'] } });
  await lock.send(ping(3, clock.now(), 5, 'REASON_THEFT'));
  await other.waitForRequests(1);
  t.match(other.requests[0]?.json, { type: 'battery', battery: 'low' });
  await receiver.waitForRequests(3);
  t.equal(receiver.requests.length, 3);
  await eventually('no URL has a backlog', async () => {
    return (await gateway.store.readFigures()).backlogs.every(({ behind }) => behind === 0);
  });
  const eventId = String(other.requests[0]?.json.event_id);
  await t.rejects(gateway.webhooks.redelivery.resend(eventId, urlId), { code: 'event-filtered' });
});

t.test('events survive a kill and are delivered once the URL works again; recover then finds none', async (t) => {
  const setup = await setUp(t);
  const { gateway, receiver, clock, folder, key } = setup;
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const lock = await answeringLock(t, setup);
  await lock.send(ping(1, clock.now()));
  await requestCommand(gateway, key, { type: 'unlock' });
  await lock.send(ping(2, clock.now(), 5, 'REASON_THEFT'));
  await eventually(
    'all are stored',
    async () => (await gateway.store.readEvents(MERCHANT_ID, LOG_START, 9, 'all')).length === 4,
  );
  // What is on the disk at this moment is what a kill leaves behind.
  const killed = path.join(tempFolder(t), 'killed');
  cpSync(folder, killed, { recursive: true, filter: (file) => !file.endsWith('.lock') });
  await gateway.close();
  const before = receiver.requests.length;
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  // Deliveries go by the wall clock, and retries of the attempts that failed are due within a minute.
  const deliveryClock = new ManualClock(systemClock.now() + Minutes(1));
  const restarted = await openGateway(t, killed, { runClock: new ManualClock(clock.now()), deliveryClock });
  await eventually('everything is delivered', async () => {
    const { backlogs } = await restarted.store.readFigures();
    return (backlogs[0]?.behind ?? 1) + (backlogs[0]?.pending ?? 1) === 0;
  });
  const types = new Map(receiver.requests.slice(before).map(({ json }) => [json.event_id, json.type ?? 'ping']));
  t.strictSame([...types.values()].sort(), ['battery', 'command', 'ping', 'ping'], 'each under one id');
  // While a URL is disabled it may miss events, which recover would send; nothing came meanwhile.
  await restarted.webhooks.settings.set(setup.urlId, { state: 'disabled' });
  t.match(await restarted.webhooks.settings.set(setup.urlId, { state: 'active' }), { url: { state: 'active' } });
  t.match(await restarted.webhooks.redelivery.recover({ sinceMs: 0 }), [{ events: 0 }], 'nothing is undelivered');
  await restarted.close();
  t.strictSame((await checkDatabase(path.join(killed, 'lockgate.sqlite'))).damage, []);
});

t.test('recover sends events of all types that a disabled URL missed', async (t) => {
  const { gateway, receiver, clock, secret, urlId } = await setUp(t);
  await gateway.webhooks.settings.set(urlId, { state: 'disabled' });
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await lock.send(ping(1, clock.now(), 5, 'REASON_THEFT'));
  await eventually('both are kept', async () => (await readDeliveries(gateway, ['kept'])).length === 2);
  t.match((await gateway.store.readFigures()).backlogs, [{ behind: 2 }]);
  await gateway.webhooks.settings.set(urlId, { state: 'active' });
  t.match(await gateway.webhooks.redelivery.recover({ sinceMs: 0, urlId }), [{ events: 2 }]);
  await receiver.waitForRequests(2);
  t.strictSame(typesOf(receiver).sort(), ['REASON_THEFT', 'battery']);
});
