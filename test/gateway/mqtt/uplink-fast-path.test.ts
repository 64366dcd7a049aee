/**
 * The fast path, which reads ordinary uplinks (a lock's messages) without the MQTT library
 * (gateway/mqtt/uplink-fast-path.ts): the guarantees of MQTT 3.1.1 hold whatever packets surround an uplink and however
 * they are cut into chunks. A manual broker with simulated sockets replaces the network. The part that stores uplinks,
 * ingest, answers when the test tells it to. Numbers such as (4.6) are sections of MQTT 3.1.1.
 */
import t from 'tap';
import { connectionFilterOf } from '../../../gateway/mqtt/connection-filter.js';
import { ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';
import { compareFastPath } from '../../helpers/mqtt/fast-path-streams.js';
import { runLoopTurns, type SimulatedSocket, startManualBroker } from '../../helpers/mqtt/manual-broker.js';
import { CONNACK_ACCEPTED, PINGREQ, pubackHex, publishPacket, subscribePacket } from '../../helpers/mqtt/raw-lock.js';
import { chooseSeed } from '../../helpers/pair/seeded-chance.js';

const MAC = testMac();
/**
 * Number of random streams; the long test has many more. The rarest packet, an uplink that can't be stored, is in some
 * 30 of them.
 */
const RANDOM_STREAMS = 400;
const DISCONNECT = Buffer.from([0xe0, 0]);
const [PINGRESP, SUBACK] = ['d000', '9003000101'];
/** An uplink at QoS 0. */
const QOS_0 = Buffer.from([0x30, 7, 0, 2, ...Buffer.from('upq-0')]);
/** The number of uplinks in a burst; ingest answers them all at once, as after a commit. */
const BURST = 50;

t.setTimeout(Minutes(2));

/** An uplink with a payload that names it. In the PUBLISH's flags, 0x02 is QoS 1, and 0x08 in addition is a repeat. */
function uplink(id: number, payload = `p${id}`, flags = 0x02): Buffer {
  return publishPacket('up', Buffer.from(payload), id, flags);
}

function uplinks(from: number, to: number): Buffer[] {
  return Array.from({ length: to - from + 1 }, (_, index) => uplink(from + index));
}

function pubacks(from: number, to: number): string {
  return Array.from({ length: to - from + 1 }, (_, index) => pubackHex(from + index)).join('');
}

/** The bytes received since the CONNACK, hex. */
function answersTo(lock: SimulatedSocket): string {
  return lock.received.slice(CONNACK_ACCEPTED.length);
}

t.test('an ordinary uplink never reaches the library, and a burst of uplinks is answered with one write', async (t) => {
  const { connect, ingest, counts, events } = await startManualBroker(t);
  let acknowledged = 0;
  events.on('acknowledged', ({ durationMs }) => {
    if (durationMs >= 0) acknowledged += 1;
  });
  const [lock, other] = [await connect(MAC), await connect(testMac(2))];
  const before = lock.writes;
  for (const chunk of uplinks(1, BURST)) lock.send(chunk);
  other.send(uplink(9));
  t.equal(answersTo(lock), '', 'nothing is acknowledged before it is stored');
  ingest.answer();
  await runLoopTurns();
  t.equal(answersTo(lock), pubacks(1, BURST), 'in the order in which they were sent (4.6)');
  t.equal(answersTo(other), pubackHex(9));
  t.equal(lock.writes - before, 1);
  t.equal(connectionFilterOf(lock)?.passedToLibrary, 0);
  t.equal(counts.messagesUp, BURST + 1, 'each is counted');
  t.equal(acknowledged, BURST + 1, 'each PUBACK is counted');
  lock.send(Buffer.concat(uplinks(BURST + 1, 2 * BURST)));
  ingest.answer();
  await runLoopTurns();
  t.equal(answersTo(lock), pubacks(1, 2 * BURST), 'many uplinks in one chunk do not reach the library either');
  t.equal(connectionFilterOf(lock)?.passedToLibrary, 0);
  lock.send(uplink(7, 'again', 0x0a));
  ingest.answer();
  await runLoopTurns();
  t.equal(answersTo(lock), pubacks(1, 2 * BURST) + pubackHex(7), 'a repeat is answered again (4.4)');
  t.equal(connectionFilterOf(lock)?.passedToLibrary, 0);
  for (const unusual of [subscribePacket('down'), QOS_0, PINGREQ]) lock.send(unusual);
  await runLoopTurns();
  t.equal(connectionFilterOf(lock)?.passedToLibrary, 3, 'an unusual packet reaches the library');
});

t.test('uplinks keep their order among a lock’s other packets', async (t) => {
  const { connect, ingest } = await startManualBroker(t);
  const lock = await connect(MAC);
  lock.send(
    Buffer.concat([uplink(1), PINGREQ, uplink(2), QOS_0, uplink(3), subscribePacket('down'), uplink(4), uplink(5)]),
  );
  lock.send(uplink(6), uplink(7));
  await runLoopTurns();
  for (let round = 0; round < 20; round++) {
    ingest.answer(1);
    await runLoopTurns();
  }
  const expectedPayloads = ['p1', 'p2', 'q-0', 'p3', 'p4', 'p5', 'p6', 'p7'];
  t.same(
    ingest.taken.map(({ payload }) => payload),
    expectedPayloads,
  );
  const answers = answersTo(lock);
  t.ok(answers.includes(PINGRESP) && answers.includes(SUBACK));
  const receivedPubacks = answers.replace(PINGRESP, '').replace(SUBACK, '');
  t.equal(receivedPubacks, pubacks(1, 7));
});

t.test('an uplink may be cut into chunks anywhere', async (t) => {
  const { connect, ingest } = await startManualBroker(t);
  const allBytes = Buffer.concat(uplinks(1, 3));
  for (let at = 1; at < allBytes.length; at++) {
    const lock = await connect(testMac(at));
    lock.send(Buffer.from(allBytes.subarray(0, at)));
    await runLoopTurns(1);
    ingest.answer();
    await runLoopTurns(1);
    lock.send(Buffer.from(allBytes.subarray(at)));
    await runLoopTurns(1);
    ingest.answer();
    await runLoopTurns(2);
    const taken = ingest.removeTaken();
    if (answersTo(lock) !== pubacks(1, 3) || taken.join() !== 'p1,p2,p3') t.fail(`cut at ${at}: ${taken}`);
  }
  t.pass(`${allBytes.length - 1} cuts`);
});

t.test('bytes in a payload are never read as packets, wherever the packet is cut', async (t) => {
  const { connect, ingest } = await startManualBroker(t);
  // So long that the packet's length takes two bytes, and full of bytes that look like uplinks.
  const payload = Buffer.alloc(300, uplink(99, 'evil'));
  for (let shift = 0; shift < uplink(99, 'evil').length; shift++) {
    const allBytes = publishPacket('up', payload.subarray(shift), 5);
    const lock = await connect(testMac(shift + 1));
    for (const [from, to] of [
      [0, 1],
      [1, 2],
      [2, 9],
      [9, 150],
      [150, allBytes.length],
    ] as const)
      lock.send(Buffer.from(allBytes.subarray(from, to)));
    lock.send(allBytes.subarray(0, 2), allBytes.subarray(2));
    await runLoopTurns(2);
    ingest.answer();
    await runLoopTurns(2);
    t.same(
      ingest.removeTaken().map(({ length }) => length),
      [300 - shift, 300 - shift],
    );
    t.equal(answersTo(lock), pubackHex(5) + pubackHex(5));
  }
});

t.test('the library’s answers do not overtake earlier PUBACKs of the same turn', async (t) => {
  const { connect, ingest } = await startManualBroker(t);
  const lock = await connect(MAC);
  const nextUplink = uplink(2);
  lock.send(Buffer.concat([uplink(1), nextUplink.subarray(0, 5)]));
  await runLoopTurns();
  lock.send(Buffer.concat([nextUplink.subarray(5), uplink(3)]));
  await runLoopTurns();
  t.equal(connectionFilterOf(lock)?.passedToLibrary, 2, 'both parts of the packet that arrived in two chunks');
  ingest.answer();
  await runLoopTurns();
  t.equal(answersTo(lock), pubacks(1, 3));
});

t.test('packets right after the CONNECT are answered after the CONNACK (3.2)', async (t) => {
  const { connect, ingest } = await startManualBroker(t);
  const lock = await connect(MAC, Buffer.concat([uplink(1), PINGREQ, uplink(2)]));
  ingest.answer();
  await runLoopTurns();
  t.equal(lock.received.replace(PINGRESP, ''), CONNACK_ACCEPTED + pubacks(1, 2));
});

t.test('nothing is accepted after a DISCONNECT (3.14.4) or after a packet that closes the connection', async (t) => {
  const { connect, ingest, events } = await startManualBroker(t);
  const causes: string[] = [];
  events.on('disconnected', ({ cause }) => causes.push(cause));
  const closingPackets = {
    DISCONNECT,
    'a foreign topic': publishPacket('other', Buffer.from('x'), 9),
    'a foreign topic as long as `up`': publishPacket('uq', Buffer.from('x'), 9),
  };
  for (const [index, [what, closingPacket]] of Object.entries(closingPackets).entries()) {
    const lock = await connect(testMac(index + 1));
    lock.send(Buffer.concat([uplink(1), closingPacket, QOS_0, uplink(2)]));
    lock.send(uplink(3));
    await runLoopTurns();
    ingest.answer();
    await runLoopTurns();
    const taken = ingest.removeTaken();
    t.same(taken, ['p1'], what);
    t.ok(lock.destroyed, `${what}: the connection is closed`);
    t.equal(answersTo(lock), '', `${what}: and gets no more bytes`);
  }
  t.same(causes, ['closed', 'gateway', 'gateway']);
});

t.test('an uplink that can’t be stored closes the connection; earlier stored ones are acknowledged', async (t) => {
  const { connect, ingest, broker, events } = await startManualBroker(t);
  const causes: string[] = [];
  events.on('disconnected', ({ cause }) => causes.push(cause));
  ingest.failureOf = (payload) => (payload === 'p2' ? new LockgateError('overloaded', 'full') : undefined);
  const lock = await connect(MAC);
  lock.send(...uplinks(1, 3));
  ingest.answer();
  await runLoopTurns();
  t.equal(answersTo(lock), pubackHex(1));
  t.ok(lock.destroyed);
  t.same(causes, ['gateway']);

  ingest.refusalOf = (payload) => (payload === 'p6' ? new LockgateError('overloaded', 'full') : undefined);
  const secondLock = await connect(MAC);
  secondLock.send(Buffer.concat(uplinks(4, 8)));
  await runLoopTurns();
  t.ok(secondLock.destroyed, 'closed at once if the uplink is refused at once');
  t.equal(ingest.waitingCount, 2, 'nothing after it is accepted');
  ingest.answer();
  await runLoopTurns();
  t.equal(answersTo(secondLock), '');
  t.equal(broker.connected, 0);
  t.equal(broker.refusals.publish, 0, 'a full queue is no refusal of what the lock published');
});

t.test(
  'after the gateway closes a connection, or another takes it over, its uplinks are neither accepted nor acknowledged',
  async (t) => {
    const { connect, ingest, broker } = await startManualBroker(t);
    const revoked = await connect(MAC);
    revoked.send(uplink(1));
    // The manual broker gives a lock its MAC, read as a number, as the device id.
    broker.sessions.end(Number.parseInt(MAC, 16));
    revoked.send(uplink(2));
    ingest.answer();
    await runLoopTurns();
    t.same(
      ingest.taken.map(({ payload }) => payload),
      ['p1'],
    );
    t.equal(answersTo(revoked), '');
    t.ok(revoked.destroyed);

    const first = await connect(testMac(2));
    first.send(uplink(3));
    const second = await connect(testMac(2));
    first.send(uplink(4));
    second.send(uplink(3));
    ingest.answer();
    await runLoopTurns();
    t.equal(answersTo(first), '');
    t.equal(answersTo(second), pubackHex(3));
    t.ok(first.destroyed);
  },
);

t.test('a client with many unanswered uplinks, or that does not read, is not read', async (t) => {
  const { connect, ingest } = await startManualBroker(t);
  const floodingLock = await connect(MAC);
  floodingLock.send(...uplinks(1, 1000));
  await runLoopTurns();
  const takenAtOnce = ingest.taken.length;
  // Reading pauses at 64 unanswered uplinks.
  t.ok(takenAtOnce >= 1 && takenAtOnce <= 100, `${takenAtOnce} of 1,000 are taken`);
  while (ingest.waitingCount > 0) {
    ingest.answer();
    await runLoopTurns();
  }
  t.equal(answersTo(floodingLock), pubacks(1, 1000), 'the other uplinks are taken once these are answered');

  const nonReading = await connect(testMac(2));
  nonReading.isReading = false;
  const before = ingest.taken.length;
  for (let id = 1; id <= 20_000; id++) {
    nonReading.send(uplink(id));
    ingest.answer();
    if (id % 100 === 0) await runLoopTurns(2);
  }
  const taken = ingest.taken.length - before;
  // Reading pauses when the socket's write buffer of 16 KiB is full, with 4,096 PUBACKs of 4 bytes.
  t.ok(
    nonReading.writableLength > 0 && nonReading.writableLength <= 20_000,
    `${nonReading.writableLength} bytes wait for the client`,
  );
  t.ok(taken < 6000, `${taken} of 20,000 are taken`);
  nonReading.resumeReading();
  for (let round = 0; round < 2000 && ingest.taken.length - before < 20_000; round++) {
    await runLoopTurns(1);
    ingest.answer();
  }
  await runLoopTurns();
  t.equal(ingest.taken.length - before, 20_000, 'the remaining ones when the client reads again');
  t.equal(answersTo(nonReading).length, 20_000 * pubackHex(1).length);
});

t.test('uplinks keep a connection alive, and commands are sent between them', async (t) => {
  const guardClock = new ManualClock();
  const { connect, ingest, broker, events } = await startManualBroker(t, { guardClock });
  const causes: string[] = [];
  events.on('disconnected', ({ cause }) => causes.push(cause));
  const lock = await connect(MAC);
  lock.send(subscribePacket('down'));
  await runLoopTurns();
  for (let id = 1; id <= 4; id++) {
    guardClock.advance(Seconds(400));
    lock.send(uplink(id));
    ingest.answer();
    await runLoopTurns();
  }
  t.equal(answersTo(lock), SUBACK + pubacks(1, 4), 'its keepalive of 300 s has passed four times');
  await broker.sessions.ofLock(Number.parseInt(MAC, 16))?.send(Buffer.from('unlock'));
  t.match(answersTo(lock), new RegExp(`${Buffer.from('unlock').toString('hex')}$`));
  // The lock's PUBACK of the command, and another uplink.
  lock.send(Buffer.from([0x40, 2, 0, 1]), uplink(5));
  ingest.answer();
  await runLoopTurns();
  t.ok(answersTo(lock).endsWith(pubackHex(5)));
  // One and a half times the keepalive of 300 s.
  guardClock.advance(Seconds(451));
  await runLoopTurns();
  t.same(causes, ['keepalive']);
});

t.test('if the socket has another listener, the library handles everything', async (t) => {
  const { connect, ingest } = await startManualBroker(t);
  const lock = await connect(MAC, uplink(1), (socket) => socket.on('readable', () => undefined));
  lock.send(uplink(2));
  await runLoopTurns();
  ingest.answer();
  await runLoopTurns();
  t.equal(answersTo(lock), pubacks(1, 2));
  t.equal(connectionFilterOf(lock)?.uplinkPath, undefined);
});

t.test('a broker that stops answers received uplinks and accepts no more', async (t) => {
  const { connect, ingest, broker } = await startManualBroker(t);
  const lock = await connect(MAC);
  lock.send(uplink(1), uplink(2));
  const closed = broker.close();
  lock.send(uplink(3));
  await closed;
  // A stopping broker waits for ingest to stop, which answers all that it has taken.
  t.equal(answersTo(lock), pubacks(1, 2));
  t.equal(ingest.taken.length, 2, 'the uplink after the stop is not taken');
  t.ok(lock.destroyed);
});

t.test(
  'what a lock sends has the same result through the fast path and through the library only, however it is cut',
  async (t) => {
    const seed = chooseSeed();
    const result = await compareFastPath(t, seed, RANDOM_STREAMS);
    t.same(result.faults, [], `LOCKGATE_SEED=${seed}`);
    t.equal(result.openConnections, 0, 'no connection is left');
    // Otherwise the random streams would leave one of the two ways, or the ends of connections, nearly untested.
    t.ok(
      result.closed > RANDOM_STREAMS / 20 && result.closed < RANDOM_STREAMS / 2,
      `${result.closed} of ${RANDOM_STREAMS} were ended`,
    );
    t.ok(
      result.uplinks > RANDOM_STREAMS && result.passedToLibrary > RANDOM_STREAMS,
      `${result.uplinks} uplinks in ${result.chunks} chunks`,
    );
  },
);
