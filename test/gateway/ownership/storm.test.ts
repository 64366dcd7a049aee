/**
 * Many locks change their gateway at once, when one is killed or a balancer moves connections. Taking the state of a
 * claimed lock and each release wait for a turn between two commits, and locks share these turns. If each lock had its
 * own turn, they would wait for one another so long that all of them give up and try elsewhere before they are served.
 */
import mqtt from 'mqtt';
import t from 'tap';
import type { LockPart } from '../../../gateway/store/contract/slots/ownership.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { runLoopTurns } from '../../helpers/mqtt/manual-broker.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { ScriptedOwnership } from '../../helpers/store/scripted-ownership.js';
import type { Teardown } from '../../helpers/store/temp-folder.js';

/** The first lock, and some that follow; in a new store the ids of locks are 1, 2, 3 … */
const FIRST = 1;
const OTHERS = [2, 3, 4];
const TURNS_UNTIL_NOTICED = 50;

interface LockLogin {
  readonly mac: Mac;
  readonly secret: string;
}

/** Something that waits until the test lets it go on. */
function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

/**
 * A gateway with locks that it does not own, whose first read of states waits for `open`; `read`: the locks of each.
 */
async function setUpReads(test: Teardown) {
  const others = new ScriptedOwnership();
  const { open, opened } = gate();
  const read: (readonly number[])[] = [];
  const wrapStore = (store: Store): Store => {
    const readDeviceStates = async (deviceIds?: readonly number[]) => {
      if (deviceIds === undefined) return await store.readDeviceStates();
      read.push(deviceIds);
      if (read.length === 1) await opened;
      return await store.readDeviceStates(deviceIds);
    };
    return withOverrides(others.wrap(store), { readDeviceStates });
  };
  const gateway = await testGateway(test, { wrapStore });
  const locks: LockLogin[] = [];
  for (const number of [FIRST, ...OTHERS]) {
    const mac = testMac(number);
    locks.push({ mac, secret: (await gateway.accounts.addDevice({ mac })).secret });
  }
  // Each change of an account claims the lock too.
  read.length = 0;
  others.owned.clear();
  return { gateway, others, locks, read, open };
}

t.test('locks that are claimed while the state of another is read have theirs read together', async (t) => {
  const { gateway, others, locks, read, open } = await setUpReads(t);
  const connecting = locks.map(({ mac, secret }) => TestLock.connect(t, gateway.mqttPort, mac, secret));
  for (; others.owned.size < locks.length || read.length === 0; ) await runLoopTurns();
  open();
  await Promise.all(connecting);
  t.equal(read.length, 2, 'one read that was under way, and one of all others');
  t.same(read.flat().sort(), [FIRST, ...OTHERS]);
});

t.test('a lock whose client has left while it was claimed is not read before those whose clients wait', async (t) => {
  const { gateway, others, locks, read, open } = await setUpReads(t);
  const [first, leaver, ...patient] = locks as [LockLogin, LockLogin, ...LockLogin[]];
  const connectingFirst = TestLock.connect(t, gateway.mqttPort, first.mac, first.secret);
  for (; read.length === 0; ) await runLoopTurns();
  const identity = { clientId: leaver.mac, username: leaver.mac, password: leaver.secret };
  const client = mqtt.connect({ host: '127.0.0.1', port: gateway.mqttPort, reconnectPeriod: 0, ...identity });
  client.on('error', () => undefined);
  const connecting = patient.map(({ mac, secret }) => TestLock.connect(t, gateway.mqttPort, mac, secret));
  for (; others.owned.size < locks.length; ) await runLoopTurns();
  await client.endAsync(true);
  await runLoopTurns(TURNS_UNTIL_NOTICED);
  open();
  await Promise.all([connectingFirst, ...connecting]);
  t.same(
    read.slice(0, 2).map((ids) => [...ids].sort()),
    [[FIRST], OTHERS.slice(1)],
  );
  // It is read when the gateway next looks for locks to adopt.
  for (; read.length < 3; ) await runLoopTurns();
  t.same(read[2], [OTHERS[0]]);
});

t.test('a lock that another gateway asks for while its state is read is released, and claimed again', async (t) => {
  const { gateway, others, locks, read, open } = await setUpReads(t);
  const [{ mac, secret }] = locks as [LockLogin, ...LockLogin[]];
  const connecting = TestLock.connect(t, gateway.mqttPort, mac, secret);
  for (; read.length === 0; ) await runLoopTurns();
  const claims = others.claimCount;
  others.wish({ deviceId: FIRST, source: 'lock' });
  for (; others.released.length === 0; ) await runLoopTurns();
  t.notOk(others.owned.has(`${FIRST}/lock`));
  open();
  await connecting;
  t.equal(others.claimCount, claims + 1);
  t.same(read, [[FIRST], [FIRST]], 'what was read before the release may be out of date');
});

t.test('locks that are asked for while another is released are released together', async (t) => {
  const others = new ScriptedOwnership();
  const { open, opened } = gate();
  const released: (readonly LockPart[])[] = [];
  const wrapStore = (store: Store): Store => {
    const wrapped = others.wrap(store);
    const { locks } = wrapped.ownership;
    const release = async (parts: readonly LockPart[]): Promise<void> => {
      released.push(parts);
      if (released.length === 1) await opened;
      await locks.release(parts);
    };
    const ownership = { ...wrapped.ownership, locks: { ...locks, release } };
    return withOverrides(wrapped, { ownership });
  };
  const gateway = await testGateway(t, { wrapStore });
  const locks: TestLock[] = [];
  for (const number of [FIRST, ...OTHERS]) locks.push(await connectedLock(t, gateway, testMac(number)));
  others.wish({ deviceId: FIRST, source: 'lock' });
  for (; released.length === 0; ) await runLoopTurns();
  for (const deviceId of OTHERS) others.wish({ deviceId, source: 'lock' });
  await Promise.all(locks.map(({ closed }) => closed));
  // The gateway notices that the connections have closed.
  await runLoopTurns(TURNS_UNTIL_NOTICED);
  open();
  for (; others.released.length <= OTHERS.length; ) await runLoopTurns();
  t.same(
    released.map((parts) => parts.map(({ deviceId }) => deviceId).sort()),
    [[FIRST], OTHERS],
  );
});
