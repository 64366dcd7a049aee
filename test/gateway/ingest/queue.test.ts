/**
 * The queue of uplinks before they are stored, in which a lock's pings keep their order: the number of a lock's uplinks
 * in it is limited, overload refuses the newest and drops no acknowledged uplink, and acknowledgements come in the
 * order of the packets.
 */
import t from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import { Ingest, type Sender } from '../../../gateway/ingest/ingest.js';
import { MAX_UNANSWERED_PER_LOCK } from '../../../gateway/ingest/unanswered-uplinks.js';
import { Locks } from '../../../gateway/locks/locks.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { ManualClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { type Presence, presence } from '../../../proto/power/judge/presence.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { ChangeSignal } from '../../helpers/clocks/change-signal.js';
import { NO_COMMANDS } from '../../helpers/commands/no-commands.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { lockSender } from '../../helpers/mqtt/lock-sender.js';
import { PubackLock, uplinkPacket } from '../../helpers/mqtt/puback-lock.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { openStore } from '../../helpers/store/new-store.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

/** More than any test here stores. */
const MAX_EVENTS = 100_000;
/** A wait that takes longer fails the test. */
const MAX_WAIT_SECONDS = 20;

/** A store whose commits wait until the test releases them. */
class CommitGate {
  #open: () => void = () => undefined;
  #opened = new Promise<void>((resolve) => {
    this.#open = resolve;
  });

  wrap = (store: Store): Store =>
    withOverrides(store, {
      append: async (commit) => {
        await this.#opened;
        return await store.append(commit);
      },
    });

  open(): void {
    this.#open();
  }
}

/** An ingest on a store with two locks, without a gateway. `wrap` replaces methods of the store. */
async function ingestOn(test: Teardown, wrap: (store: Store) => Store) {
  const store = await openStore(tempFolder(test));
  test.teardown(() => store.close());
  await store.addMerchant(MERCHANT, 1);
  const senders: Sender[] = [];
  for (const mac of [testMac(1), testMac(2)]) {
    await store.addDevice({ mac, merchant: MERCHANT, simulated: false, secretHash: Buffer.from(mac), nowMs: 1 });
    senders.push(await lockSender(store, mac));
  }
  const startMs = Date.UTC(2025, 10, 20, 6);
  const clock = new ManualClock(startMs);
  const wrapped = wrap(store);
  const locks = new Locks(wrapped, clock, () => undefined);
  test.teardown(() => locks.stop());
  const ingest = new Ingest({
    commands: NO_COMMANDS,
    store: wrapped,
    locks,
    clock,
    events: new GatewayEvents(),
    onStored: () => undefined,
  });
  return { store, ingest, flooding: senders[0] as Sender, other: senders[1] as Sender };
}

t.test('a flooding lock is refused, and another lock is not affected', async (t) => {
  const commitGate = new CommitGate();
  const { store, ingest, flooding, other } = await ingestOn(t, commitGate.wrap);
  const acked: string[] = [];
  const refused: string[] = [];
  const send = (sender: Sender, sequence: number): void => {
    const name = `${sender.mac} ${sequence}`;
    ingest.take(sender, testBytes(sequence), (error) => {
      if (error === undefined) acked.push(name);
      else if (error instanceof LockgateError && error.code === 'overloaded') refused.push(name);
    });
  };
  for (let sequence = 1; sequence <= MAX_UNANSWERED_PER_LOCK + 5; sequence++) send(flooding, sequence);
  const tooMany = [1, 2, 3, 4, 5].map((each) => `${flooding.mac} ${MAX_UNANSWERED_PER_LOCK + each}`);
  t.same(refused, tooMany, 'the newest uplink is refused at once');
  for (let sequence = 1; sequence <= 3; sequence++) send(other, sequence);
  t.equal(refused.length, 5, 'the other lock’s uplink is accepted');
  t.same(acked, [], 'nothing is acknowledged before it is stored');

  commitGate.open();
  await ingest.idle();
  const ofFlood = Array.from({ length: MAX_UNANSWERED_PER_LOCK }, (_, index) => `${flooding.mac} ${index + 1}`);
  t.same(acked, [...ofFlood, ...[1, 2, 3].map((each) => `${other.mac} ${each}`)], 'in the order of arrival');
  const stored = (await store.readEvents(flooding.merchantId, LOG_START, MAX_EVENTS)).map(
    ({ mac, sequence }) => `${mac} ${sequence}`,
  );
  t.same(stored, acked, 'exactly the acknowledged uplinks are stored');

  send(flooding, MAX_UNANSWERED_PER_LOCK + 1);
  await ingest.idle();
  t.equal(acked.at(-1), tooMany[0], 'a refused uplink is accepted when sent again');
});

t.test('after a failed commit a lock may send uplinks again', async (t) => {
  let fails = true;
  const { ingest, flooding } = await ingestOn(t, (store) =>
    withOverrides(store, {
      append: async (commit) => {
        if (fails) throw new Error('the disk is full');
        return await store.append(commit);
      },
    }),
  );
  let [failed, acked] = [0, 0];
  const send = (sequence: number): void =>
    ingest.take(flooding, testBytes(sequence), (error) => {
      if (error === undefined) acked += 1;
      else failed += 1;
    });
  for (let sequence = 1; sequence <= MAX_UNANSWERED_PER_LOCK; sequence++) send(sequence);
  // From now on a failing commit is answered with an error, and not tried again. Uplinks are still taken.
  await ingest.stop();
  t.equal(failed, MAX_UNANSWERED_PER_LOCK);
  fails = false;
  for (let sequence = 1; sequence <= MAX_UNANSWERED_PER_LOCK; sequence++) send(sequence);
  await ingest.idle();
  t.equal(acked, MAX_UNANSWERED_PER_LOCK);
});

t.test('acknowledgements come in the order of the packets', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac();
  const { secret } = await gateway.accounts.addDevice({ mac });
  const changeSignal = new ChangeSignal();
  const lock = await PubackLock.connect(gateway.mqttPort, mac, secret, () => changeSignal.notify());
  t.teardown(() => lock.socket.destroy());
  // The packet ids 1 to 200 in a mixed order: 37 and 200 have no common factor, so each comes once.
  const ids = Array.from({ length: 200 }, (_, index) => ((index * 37) % 200) + 1);
  // Every seventh payload is not an uplink. It is acknowledged too, in its turn.
  const packets = ids.map((id, index) => uplinkPacket(id, index % 7 === 0 ? Buffer.from([1]) : testBytes(index)));
  lock.socket.write(Buffer.concat(packets));
  await changeSignal.waitUntil(
    () => lock.acked.length === ids.length,
    MAX_WAIT_SECONDS,
    () => `${lock.acked.length} PUBACKs of 200`,
  );
  t.same(lock.acked, ids);
});

t.test('a lock that floods over MQTT is disconnected, and another lock’s ping is stored', async (t) => {
  const commitGate = new CommitGate();
  let isGated = false;
  const gateway = await testGateway(t, {
    wrapStore: (store) => {
      const wrapped = commitGate.wrap(store);
      return withOverrides(store, { append: (commit) => (isGated ? wrapped : store).append(commit) });
    },
  });
  const other = await connectedLock(t, gateway, testMac(2));
  const mac = testMac(1);
  const { secret } = await gateway.accounts.addDevice({ mac });
  const ready = waitForEvents(gateway, 'connected', 1, (event) => event.mac === mac);
  const flooding = await PubackLock.connect(gateway.mqttPort, mac, secret, () => undefined);
  await ready;
  isGated = true;
  const disconnected = waitForEvents(gateway, 'disconnected', 1, (event) => event.mac === mac);
  const aboveLimit = 500;
  // Each is as small as possible, so that the gateway reads all of them at once.
  const packets = Array.from({ length: MAX_UNANSWERED_PER_LOCK + aboveLimit }, (_, id) =>
    uplinkPacket(id + 1, Buffer.from([1])),
  );
  flooding.socket.write(Buffer.concat(packets));
  await flooding.closed;
  t.same(flooding.acked, [], 'nothing is acknowledged before it is stored');
  const sent = other.send(testBytes(1));
  commitGate.open();
  await sent;
  t.match(await disconnected, [{ cause: 'gateway' }]);
});

t.test('a lock that connects again while it is connected takes over its connection, and is online', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac();
  const { secret } = await gateway.accounts.addDevice({ mac });
  const disconnects = waitForEvents(gateway, 'disconnected', 5);
  const connects = waitForEvents(gateway, 'connected', 6);
  for (let connection = 1; connection <= 6; connection++) await TestLock.connect(t, gateway.mqttPort, mac, secret);
  t.ok((await disconnects).every(({ cause }) => cause === 'takeover'));
  await connects;
  const reading = await gateway.store.findDevice(mac);
  // Five connections were taken over by the next one; the sixth is open.
  const current: Presence = presence(POWER_MODEL, JSON.parse(reading?.state ?? '').belief, gateway.clock.now());
  t.equal(current.presence, 'online');
});
