/**
 * Between the claim of a lock and the reading of its state, this gateway owns the lock but does not know its state.
 * What phones of the lock send meanwhile must not make a state of a new lock that replaces the stored one.
 */
import t from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import { Ingest, type Sender } from '../../../gateway/ingest/ingest.js';
import { Locks } from '../../../gateway/locks/locks.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import type { LockPart } from '../../../gateway/store/contract/slots/ownership.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { ManualClock, Minutes } from '../../../proto/clock.js';
import type { LockgateError } from '../../../proto/errors.js';
import type { RuleName } from '../../../proto/power/rules.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Ping, Uplink } from '../../../proto/wire/ping.js';
import { NO_COMMANDS } from '../../helpers/commands/no-commands.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { lockSender } from '../../helpers/mqtt/lock-sender.js';
import { runLoopTurns } from '../../helpers/mqtt/manual-broker.js';
import { TestLock } from '../../helpers/mqtt/test-lock.js';
import { openStore } from '../../helpers/store/new-store.js';
import { ScriptedOwnership } from '../../helpers/store/scripted-ownership.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';
import { PHONE_PING } from '../../helpers/wire/phone-ping.js';

/** In a new store, the first merchant and the first lock have this id. */
const FIRST_ID = 1;
const MAC = testMac();
const LOCK: LockPart = { deviceId: FIRST_ID, source: 'lock' };
const MAX_EVENTS = 99;
/** A lock in MID may not be connected for so long without a reason. */
const IDLE_TOO_LONG = Minutes(11);
const MOVEMENT: Ping = { ...PHONE_PING, reason: 'REASON_UNLOCKED_MOVEMENT', batteryPercent: 81, position: null };
const FROM_PHONE: Partial<Uplink> = { boot: 900, body: PHONE_PING };

async function addLock(store: Store, mac: Mac): Promise<Sender> {
  await store.addDevice({ mac, merchant: MERCHANT, simulated: false, secretHash: Buffer.from(mac), nowMs: 1 });
  return await lockSender(store, mac);
}

/** A lock and its phone, as senders. */
async function addLockAndPhone(store: Store): Promise<{ lock: Sender; phone: Sender }> {
  await store.addMerchant(MERCHANT, 1);
  const lock = await addLock(store, MAC);
  await store.addPhone({ mac: MAC, name: 'Ada', secretHash: Buffer.from('phone'), expiresAtMs: null, nowMs: 1 });
  const [phone] = await store.listPhones(MAC);
  return { lock, phone: { ...lock, credentialId: phone?.credentialId ?? 0, source: 'phone' } };
}

/** What a gateway does with uplinks and events, on a store with a lock and its phone. */
function ingestOn(test: Teardown, store: Store, clock: ManualClock) {
  const locks = new Locks(store, clock, () => undefined);
  test.teardown(() => locks.stop());
  const parts = { store, locks, clock, commands: NO_COMMANDS, events: new GatewayEvents() };
  const ingest = new Ingest({ ...parts, onStored: () => undefined });
  /** Resolves with the code of the refusal; with undefined at the PUBACK. */
  const send = (sender: Sender, bytes: Buffer): Promise<string | undefined> =>
    new Promise((resolve) => ingest.take(sender, bytes, (error) => resolve((error as LockgateError)?.code)));
  return { locks, ingest, send };
}

/** A gateway that owns a lock and its phones, but has not read the state that the lock's former gateway stored. */
async function setUpGap(test: Teardown) {
  const store = await openStore(tempFolder(test));
  test.teardown(() => store.close());
  const clock = new ManualClock(Date.UTC(2025, 10, 20, 6));
  const { lock, phone } = await addLockAndPhone(store);
  const former = ingestOn(test, store, clock);
  former.ingest.recordEvent(FIRST_ID, MAC, { type: 'connect', source: 'lock', atMs: clock.now() });
  await former.send(lock, testBytes(1));
  const others = new ScriptedOwnership();
  const here = ingestOn(test, others.wrap(store), clock);
  others.owned.add(`${FIRST_ID}/lock`).add(`${FIRST_ID}/phone`);
  const stored = await store.readDeviceState(FIRST_ID);
  const sequences = async (): Promise<number[]> =>
    (await store.readEvents(FIRST_ID, LOG_START, MAX_EVENTS)).map(({ sequence }) => sequence);
  const countOf = async (rule: RuleName): Promise<number> =>
    (await store.readFindings(FIRST_ID, MAX_EVENTS)).filter(({ finding }) => finding.rule === rule).length;
  return { ...here, store, clock, lock, phone, stored, sequences, countOf };
}

t.test('events of a phone before its lock’s state is read are logged, and the stored state stays', async (t) => {
  const { ingest, send, store, clock, phone, stored, sequences } = await setUpGap(t);
  t.match(stored, /"sequence":1/);
  ingest.recordEvent(FIRST_ID, MAC, { type: 'connect', source: 'phone', atMs: clock.now() });
  t.equal(await send(phone, testBytes(7, FROM_PHONE)), undefined);
  ingest.recordEvent(FIRST_ID, MAC, { type: 'disconnect', source: 'phone', cause: 'closed', atMs: clock.now() });
  await ingest.idle();
  t.equal(await store.readDeviceState(FIRST_ID), stored);
  t.same(await sequences(), [1, 7]);
  const logged: unknown[] = [];
  for await (const entries of store.readLog(FIRST_ID, MAX_EVENTS))
    for (const entry of entries) if (entry.type === 'lock-event') logged.push(entry.event);
  t.match(logged, [{ source: undefined }, { event: 'connect', source: 'phone' }, { event: 'disconnect' }]);
});

t.test('the lock’s own uplinks and events wait for its state: uplinks are refused', async (t) => {
  const { ingest, locks, send, store, clock, lock, stored, sequences } = await setUpGap(t);
  ingest.recordEvent(FIRST_ID, MAC, { type: 'tick', atMs: clock.now() });
  const command = { type: 'command', id: 1, command: { type: 'unlock' }, atMs: clock.now() } as const;
  const refused = new Promise<boolean>((resolve) => ingest.recordEvent(FIRST_ID, MAC, command, resolve));
  t.equal(await send(lock, testBytes(2)), 'not-owner');
  t.equal(await refused, true, 'no command is sent');
  t.equal(await store.readDeviceState(FIRST_ID), stored);
  locks.adopt([FIRST_ID], await locks.readStored([FIRST_ID]));
  t.equal(await send(lock, testBytes(1)), undefined);
  t.equal(await send(lock, testBytes(2)), undefined);
  t.same(await sequences(), [1, 2], 'the repeated uplink is recognized');
  t.equal(locks.find(FIRST_ID)?.state.ping?.sequence, 2);
});

t.test('a phone’s uplink before its lock’s state is read hides no silence of the lock', async (t) => {
  const { ingest, locks, send, store, clock, phone, stored, countOf } = await setUpGap(t);
  clock.advance(IDLE_TOO_LONG);
  t.equal(await send(phone, testBytes(7, FROM_PHONE)), undefined);
  t.equal(await countOf('connection-unexplained'), 0, 'the lock’s state is not here');
  locks.adopt([FIRST_ID], await locks.readStored([FIRST_ID]));
  t.equal(JSON.stringify(locks.find(FIRST_ID)?.state), stored, 'as its former gateway had it');
  t.equal(locks.newerState(FIRST_ID), undefined);
  ingest.recordEvent(FIRST_ID, MAC, { type: 'tick', atMs: clock.now() });
  await ingest.idle();
  t.equal(await countOf('connection-unexplained'), 1);
  t.match(JSON.parse((await store.readDeviceState(FIRST_ID)) ?? '{}'), { belief: { isUnexplainedReported: true } });
});

t.test('a state in memory that a phone’s uplink changed is the same after it is read again', async (t) => {
  const store = await openStore(tempFolder(t));
  t.teardown(() => store.close());
  const clock = new ManualClock(Date.UTC(2025, 10, 20, 6));
  const { lock, phone } = await addLockAndPhone(store);
  const { ingest, locks, send } = ingestOn(t, store, clock);
  const pingingLocks = [lock, await addLock(store, testMac(2)), await addLock(store, testMac(3))];
  const pingAll = (senders: readonly Sender[], sequence: number) =>
    Promise.all(senders.map((sender) => send(sender, testBytes(sequence, { body: MOVEMENT }))));
  for (const { deviceId, mac } of pingingLocks)
    ingest.recordEvent(deviceId, mac, { type: 'connect', source: 'lock', atMs: clock.now() });
  await pingAll(pingingLocks, 1);
  clock.advance(Minutes(1));
  // Their states are to be written before those that change later, so that none is written only by chance.
  await pingAll(pingingLocks.slice(1), 2);
  const rules: string[] = [];
  for (const sequence of [7, 8]) {
    t.equal(await send(phone, testBytes(sequence, FROM_PHONE)), undefined);
    const inMemory = locks.find(FIRST_ID)?.state;
    t.equal(inMemory?.belief.nowMs, clock.now());
    const { states } = await locks.readStored([FIRST_ID]);
    t.strictSame(states.get(FIRST_ID)?.state, inMemory);
    rules.push(...(await store.readFindings(FIRST_ID, MAX_EVENTS)).map(({ finding }) => finding.rule));
    clock.advance(IDLE_TOO_LONG);
  }
  t.same(rules, ['connection-unexplained'], 'found by the second uplink');
});

/** A gateway whose reads of states wait, from `close` on, until `open` is called. */
async function setUpReads(test: Teardown) {
  const others = new ScriptedOwnership();
  let open: () => void = () => undefined;
  let opened: Promise<void> | undefined;
  let waiting = 0;
  const wrapStore = (store: Store): Store => {
    const readDeviceStates = async (deviceIds?: readonly number[]) => {
      waiting += 1;
      await opened;
      return await store.readDeviceStates(deviceIds);
    };
    return withOverrides(others.wrap(store), { readDeviceStates });
  };
  const gateway = await testGateway(test, { wrapStore });
  const close = (): void => {
    waiting = 0;
    opened = new Promise((resolve) => {
      open = resolve;
    });
  };
  return { gateway, others, close, open: () => open(), waiting: () => waiting };
}

t.test('a phone that is connected while its lock is claimed changes nothing of the lock’s state', async (t) => {
  const { gateway, others, close, open, waiting } = await setUpReads(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const { secret: phoneSecret } = await gateway.accounts.devices.addPhone({ mac: MAC, name: 'Ada', expiresAtMs: null });
  const first = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await first.send(testBytes(1));
  const phone = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'ada', phoneSecret);
  others.wish(LOCK);
  await first.closed;
  for (; others.released.length === 0; ) await runLoopTurns();
  close();
  const connecting = TestLock.connect(t, gateway.mqttPort, MAC, secret);
  for (; waiting() === 0; ) await runLoopTurns();
  t.ok(others.owned.has(`${FIRST_ID}/lock`));
  await phone.send(testBytes(1, FROM_PHONE));
  const disconnected = waitForEvents(gateway, 'disconnected', 1, ({ source }) => source === 'phone');
  await phone.client.endAsync(true);
  await disconnected;
  open();
  const second = await connecting;
  const readState = async () => JSON.parse((await gateway.store.readDeviceState(FIRST_ID)) ?? '{}');
  t.match((await readState()).ping, { sequence: 1 });
  await second.send(testBytes(1));
  await second.send(testBytes(2));
  t.match((await readState()).belief, { isConnected: true });
  const fromLock = await gateway.store.readUplinks(FIRST_ID, MAX_EVENTS);
  t.same(
    fromLock.map(({ sequence }) => sequence),
    [2, 1],
    'the uplink sent twice is recognized',
  );
});
