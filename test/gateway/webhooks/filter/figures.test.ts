/**
 * The figures about undelivered events of a URL with a filter count only events that pass it (docs/webhooks.md, "What
 * your URL gets"). `behind` counts events that the URL's worker has not read from the log, `pending` those that wait
 * for a retry. Expected values come from the receivers and from what was sent.
 */
import { cpSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { LOG_START, positionAfter } from '../../../../gateway/store/contract/log/log-position.js';
import type { UrlBacklog } from '../../../../gateway/store/contract/store-figures.js';
import { NO_FILTER, type WebhookFilter } from '../../../../gateway/store/contract/webhooks/webhook-filter.js';
import { openDurable } from '../../../../gateway/store/sqlite/durable-file.js';
import { migrationProvider } from '../../../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../../../gateway/store/sqlite/open-sqlite-store.js';
import { Kysely, Migrator, SqliteDialect } from '../../../../gateway/store/tables/kysely.js';
import { FAILURES_TO_OPEN } from '../../../../gateway/webhooks/url/circuit.js';
import { ManualClock, systemClock } from '../../../../proto/clock.js';
import type { Ping } from '../../../../proto/wire/ping.js';
import { MERCHANT, openGateway, testBytes, testMac } from '../../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../../helpers/gateway/test-receiver.js';
import { eventually, receivedSequences, setUpWebhooks } from '../../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../../helpers/mqtt/test-lock.js';
import { UplinkSource } from '../../../helpers/store/append-fleet.js';
import { openStore } from '../../../helpers/store/new-store.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

/** In a new store, the first merchant has this id. */
const MERCHANT_ID = 1;
const CELLULAR = {
  kind: 'cellular',
  batteryPercent: 80,
  ebikeVolts: null,
  tetherState: 'detached',
  lockState: 'locked',
};
const STATE = { ...CELLULAR, reason: 'REASON_STATE_PING', firmwareVersion: '2', position: null } as Ping;
const THEFT = { ...STATE, reason: 'REASON_THEFT' } as Ping;
const ONLY_THEFT = { reasons: ['REASON_THEFT'] };

async function backlogOf(store: { readFigures(): Promise<{ backlogs: readonly UrlBacklog[] }> }, urlId: number) {
  const { backlogs } = await store.readFigures();
  return backlogs.find((each) => each.urlId === urlId);
}

t.test('at a failing URL only events that pass its filter count as undelivered and have an age', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t, {}, { figuresThread: true });
  await gateway.webhooks.settings.set(urlId, { filter: ONLY_THEFT });
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const lock = await connectedLock(t, gateway, testMac());
  for (let sequence = 1; sequence <= 60; sequence += 1)
    await lock.send(testBytes(sequence, { body: sequence % 3 === 0 ? THEFT : STATE }));
  const thefts = 20;
  // After so many failures in a row the URL's circuit is open: it gets only single attempts.
  await eventually('its circuit is open', () => receiver.requests.length >= FAILURES_TO_OPEN);
  await eventually('20 undelivered events', async () => {
    const { behind = 0, pending = 0 } = (await backlogOf(gateway.store, urlId)) ?? {};
    return behind + pending === thefts;
  });
  const { oldestReceivedAtMs, dead } = (await backlogOf(gateway.store, urlId)) as UrlBacklog;
  // Every third event is a theft.
  const [, , firstTheft] = await gateway.store.readEvents(MERCHANT_ID, LOG_START, 3);
  t.equal(oldestReceivedAtMs, firstTheft?.receivedAtMs, 'the first theft is the oldest');
  t.equal(dead, 0);
  for (let sequence = 61; sequence <= 70; sequence += 1) await lock.send(testBytes(sequence, { body: STATE }));
  const { behind = 0, pending = 0 } = (await backlogOf(gateway.store, urlId)) ?? {};
  t.equal(behind + pending, thefts, 'ten more events that do not pass change nothing');
});

t.test('a disabled URL is behind by the events that pass its filter with the locks’ present labels', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  await gateway.webhooks.settings.set(urlId, { filter: ONLY_THEFT, state: 'disabled' });
  const lock = await connectedLock(t, gateway, testMac());
  for (let sequence = 1; sequence <= 5; sequence += 1) await lock.send(testBytes(sequence, { body: STATE }));
  t.match(await backlogOf(gateway.store, urlId), { isDisabled: true, behind: 0, oldestReceivedAtMs: null });
  await lock.send(testBytes(6, { body: THEFT }));
  t.match(await backlogOf(gateway.store, urlId), { behind: 1, oldestReceivedAtMs: Number });
  await gateway.webhooks.settings.set(urlId, { filter: { labels: { city: 'Hamburg' } } });
  t.match(await backlogOf(gateway.store, urlId), { behind: 0 }, 'no lock has the label');
  await gateway.accounts.devices.change(testMac(), { labels: { city: 'Hamburg' } });
  t.match(await backlogOf(gateway.store, urlId), { behind: 1 }, 'the lock has it now');
  await gateway.webhooks.settings.set(urlId, { filter: { reasons: [], labels: {} } });
  t.match(await backlogOf(gateway.store, urlId), { behind: 6 });
  t.equal(receiver.requests.length, 0, 'a disabled URL gets nothing');
});

// Which events pass a filter is cached for blocks of 4,096 events.
t.test('behind is right when the log grows, the cursor moves into a block, and events are erased', async (t) => {
  const store = await openStore(tempFolder(t));
  t.teardown(() => store.close());
  await store.addMerchant(MERCHANT, 1);
  const secretHash = Buffer.alloc(32);
  for (const number of [1, 2, 3])
    await store.addDevice({ mac: testMac(number), merchant: MERCHANT, simulated: false, secretHash, nowMs: 1 });
  const url = { merchant: MERCHANT, url: 'http://a/', headersSealed: {}, secretSealed: Buffer.alloc(8), nowMs: 1 };
  const filter: WebhookFilter = { ...NO_FILTER, pingTypes: ['cellular'], labels: { city: 'Hamburg' } };
  const { id: urlId } = await store.addWebhookUrl({ ...url, filter });
  await store.webhooks.change(urlId, { disabledWhy: 'by the test' });
  await store.changeDevice({ mac: testMac(2), labels: { city: 'Hamburg' } });
  const fleet = new UplinkSource(3);
  const deviceIds: number[] = [];
  const append = async (size: number): Promise<void> => {
    const commit = fleet.nextCommit(size);
    for (const each of commit.incoming) deviceIds.push(each.deviceId);
    await store.append(commit);
  };
  /** How many events of a lock are in the log after this id. Ids count from 1. */
  const eventsOf = (deviceId: number, afterId = 0): number =>
    deviceIds.filter((each, index) => index + 1 > afterId && each === deviceId).length;
  await append(6_000);
  t.equal((await backlogOf(store, urlId))?.behind, eventsOf(2));
  await append(6_000);
  t.equal((await backlogOf(store, urlId))?.behind, eventsOf(2), 'the log has grown');
  await store.recordProgress([{ urlId, attempts: [], cursor: positionAfter(5_000) }]);
  t.equal((await backlogOf(store, urlId))?.behind, eventsOf(2, 5_000), 'the cursor has moved into a block');
  await store.changeDevice({ mac: testMac(3), labels: { city: 'Hamburg' } });
  t.equal((await backlogOf(store, urlId))?.behind, eventsOf(2, 5_000) + eventsOf(3, 5_000));
  await store.eraseDevice(2, null);
  t.equal((await backlogOf(store, urlId))?.behind, eventsOf(3, 5_000), 'erased events are gone');
});

t.test('after a kill, a URL gets the events that pass its filter, each once in order', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  receiver.answer = (_request, response) => void response.writeHead(503).end();
  const { url } = await gateway.accounts.addWebhookUrl({ url: receiver.url, filter: ONLY_THEFT, ordered: true });
  const lock = await connectedLock(t, gateway, testMac());
  for (let sequence = 1; sequence <= 30; sequence += 1)
    await lock.send(testBytes(sequence, { body: sequence % 3 === 0 ? THEFT : STATE }));
  // What is on the disk at this moment is what a kill leaves behind.
  const killed = path.join(tempFolder(t), 'killed');
  cpSync(folder, killed, { recursive: true, filter: (file) => !file.endsWith('.lock') });
  await gateway.close();
  const before = receiver.requests.length;
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  const restarted = await openGateway(t, killed, { deliveryClock: new ManualClock(systemClock.now() + 60_000) });
  await eventually('everything is delivered', async () => {
    const { behind = 1, pending = 1 } = (await backlogOf(restarted.store, url.id)) ?? {};
    return behind + pending === 0;
  });
  t.strictSame(receivedSequences(receiver).slice(before), [3, 6, 9, 12, 15, 18, 21, 24, 27, 30]);
});

t.test('a URL of a store that was made before filters existed gets everything', async (t) => {
  const folder = tempFolder(t);
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  const steps = Object.keys(await migrationProvider.getMigrations()).sort();
  const stepBeforeFilters = steps[steps.findIndex((name) => name.endsWith('webhook-filter')) - 1] as string;
  t.notOk((await new Migrator({ db: tables, provider: migrationProvider }).migrateTo(stepBeforeFilters)).error);
  db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, 'Amber', 1);
    INSERT INTO device (id, mac, merchant_id, simulated, created_at_ms) VALUES (7, 'A4C138000001', 1, 0, 1);
    INSERT INTO webhook_url (id, merchant_id, url, headers, secret_sealed, state, cursor, created_at_ms)
    VALUES (3, 1, 'http://a/', '{}', x'00', 'active', 0, 2)`);
  db.close();
  const store = await openSqliteStore(folder);
  t.teardown(() => store.close());
  t.match(await store.webhooks.find(3), { filter: null, wasFiltered: false });
  const [uplink] = new UplinkSource(1).nextCommit(1).incoming;
  await store.append({
    incoming: uplink === undefined ? [] : [{ ...uplink, deviceId: 7 }],
    judged: [],
    states: new Map(),
  });
  t.match(await backlogOf(store, 3), { behind: 1, pending: 0 });
});
