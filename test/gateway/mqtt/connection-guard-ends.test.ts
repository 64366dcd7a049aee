/**
 * Authenticated connections that the gateway closes: of a lock that stops reading (quality.md §2), and all of them when
 * the gateway stops.
 */
import t from 'tap';
import type { GatewayEventMap } from '../../../gateway/events.js';
import type { Commit, Store } from '../../../gateway/store/contract/store.js';
import { afterThisTurn, ManualClock, Seconds } from '../../../proto/clock.js';
import { ChangeSignal } from '../../helpers/clocks/change-signal.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { openGateway, testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { connectPacket, pubackHex, publishPacket, RawLock, subscribePacket } from '../../helpers/mqtt/raw-lock.js';
import { startTestBroker } from '../../helpers/mqtt/test-broker.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const [FROZEN, BUSY] = [testMac(1), testMac(2)];
/** More bytes than the systems on both sides buffer for a connection. */
const PIECES = 600;
const PIECE_BYTES = 60_000;
const PINGS = 100;
/** Turns of the event loop after which a test closes a connection: up to more than a CONNECT takes. */
const MOMENTS = 60;

/** Resolves when bytes under way between the two ends of a connection have arrived. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>(afterThisTurn);
}

t.test('a lock that stops reading is disconnected within 10 s and delays no other lock', async (t) => {
  const guardClock = new ManualClock(Seconds(1000));
  const site = await startTestBroker(t, { guardClock });
  const refused: GatewayEventMap['refused'][0][] = [];
  const ended: GatewayEventMap['disconnected'][0][] = [];
  site.events.on('refused', (event) => refused.push(event));
  site.events.on('disconnected', (event) => ended.push(event));
  const frozen = await RawLock.connect(t, site.broker.port, await site.addLock(FROZEN));
  const busy = await RawLock.connect(t, site.broker.port, await site.addLock(BUSY));
  frozen.write(subscribePacket('down'));
  await frozen.waitForHex('9003000101');
  busy.write(publishPacket('up', testBytes(1)));
  await busy.waitForHex(pubackHex());

  frozen.socket.pause();
  const session = [...site.broker.sessions.all()].find(({ sender }) => sender.mac === FROZEN);
  const sent: Promise<void>[] = [];
  for (let piece = 0; piece < PIECES; piece++) sent.push(session?.send(Buffer.alloc(PIECE_BYTES)) ?? Promise.reject());
  await turns(200);
  t.ok((session?.connection.stream.writableLength ?? 0) > 0, 'the lock does not read everything');
  frozen.write(Buffer.from('c000'.repeat(PINGS), 'hex'));

  guardClock.advance(Seconds(7));
  await turns(20);
  t.same(ended, [], 'it is not disconnected before its time limit');
  for (let sequence = 2; sequence < 6; sequence++) {
    busy.write(publishPacket('up', testBytes(sequence), sequence));
    await busy.waitForHex(pubackHex(sequence));
    guardClock.advance(Seconds(0.75));
    await turns(20);
  }
  // 10 s have passed since it stopped; what happens is reported with the next commit.
  busy.write(publishPacket('up', testBytes(6), 6));
  await busy.waitForHex(pubackHex(6));
  t.match(ended, [{ mac: FROZEN, cause: 'dropped' }]);
  t.match(refused, [{ what: 'connection', clientId: FROZEN, why: /read nothing of what it was sent for 8 s/ }]);
  await Promise.all(sent);
  t.pass('nobody waits for what could not be sent');
  t.equal(site.broker.sessions.count, 1);
  t.equal(site.broker.refusals.connection, 1);
  await turns(20);
  t.equal(site.broker.refusals.publish, 0, 'pings that could not be answered do not count as refused publishes');
});

t.test('a gateway that stops answers received uplinks and reads no more', async (t) => {
  const folder = tempFolder(t);
  let holds = false;
  let held: (() => void) | undefined;
  let isHeld: () => void = () => undefined;
  const waitsForStore = new Promise<void>((resolve) => {
    isHeld = resolve;
  });
  const wrapStore = (store: Store): Store =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        if (holds && held === undefined) {
          await new Promise<void>((resolve) => {
            held = resolve;
            isHeld();
          });
        }
        await store.append(commit);
      },
    });
  const gateway = await openGateway(t, folder, { wrapStore });
  await gateway.accounts.addMerchant('Amber');
  const { secret } = await gateway.accounts.addDevice({ mac: BUSY });
  const lock = await RawLock.connect(t, gateway.mqttPort, { user: BUSY, secret });
  lock.write(publishPacket('up', testBytes(1), 1));
  await lock.waitForHex(pubackHex(1));
  holds = true;
  lock.write(publishPacket('up', testBytes(2), 2));
  await waitsForStore;
  const closed = gateway.close();
  await lock.flush(publishPacket('up', testBytes(3), 3));
  await turns(100);
  held?.();
  await closed;
  await lock.waitForClose();
  t.ok(lock.receivedHex.endsWith(pubackHex(2)), 'the uplink that was being stored is answered');
  const again = await openGateway(t, folder);
  t.same(
    (await again.store.readEvents(1, 0, 9)).map(({ sequence }) => sequence),
    [1, 2],
    'what came after the stop began was left to the next start',
  );
});

t.test('no connection is left after overlapping connections that close at any moment of a CONNECT', async (t) => {
  const site = await startTestBroker(t);
  const changeSignal = new ChangeSignal();
  let [began, ended] = [0, 0];
  site.events.on('connected', () => {
    began += 1;
  });
  site.events.on('disconnected', () => {
    ended += 1;
    changeSignal.notify();
  });
  for (let moment = 0; moment < MOMENTS; moment++) {
    const claim = await site.addLock(testMac(10 + moment));
    const one = await RawLock.open(t, site.broker.port);
    const other = await RawLock.open(t, site.broker.port);
    one.write(connectPacket(claim));
    other.write(connectPacket(claim));
    await turns(moment);
    one.socket.destroy();
    await turns(2);
    other.socket.destroy();
  }
  const isOver = (): boolean => site.broker.connected === 0 && began === ended;
  await changeSignal.waitUntil(isOver, 10, () => `the end of ${site.broker.connected} connections`);
  t.equal(site.broker.connected, 0);
  t.ok(began > 0, `${began} were opened and closed`);
});
