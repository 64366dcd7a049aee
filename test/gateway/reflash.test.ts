/**
 * A lock whose flash was wiped counts its boots from 1 again (protocol.md §1): the gateway reports boot-back with the
 * remedy, and has the lock's current state again once it is marked as reflashed, in whatever order uplinks arrived. The
 * gateway's findings are its objections to a lock, its belief what it concludes about the lock's state.
 */
import path from 'node:path';
import t from 'tap';
import { Prng } from '../../firmware-sim/prng.js';
import type { Gateway } from '../../gateway/gateway.js';
import { exportTrace } from '../../gateway/http/operator/trace-export.js';
import type { DeviceReading } from '../../gateway/store/contract/devices/device.js';
import { LOG_START } from '../../gateway/store/contract/log/log-position.js';
import { openStore, sqliteUrl } from '../../gateway/store/open-store.js';
import { openDurable } from '../../gateway/store/sqlite/durable-file.js';
import { migrationProvider } from '../../gateway/store/sqlite/migrations.js';
import { Kysely, Migrator, SqliteDialect } from '../../gateway/store/tables/kysely.js';
import { Days, Hours, ManualClock, Minutes } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { findRule } from '../../proto/power/rules.js';
import { TraceCheck } from '../../proto/trace/check.js';
import { TraceReader } from '../../proto/trace/reader.js';
import type { TraceHeader } from '../../proto/trace/trace.js';
import { encodeUplink } from '../../proto/wire/codec.js';
import { formatMac } from '../../proto/wire/mac.js';
import type { Uplink } from '../../proto/wire/ping.js';
import { callOperator } from '../helpers/cli/operator-call.js';
import { openGateway, testGateway, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { TestLock } from '../helpers/mqtt/test-lock.js';
import { cellular, uplink } from '../helpers/pair/judged-uplinks.js';
import { shuffled, withRepeats } from '../helpers/pair/late-arrivals.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

const MAC = testMac();
const NOW = Date.UTC(2026, 10, 22, 12);
/** When the flash was wiped, which begins the lock's second life. The day before, the lock used boot 41. */
const WIPED_MS = NOW - Hours(12);

/** An uplink of the lock. Its power settings differ with the battery, so that a wrong order of uplinks is seen. */
function uplinkAt(boot: number, sequence: number, timeMs: number, batteryPercent: number): Uplink {
  const power = { recovery: batteryPercent % 2 === 0 };
  return uplink({ boot, sequence, timeMs, power, body: cellular({ batteryPercent }) });
}

/** Uplinks from before and after the wipe. Both use the first sequences of boot 1. */
const UPLINKS_BEFORE_WIPE = [
  ...[1, 2, 3].map((sequence) => uplinkAt(1, sequence, NOW - Days(20) + Minutes(sequence), 90)),
  ...[1, 2, 3, 4].map((sequence) => uplinkAt(41, sequence, NOW - Days(1) + Minutes(sequence), 50 + sequence)),
];
const UPLINKS_AFTER_WIPE = [1, 2, 3, 4, 5].map((sequence) =>
  uplinkAt(1, sequence, WIPED_MS + Minutes(10 + sequence), 80 + sequence),
);

/** What the gateway has of the lock at the end. It must not depend on the order in which uplinks arrived. */
interface LockOutcome {
  readonly stored: readonly string[];
  readonly eventIds: readonly string[];
  readonly state: unknown;
  readonly findings: readonly string[];
}

/** Reads it from the gateway's store; `eventIds` are those that the gateway announced. */
async function outcomeOf(gateway: Gateway, eventIds: readonly string[]): Promise<LockOutcome> {
  const reading = await gateway.store.findDevice(MAC);
  if (reading === null) throw new Error('the gateway does not know the lock');
  const { belief, ping } = JSON.parse(reading.state ?? 'null');
  const { power, batteryPercent, batteryFrom, lockState, position, highWindow, state } = belief;
  const events = await gateway.store.readEvents(reading.device.merchantId, LOG_START, 1000);
  const findings = (await gateway.store.readFindings(reading.device.id, 1000))
    .filter(({ finding }) => findRule(finding.rule)?.restsOn === 'content')
    .map(({ finding }) => `${finding.rule} ${finding.about?.boot}/${finding.about?.sequence}`);
  return {
    stored: events.map(({ boot, sequence, bytes }) => `${boot}/${sequence} ${bytes.toString('hex')}`).sort(),
    eventIds: [...new Set(eventIds)].sort(),
    state: { power, batteryPercent, batteryFrom, lockState, position, highWindow, state, ping },
    findings: [...new Set(findings)].sort(),
  };
}

/** The lock's secret at each gateway: a second credential would change the order of uplinks. */
const secrets = new WeakMap<Gateway, string>();

/** Sends the uplinks one after another. Returns the ids of their events. */
async function send(test: Teardown, gateway: Gateway, uplinks: readonly Uplink[]): Promise<string[]> {
  const secret = secrets.get(gateway) ?? (await gateway.accounts.addDevice({ mac: MAC })).secret;
  secrets.set(gateway, secret);
  const lock = await TestLock.connect(test, gateway.mqttPort, MAC, secret);
  const announced = waitForEvents(gateway, 'uplink', uplinks.length);
  for (const uplink of uplinks) await lock.send(Buffer.from(encodeUplink(uplink)));
  const ids = (await announced).map(({ eventId }) => eventId);
  const disconnected = waitForEvents(gateway, 'disconnected', 1);
  await lock.client.endAsync();
  await disconnected;
  return ids;
}

const openTestGateway = (test: Teardown): Promise<Gateway> => testGateway(test, { runClock: new ManualClock(NOW) });

t.test('a boot counter that went back opens a finding and a notice, and marking the lock resolves both', async (t) => {
  const clock = new ManualClock(NOW);
  const gateway = await testGateway(t, { runClock: clock });
  await send(t, gateway, [...UPLINKS_BEFORE_WIPE, ...UPLINKS_AFTER_WIPE.slice(0, 3)]);
  const late = waitForEvents(gateway, 'presence', 1);
  clock.advance(Minutes(11));
  t.match(await late, [{ presence: { presence: 'late', rule: 'recovery-offline' } }], 'judged by its old uplinks');
  const path = `/devices/${MAC}`;
  const beforeMark = (await callOperator(gateway, 'GET', path)).body as { state: { battery_percent: number } };
  t.equal(beforeMark.state.battery_percent, 54, 'new uplinks count as late data');
  const { findings } = (await callOperator(gateway, 'GET', path)).body as {
    findings: { rule: string; message: string }[];
  };
  const bootBacks = findings.filter(({ rule }) => rule === 'boot-back');
  t.match(bootBacks, [
    { message: /^The boot counter went back: boot 1 made an uplink at .* after boot 41 had made one\.$/ },
  ]);

  const list = async () =>
    (await callOperator(gateway, 'GET', '/notices?kind=boot-back')).body as { notices: unknown[] };
  const since = new Date(UPLINKS_AFTER_WIPE[0]?.timeMs ?? 0).toISOString();
  const { notices } = await list();
  t.match(notices, [{ kind: 'boot-back', subject: formatMac(MAC), resolved_at: null }]);
  t.match(
    JSON.stringify(notices),
    `lockgate device reflashed ${formatMac(MAC)} --at ${since}`,
    'the notice names the remedy',
  );

  const presence = waitForEvents(gateway, 'presence', 1);
  const marked = await callOperator(gateway, 'POST', `${path}/reflashed`, { at: since });
  t.match(marked, { status: 200, body: { mac: formatMac(MAC), reflashed: [since] } });
  const known = (await callOperator(gateway, 'GET', path)).body as Record<string, unknown>;
  t.match(known, { state: { battery_percent: 83, power_state: 'MID' } });
  t.match(await presence, [{ presence: { presence: 'asleep' } }], 'the lock is in MID since then');
  t.match((known.uplinks as unknown[])[0], { boot: 1, sequence: 3 }, 'the latest uplink belongs to the new life');
  t.match((await list()).notices, [{ resolved_at: /^2/ }], 'the notice is resolved');
  const audit = (await callOperator(gateway, 'GET', '/audit')).body as { entries: unknown[] };
  t.match(audit.entries, [
    { action: 'device.reflashed', object: formatMac(MAC), before: { reflashed: [] }, after: { reflashed: [since] } },
  ]);

  await send(t, gateway, UPLINKS_AFTER_WIPE.slice(3));
  t.match(
    (await callOperator(gateway, 'GET', path)).body,
    { state: { battery_percent: 85 } },
    'later uplinks update the state too',
  );
});

t.test('the final state does not depend on when the mark is set and in which order uplinks arrive', async (t) => {
  const since = new Date(WIPED_MS).toISOString();
  const random = new Prng('lives');
  const all = [...UPLINKS_BEFORE_WIPE, ...UPLINKS_AFTER_WIPE];
  /** Sends the uplinks; the lock is marked as reflashed after the first `marksAt` of them. */
  const runOutcome = async (arrivals: readonly Uplink[], marksAt: number): Promise<LockOutcome> => {
    const gateway = await openTestGateway(t);
    const ids = await send(t, gateway, arrivals.slice(0, marksAt));
    const { device } = (await gateway.store.findDevice(MAC)) ?? {};
    t.ok(device, 'the lock exists');
    t.match(await callOperator(gateway, 'POST', `/devices/${MAC}/reflashed`, { at: since }), { status: 200 });
    ids.push(...(await send(t, gateway, arrivals.slice(marksAt))));
    const outcome = await outcomeOf(gateway, ids);
    await gateway.close();
    return outcome;
  };
  const inOrder = await runOutcome(all, 1);
  t.same(inOrder.findings, [], 'no conflict of keys, and no boot counter that went back');
  t.match(inOrder.state, { batteryPercent: 85, batteryFrom: { life: 2, boot: 1, sequence: 5 } });
  t.equal(inOrder.eventIds.length, all.length, 'an event for each uplink, although three keys were used twice');
  for (let order = 1; order <= 3; order++) {
    // Four of ten uplinks arrive twice.
    const arrivals = withRepeats(random, shuffled(random, all), 0.4);
    t.same(await runOutcome(arrivals, 1), inOrder, `order ${order}`);
    const later = await runOutcome(arrivals, 3 + order * 3);
    // Until it was marked, the gateway rightly found that the boot counter went back.
    t.same({ ...later, findings: [] }, inOrder, `order ${order}, marked later`);
  }
});

t.test('the mark survives a restart and a rebuild of the state, and is in exported traces', async (t) => {
  const folder = tempFolder(t);
  const options = { runClock: new ManualClock(NOW) };
  const first = await openGateway(t, folder, options);
  await first.accounts.addMerchant('Amber');
  await send(t, first, [...UPLINKS_BEFORE_WIPE, ...UPLINKS_AFTER_WIPE]);
  const since = new Date(WIPED_MS).toISOString();
  await callOperator(first, 'POST', `/devices/${MAC}/reflashed`, { at: since });
  const known = await outcomeOf(first, []);
  const { device } = (await first.store.findDevice(MAC)) as DeviceReading;
  const range = { devices: [device], sinceMs: 0, untilMs: NOW + 1 };
  const lines: string[] = [];
  for await (const line of exportTrace(first.store, range)) lines.push(line);
  t.match(lines[0], `"reflashed":["${since}"]`);
  const reader = new TraceReader();
  reader.read(lines[0] ?? '');
  const check = new TraceCheck(POWER_MODEL, reader.header as TraceHeader);
  for (const line of lines.slice(1)) {
    const event = reader.read(line);
    if (!event.ok) throw new Error(event.error.message);
    if (event.value !== null) check.judge(event.value, reader.line);
  }
  t.notMatch(JSON.stringify(check.findings()), /boot-back|sequence-conflict/, 'the trace check uses the mark');
  await first.close();

  // A state that can't be read is rebuilt.
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  db.exec(`UPDATE device_state SET state = '{'`);
  db.close();
  const second = await openGateway(t, folder, options);
  t.match(
    (await outcomeOf(second, [])).state,
    { batteryPercent: 85, batteryFrom: { life: 2 } },
    'rebuilt from the log',
  );
  t.same((await outcomeOf(second, [])).stored, known.stored);
});

t.test('a wrong time of a mark is refused with the reason', async (t) => {
  const gateway = await openTestGateway(t);
  await send(t, gateway, UPLINKS_BEFORE_WIPE);
  const mark = (at: unknown, mac = MAC) => callOperator(gateway, 'POST', `/devices/${mac}/reflashed`, { at });
  t.match(await mark('yesterday'), { status: 400, body: { detail: /at is "yesterday": expected/ } });
  t.match(await mark('2019-12-31T23:59:59Z'), { status: 400, body: { detail: /expected a time from 2020 on/ } });
  t.match(await mark('2026-11-22T12:00:01Z'), { status: 400, body: { detail: /not in the future/ } });
  t.match(await mark('2026-11-22T11:00:00Z', testMac(9)), { status: 404 });
  t.match(await callOperator(gateway, 'POST', `/devices/${MAC}/reflashed`), {
    status: 200,
    body: { reflashed: ['2026-11-22T12:00:00.000Z'] },
  });
});

t.test('an older store is migrated to an empty table of marks, with its locks unchanged', async (t) => {
  const folder = tempFolder(t);
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  // The last migration before the table of marks.
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo('0014-refusals');
  t.notOk(error);
  db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, 'Amber', 1);
    INSERT INTO device (id, mac, merchant_id, simulated, created_at_ms) VALUES (7, '${MAC}', 1, 0, 1);`);
  db.close();
  const store = await openStore(sqliteUrl(folder));
  t.teardown(() => store.close());
  t.same(await store.marks.readAll(), new Map());
  await store.marks.add({ deviceId: 7, markMs: 5, state: '{}' });
  await store.marks.add({ deviceId: 7, markMs: 3, state: '{"a":1}' });
  await store.marks.add({ deviceId: 7, markMs: 5, state: '{"a":2}' });
  t.same(await store.marks.readAll(), new Map([[7, [3, 5]]]));
  t.same(await store.marks.readAll([7, 8]), new Map([[7, [3, 5]]]));
  t.same(await store.marks.readAll([8]), new Map());
  t.same(await store.marks.readAll([]), new Map());
  t.equal(await store.readDeviceState(7), '{"a":2}');
});
