/** What strangers can make a gateway in a process of its own hold (quality.md §2, "before authentication"). */
import { existsSync } from 'node:fs';
import t, { type Test } from 'tap';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { testBytes, testMac } from '../helpers/gateway/test-gateway.js';
import { connectPacket, lengthOf, puback, publishPacket, RawLock } from '../helpers/mqtt/raw-lock.js';

const KIB = 1024;
const MIB = KIB * KIB;
const STRANGERS = 1000;
const MOST_GROWTH = 20 * MIB;
/** How much of what they announce they send at once: without a guard, all of it would be kept. */
const SENT = 64 * KIB;

const skip = existsSync('/proc/self/status') ? false : 'memory is read from /proc, which Linux alone has';

async function strangers(t: Test, port: number, bytes: Buffer): Promise<RawLock[]> {
  const all: RawLock[] = [];
  for (let count = 0; count < STRANGERS; count++) {
    const stranger = await RawLock.open(t, port);
    stranger.write(bytes);
    all.push(stranger);
  }
  return all;
}

/** A gateway that has seen many connections already, so that what it grows by is not its code being compiled. */
async function warmChild(t: Test): Promise<{ child: GatewayChild; enter: () => Promise<RawLock> }> {
  const child = await GatewayChild.start(t);
  const claim = { user: testMac(), secret: await child.addLock(testMac()) };
  const enter = (): Promise<RawLock> => RawLock.connect(t, child.mqttPort, claim);
  for (const stranger of await strangers(t, child.mqttPort, connectPacket({ user: 'nobody', secret: '' })))
    await stranger.ended();
  await enter();
  return { child, enter };
}

t.test('1,000 sockets that announce 256 MB', { skip }, async (t) => {
  const { child, enter } = await warmChild(t);
  const before = child.memory().resident;
  const header = Buffer.from([0x10, ...lengthOf(256 * MIB - 1)]);
  for (const stranger of await strangers(t, child.mqttPort, Buffer.concat([header, Buffer.alloc(SENT)])))
    await stranger.ended();
  const grown = child.memory().most - before;
  t.ok(grown <= MOST_GROWTH, `it grew by ${(grown / MIB).toFixed(1)} MiB at most`);
  const lock = await enter();
  lock.write(publishPacket('up', testBytes(1)));
  await lock.hears(puback());
});

t.test('1,000 sockets with 4 KiB unfinished each', { skip }, async (t) => {
  const { child, enter } = await warmChild(t);
  const before = child.memory().resident;
  const unfinished = Buffer.concat([Buffer.from([0x10, ...lengthOf(4 * KIB)]), Buffer.alloc(4 * KIB - 1)]);
  const all = await strangers(t, child.mqttPort, unfinished);
  await enter();
  const grown = child.memory().most - before;
  t.ok(grown <= MOST_GROWTH, `it grew by ${(grown / MIB).toFixed(1)} MiB at most`);
  t.ok(all.filter(({ isClosed }) => !isClosed).length > STRANGERS / 2, 'they are held: it is no empty test');
  for (const stranger of all) await stranger.ended();
  t.pass('and all are ended before long');
});
