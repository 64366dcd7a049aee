/**
 * Many locks change their gateway at once, when one is killed or a balancer moves connections. Each read of a claimed
 * lock's state and each release waits for a turn between two commits, and locks share these turns. If each lock had its
 * own turn, they would wait for one another so long that all of them give up and try elsewhere before they are served.
 */
import t from 'tap';
import type { LockPart } from '../../../gateway/store/contract/slots/ownership.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { runLoopTurns } from '../../helpers/mqtt/manual-broker.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { ScriptedOwnership } from '../../helpers/store/scripted-ownership.js';

/** The first lock, and some that follow; in a new store the ids of locks are 1, 2, 3 … */
const FIRST = 1;
const OTHERS = [2, 3, 4];
const TURNS_UNTIL_NOTICED = 50;

/** Something that waits until the test lets it go on. */
function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

t.test('locks that are claimed while the state of another is read have theirs read together', async (t) => {
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
  const gateway = await testGateway(t, { wrapStore });
  const locks: { mac: Mac; secret: string }[] = [];
  for (const number of [FIRST, ...OTHERS]) {
    const mac = testMac(number);
    locks.push({ mac, secret: (await gateway.accounts.addDevice({ mac })).secret });
  }
  // Each change of an account claims the lock too.
  read.length = 0;
  others.owned.clear();
  others.claimCount = 0;
  const connecting = locks.map(({ mac, secret }) => TestLock.connect(t, gateway.mqttPort, mac, secret));
  for (; others.owned.size < locks.length || read.length === 0; ) await runLoopTurns();
  open();
  await Promise.all(connecting);
  t.equal(read.length, 2, 'one read that was under way, and one of all others');
  t.same(read.flat().sort(), [FIRST, ...OTHERS]);
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
