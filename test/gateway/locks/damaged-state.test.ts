/**
 * A gateway starts despite a damaged row of a lock's state: the state is rebuilt from the lock's stored uplinks and
 * events (its log), and this is reported. A gateway does not start if the file with the store's key is missing.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { newDeviceState, readDeviceState } from '../../../gateway/locks/device-state.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { Hours } from '../../../proto/clock.js';
import { newVerdict } from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { DEFAULT_POWER, type Ping } from '../../../proto/wire/ping.js';
import { openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { START_MS } from '../../helpers/pair/judged-uplinks.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

// The lock whose stored state is damaged, and another one.
const DAMAGED = testMac(1);
const UNDAMAGED = testMac(2);

/** The ping with which a lock announces that it closes its connection. */
const CLOSE: Ping = {
  kind: 'close_connection',
  reason: 'REASON_CLOSE_CONNECTION',
  lockState: 'unlocked',
  batteryPercent: 44,
};

/** A lock's stored state. Its `belief` is what the judge has inferred from the lock's uplinks and connections. */
async function stateOf(gateway: Gateway, mac = DAMAGED): Promise<Record<string, unknown>> {
  const reading = await gateway.store.findDevice(mac);
  const { belief, ping, receivedAtMs } = JSON.parse(reading?.state ?? 'null');
  // The times of the gateway's starts differ; everything that uplinks and connections determine is equal.
  const { nowMs, dueMs, listeningSinceMs, ...lasting } = belief;
  return { ...lasting, ping, receivedAtMs };
}

/** Two locks with some uplinks each, and a stopped gateway. Returns the state of the first lock. */
async function writeHistory(test: Teardown, folder: string): Promise<Record<string, unknown>> {
  const gateway = await openGateway(test, folder);
  await gateway.accounts.addMerchant('Amber');
  for (const mac of [DAMAGED, UNDAMAGED]) {
    const lock = await connectedLock(test, gateway, mac);
    const gone = waitForEvents(gateway, 'disconnected', 1);
    await lock.send(testBytes(1));
    // Uplinks 2 and 4 are missing, 3 arrives late, and another 3 conflicts with it.
    await lock.send(testBytes(5, { power: { ...DEFAULT_POWER, mode: 'HIGH' }, body: CLOSE }));
    await lock.send(testBytes(3));
    await lock.send(testBytes(3, { kept: 1 }));
    await lock.client.endAsync();
    await gone;
  }
  const expectedState = await stateOf(gateway);
  await gateway.close();
  return expectedState;
}

/** Damages the stored file, as a bad disk or a person might. */
function damage(folder: string, ...statements: readonly string[]): void {
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  for (const statement of statements) db.exec(statement);
  db.close();
}

const OF_DAMAGED_LOCK = `device_id = (SELECT id FROM device WHERE mac = '${DAMAGED}')`;

for (const [name, value] of [
  ['cut off', 'substr(state, 1, length(state) / 2)'],
  ['empty', `''`],
  ['no object', `'null'`],
  ['without one of its members', `json_remove(state, '$.belief.powerFrom')`],
  ['with a value of another type', `json_set(state, '$.belief.runs[0].spans', 7)`],
] as const) {
  t.test(`a state that is ${name} is rebuilt from the log`, async (t) => {
    const folder = tempFolder(t);
    const expectedState = await writeHistory(t, folder);
    damage(folder, `UPDATE device_state SET state = ${value} WHERE ${OF_DAMAGED_LOCK}`);
    const gateway = await openGateway(t, folder);
    const [reported] = await waitForEvents(gateway, 'state-rebuilt', 1);
    t.match(reported, { mac: DAMAGED, from: 'log', why: /^(in )?the stored state/ });
    t.same(await stateOf(gateway), expectedState, 'the state is the same as before');
    t.equal((await stateOf(gateway, UNDAMAGED)).uplinks, 4, 'the other lock’s state too');
  });
}

t.test('a state that was changed but is still valid JSON is rebuilt too', async (t) => {
  const folder = tempFolder(t);
  const expectedState = await writeHistory(t, folder);
  // A damaged disk changes the state and leaves its stored checksum (sum). A trigger would compute the sum anew at an
  // update that does not set it: so this one sets it to 0, and the last statement restores the old one.
  damage(
    folder,
    `CREATE TEMP TABLE kept AS SELECT sum FROM device_state WHERE ${OF_DAMAGED_LOCK}`,
    `UPDATE device_state SET sum = 0, state = replace(state, '"batteryPercent":44', '"batteryPercent":45')
     WHERE ${OF_DAMAGED_LOCK}`,
    `UPDATE device_state SET sum = (SELECT sum FROM kept) WHERE ${OF_DAMAGED_LOCK}`,
  );
  const gateway = await openGateway(t, folder);
  t.match(await waitForEvents(gateway, 'state-rebuilt', 1), [{ mac: DAMAGED, from: 'log', why: /match its checksum/ }]);
  t.same(await stateOf(gateway), expectedState);
});

t.test('a damaged state that lacks uplinks of the log is rebuilt with each of them judged once', async (t) => {
  const folder = tempFolder(t);
  const expectedState = await writeHistory(t, folder);
  damage(folder, `UPDATE device_state SET state = '{', through_uplink_id = 1 WHERE ${OF_DAMAGED_LOCK}`);
  const gateway = await openGateway(t, folder);
  t.match(await waitForEvents(gateway, 'state-rebuilt', 1), [{ mac: DAMAGED, from: 'log' }]);
  t.same(await stateOf(gateway), expectedState);
});

t.test('a damaged uplink is skipped when the log is judged at the start, and is reported', async (t) => {
  const folder = tempFolder(t);
  await writeHistory(t, folder);
  // The state is marked as the one after the first uplink, so that the start judges the later ones from the log.
  damage(
    folder,
    `UPDATE uplink SET bytes = substr(bytes, 1, length(bytes) - 1) || x'7f' WHERE ${OF_DAMAGED_LOCK} AND sequence = 5`,
    `UPDATE device_state SET through_uplink_id = 1 WHERE ${OF_DAMAGED_LOCK}`,
  );
  const gateway = await openGateway(t, folder);
  t.match(await waitForEvents(gateway, 'state-rebuilt', 1), [
    { mac: DAMAGED, from: 'log', why: /uplink \d+ .*checksum/ },
  ]);
});

t.test('if the log is damaged too, the lock gets a new state', async (t) => {
  const folder = tempFolder(t);
  await writeHistory(t, folder);
  damage(
    folder,
    `UPDATE device_state SET state = '{' WHERE ${OF_DAMAGED_LOCK}`,
    `UPDATE uplink SET bytes = x'00' WHERE ${OF_DAMAGED_LOCK} AND sequence = 3`,
  );
  const gateway = await openGateway(t, folder);
  t.match(await waitForEvents(gateway, 'state-rebuilt', 1), [{ mac: DAMAGED, from: 'nothing' }]);
  t.match(await stateOf(gateway), { uplinks: 0, ping: null, firstConnectionMs: null });
  t.equal((await stateOf(gateway, UNDAMAGED)).uplinks, 4, 'the other lock’s state is unchanged');
});

t.test('a state with all members, and additional ones, can be read', async (t) => {
  const folder = tempFolder(t);
  await writeHistory(t, folder);
  const gateway = await openGateway(t, folder);
  const state = (await gateway.store.findDevice(DAMAGED))?.state ?? '';
  t.ok(readDeviceState(state).ok);
  t.ok(
    readDeviceState(JSON.stringify({ ...JSON.parse(state), memberOfALaterVersion: 1 })).ok,
    'an unknown member is no damage',
  );
});

t.test('a store with merchants does not start without its key and creates no new key', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant('Amber');
  await gateway.close();
  const file = path.join(folder, 'key');
  const key = readFileSync(file);
  rmSync(file);
  await t.rejects(openGateway(t, folder), { code: 'key-missing', message: /key is missing.*backup/ });
  t.notOk(existsSync(file));
  writeFileSync(file, key, { mode: 0o600 });
  await (await openGateway(t, folder)).close();
});

t.test('in a state from before commands had an expiry, a command without an answer expires after a day', async (t) => {
  const newState = newDeviceState(DAMAGED, START_MS, START_MS);
  // The commands that switch airplane mode on. While one has no answer, the lock may be silent: the rules about silence
  // are suspended, here since START_MS.
  const airplaneSwitches = [
    { id: 6, isAcknowledged: true },
    { id: 7, isAcknowledged: false },
  ];
  const oldState = { ...newState, belief: { ...newState.belief, suspendedSinceMs: START_MS, airplaneSwitches } };
  const reading = readDeviceState(JSON.stringify(oldState));
  if (!reading.ok) throw new Error(reading.error.message);
  const { belief } = reading.value;
  judgeInPlace(POWER_MODEL, belief, { type: 'tick', atMs: START_MS + Hours(24) - 1 }, newVerdict());
  t.match(belief.airplaneSwitches, [
    { id: 6, outcome: 'acknowledged' },
    { id: 7, outcome: 'open' },
  ]);
  judgeInPlace(POWER_MODEL, belief, { type: 'tick', atMs: START_MS + Hours(24) + 1 }, newVerdict());
  t.match(belief.airplaneSwitches[1], { outcome: 'expired', expiresMs: START_MS + Hours(24) });
  t.equal(belief.suspendedSinceMs, null);
});
