/**
 * Limits how much memory unauthenticated connections can make the gateway use (quality.md §2, "before authentication").
 */
import { existsSync } from 'node:fs';
import t, { type Test } from 'tap';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { testBytes, testMac } from '../helpers/gateway/test-gateway.js';
import { connectPacket, encodeLength, pubackHex, publishPacket, RawLock } from '../helpers/mqtt/raw-lock.js';

const KIB = 1024;
const MIB = KIB * KIB;
const STRANGERS = 1000;
const MAX_GROWTH_BYTES = 20 * MIB;
/** How many of the announced bytes each socket sends. Without a limit the gateway would buffer all of them. */
const SENT_BYTES = 64 * KIB;
/** The first byte of an MQTT CONNECT. */
const CONNECT = 0x10;

const skip = existsSync('/proc/self/status') ? false : 'memory is read from /proc, which only Linux has';

/** Opens many connections that send these bytes. */
async function openStrangers(t: Test, port: number, bytes: Buffer): Promise<RawLock[]> {
  const all: RawLock[] = [];
  for (let count = 0; count < STRANGERS; count++) {
    const stranger = await RawLock.open(t, port);
    stranger.write(bytes);
    all.push(stranger);
  }
  return all;
}

/** Starts a gateway that already had many connections, so that compiled code does not count as growth. */
async function startWarmGateway(t: Test): Promise<{ child: GatewayChild; connectLock: () => Promise<RawLock> }> {
  const child = await GatewayChild.start(t);
  const claim = { user: testMac(), secret: await child.addLock(testMac()) };
  const connectLock = (): Promise<RawLock> => RawLock.connect(t, child.mqttPort, claim);
  for (const stranger of await openStrangers(t, child.mqttPort, connectPacket({ user: 'nobody', secret: '' })))
    await stranger.waitForClose();
  await connectLock();
  return { child, connectLock };
}

t.test('1,000 sockets that announce 256 MB each cost little memory', { skip }, async (t) => {
  const { child, connectLock } = await startWarmGateway(t);
  const before = child.memory().resident;
  const header = Buffer.from([CONNECT, ...encodeLength(256 * MIB - 1)]);
  for (const stranger of await openStrangers(t, child.mqttPort, Buffer.concat([header, Buffer.alloc(SENT_BYTES)])))
    await stranger.waitForClose();
  const growthBytes = child.memory().maximum - before;
  t.ok(growthBytes <= MAX_GROWTH_BYTES, `memory grew by at most ${(growthBytes / MIB).toFixed(1)} MiB`);
  const lock = await connectLock();
  lock.write(publishPacket('up', testBytes(1)));
  await lock.waitForHex(pubackHex());
});

t.test('1,000 sockets with an unfinished packet of 4 KiB each cost little memory', { skip }, async (t) => {
  const { child, connectLock } = await startWarmGateway(t);
  const before = child.memory().resident;
  const unfinished = Buffer.concat([Buffer.from([CONNECT, ...encodeLength(4 * KIB)]), Buffer.alloc(4 * KIB - 1)]);
  const all = await openStrangers(t, child.mqttPort, unfinished);
  await connectLock();
  const growthBytes = child.memory().maximum - before;
  t.ok(growthBytes <= MAX_GROWTH_BYTES, `memory grew by at most ${(growthBytes / MIB).toFixed(1)} MiB`);
  t.ok(
    all.filter(({ isClosed }) => !isClosed).length > STRANGERS / 2,
    'most sockets are still open, so their bytes are in memory',
  );
  for (const stranger of all) await stranger.waitForClose();
  t.pass('the gateway closes all of them soon');
});
