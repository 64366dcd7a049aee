/**
 * How connections end: the gateway closes that of a lock that stops reading, and all of them when it stops; and clients
 * close theirs in the middle of a CONNECT.
 */
import t from 'tap';
import type { GatewayEventMap } from '../../../gateway/events.js';
import type { Commit } from '../../../gateway/store/contract/log/commit.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { afterThisTurn, ManualClock, Seconds } from '../../../proto/clock.js';
import { ChangeSignal } from '../../helpers/clocks/change-signal.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { openGateway, testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import {
  connectPacket,
  PINGREQ,
  pubackHex,
  publishPacket,
  RawLock,
  subscribePacket,
} from '../../helpers/mqtt/raw-lock.js';
import { startTestBroker } from '../../helpers/mqtt/test-broker.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** A lock that stops reading, and one that works. */
const [FROZEN, BUSY] = [testMac(1), testMac(2)];
/** The id of the only merchant. */
const MERCHANT_ID = 1;
/** Together more bytes than the operating system buffers for a connection. */
const COMMAND_COUNT = 600;
const COMMAND_BYTES = 60_000;
/** SUBACK (packet id 1): the subscription is granted at QoS 1. */
const SUBACK_GRANTED = '9003000101';
/** How many packets the frozen lock, which does not read the answers, sends. */
const PINGREQ_COUNT = 100;
/** The test closes a connection after up to so many turns of the event loop; a CONNECT takes fewer. */
const MAX_TURNS_BEFORE_CLOSE = 60;

/** Lets the event loop turn: in a few turns, bytes under way between the two ends of a connection arrive. */
async function runLoopTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>(afterThisTurn);
}

t.test('a lock that stops reading is disconnected within 10 s and delays no other lock', async (t) => {
  const guardClock = new ManualClock();
  const setup = await startTestBroker(t, { guardClock });
  const refused: GatewayEventMap['refused'][0][] = [];
  const ended: GatewayEventMap['disconnected'][0][] = [];
  setup.events.on('refused', (event) => refused.push(event));
  setup.events.on('disconnected', (event) => ended.push(event));
  const frozen = await RawLock.connect(t, setup.broker.port, await setup.addLock(FROZEN));
  const busy = await RawLock.connect(t, setup.broker.port, await setup.addLock(BUSY));
  frozen.write(subscribePacket('down'));
  await frozen.waitForHex(SUBACK_GRANTED);
  busy.write(publishPacket('up', testBytes(1)));
  await busy.waitForHex(pubackHex());

  frozen.socket.pause();
  const session = [...setup.broker.sessions.all()].find(({ sender }) => sender.mac === FROZEN);
  const sent: Promise<void>[] = [];
  for (let command = 0; command < COMMAND_COUNT; command++)
    sent.push(session?.send(Buffer.alloc(COMMAND_BYTES)) ?? Promise.reject());
  await runLoopTurns(200);
  t.ok((session?.connection.stream.writableLength ?? 0) > 0, 'the lock does not read everything');
  frozen.write(Buffer.concat(Array.from({ length: PINGREQ_COUNT }, () => PINGREQ)));

  guardClock.advance(Seconds(7));
  await runLoopTurns(20);
  t.same(ended, [], 'it is not disconnected before its time limit');
  for (let sequence = 2; sequence < 6; sequence++) {
    busy.write(publishPacket('up', testBytes(sequence), sequence));
    await busy.waitForHex(pubackHex(sequence));
    guardClock.advance(Seconds(0.75));
    await runLoopTurns(20);
  }
  // 10 s have passed since the lock stopped reading: more than the limit of 8 s and the time to the guard's next check.
  // The disconnect is reported with the next commit.
  busy.write(publishPacket('up', testBytes(6), 6));
  await busy.waitForHex(pubackHex(6));
  t.match(ended, [{ mac: FROZEN, cause: 'dropped' }]);
  t.match(refused, [{ what: 'connection', clientId: FROZEN, why: /read nothing of what it was sent for 8 s/ }]);
  await Promise.all(sent);
  t.pass('sending a command to it no longer waits');
  t.equal(setup.broker.sessions.count, 1, 'the other lock stays');
  t.equal(setup.broker.refusals.connection, 1);
  await runLoopTurns(20);
  t.equal(setup.broker.refusals.publish, 0, 'PINGREQs that could not be answered do not count as refused publishes');
});

t.test('a gateway that stops answers received uplinks and reads no more', async (t) => {
  const folder = tempFolder(t);
  let isStoreBlocked = false;
  let releaseStore: (() => void) | undefined;
  let onStoreBlocked: () => void = () => undefined;
  const storeBlocked = new Promise<void>((resolve) => {
    onStoreBlocked = resolve;
  });
  const wrapStore = (store: Store): Store =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        if (isStoreBlocked && releaseStore === undefined) {
          await new Promise<void>((resolve) => {
            releaseStore = resolve;
            onStoreBlocked();
          });
        }
        return await store.append(commit);
      },
    });
  const gateway = await openGateway(t, folder, { wrapStore });
  await gateway.accounts.addMerchant('Amber');
  const { secret } = await gateway.accounts.addDevice({ mac: BUSY });
  const lock = await RawLock.connect(t, gateway.mqttPort, { user: BUSY, secret });
  lock.write(publishPacket('up', testBytes(1), 1));
  await lock.waitForHex(pubackHex(1));
  isStoreBlocked = true;
  lock.write(publishPacket('up', testBytes(2), 2));
  await storeBlocked;
  const closed = gateway.close();
  await lock.flush(publishPacket('up', testBytes(3), 3));
  await runLoopTurns(100);
  releaseStore?.();
  await closed;
  await lock.waitForClose();
  t.ok(lock.receivedHex.endsWith(pubackHex(2)), 'the uplink that was being stored is answered');
  const restarted = await openGateway(t, folder);
  t.same(
    (await restarted.store.readEvents(MERCHANT_ID, LOG_START, 9)).map(({ sequence }) => sequence),
    [1, 2],
    'the uplink that came after the start of the stop was not stored',
  );
});

t.test('no connection is left after overlapping connections that close at any moment of a CONNECT', async (t) => {
  const setup = await startTestBroker(t);
  const changeSignal = new ChangeSignal();
  let [openedCount, endedCount] = [0, 0];
  setup.events.on('connected', () => {
    openedCount += 1;
  });
  setup.events.on('disconnected', () => {
    endedCount += 1;
    changeSignal.notify();
  });
  for (let turnsBeforeClose = 0; turnsBeforeClose < MAX_TURNS_BEFORE_CLOSE; turnsBeforeClose++) {
    const credentials = await setup.addLock(testMac(10 + turnsBeforeClose));
    const first = await RawLock.open(t, setup.broker.port);
    const second = await RawLock.open(t, setup.broker.port);
    first.write(connectPacket(credentials));
    second.write(connectPacket(credentials));
    await runLoopTurns(turnsBeforeClose);
    first.socket.destroy();
    await runLoopTurns(2);
    second.socket.destroy();
  }
  const isOver = (): boolean => setup.broker.connected === 0 && openedCount === endedCount;
  await changeSignal.waitUntil(isOver, 10, () => `the end of ${setup.broker.connected} connections`);
  t.equal(setup.broker.connected, 0);
  t.ok(openedCount > 0, `${openedCount} were opened and closed`);
});
