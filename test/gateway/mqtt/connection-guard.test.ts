/**
 * The connection guard, which limits strangers (clients before authentication) and faulty locks (protocol.md §1). The
 * test uses raw sockets and builds packets itself.
 */
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { FrameCounter, firstPacket } from '../../../gateway/mqtt/packets/frames.js';
import type { DescriptorRoom } from '../../../gateway/network/descriptors.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import {
  CONNACK_ACCEPTED,
  CONNACK_NOT_AUTHORIZED,
  connectPacket,
  encodeLength,
  PINGREQ,
  packet,
  pubackHex,
  publishPacket,
  RawLock,
  subscribePacket,
} from '../../helpers/mqtt/raw-lock.js';
import { startTestBroker } from '../../helpers/mqtt/test-broker.js';
import { SeededChance } from '../../helpers/pair/seeded-chance.js';

/** CONNACK: server unavailable. */
const UNAVAILABLE = '20020003';
const PINGRESP = 'd000';
/** SUBACK of packet id 1: the subscription is granted at QoS 1, or refused. */
const [SUBACK_GRANTED, SUBACK_REFUSED] = ['9003000101', '9003000180'];
const [MAC, OTHER_MAC] = [testMac(1), testMac(2)];
const KIB = 1024;
/** In a new store, the first merchant and the first lock have this id. */
const FIRST_ID = 1;

/** A gateway whose connection guard has a manual clock, and a registered lock. */
async function setUpGateway(t: Test, options: Parameters<typeof testGateway>[1] = {}) {
  const clock = new ManualClock();
  const gateway = await testGateway(t, { guardClock: clock, ...options });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const credentials = { user: MAC, secret };
  const port = gateway.mqttPort;
  const open = (): Promise<RawLock> => RawLock.open(t, port);
  const connectLock = (changes: { keepalive?: number } = {}): Promise<RawLock> =>
    RawLock.connect(t, port, { ...credentials, ...changes });
  return { clock, gateway, credentials, port, open, connectLock };
}

/** Resolves when the gateway has accepted every connection that was made before this call. */
async function waitUntilAccepted(t: Test, gateway: Gateway): Promise<void> {
  const stranger = await RawLock.open(t, gateway.mqttPort);
  stranger.write(connectPacket({ user: 'nobody', secret: 'x' }));
  await stranger.waitForClose();
}

t.test('packets are counted correctly in chunks of any size', async (t) => {
  const random = new SeededChance(1);
  const lengths = [2, 3, 127, 128, 129, 16_383, 16_384, 65_536];
  // PUBLISHes at QoS 0 with an empty topic. Taken for headers, their payloads would be faults.
  const packets = lengths.map((length) => packet(0x30, Buffer.alloc(length, 0xff).fill(0, 0, 2)));
  const allBytes = Buffer.concat([...packets, PINGREQ, ...packets]);
  for (let round = 0; round < 50; round++) {
    const counter = new FrameCounter();
    const faults: unknown[] = [];
    for (let at = 0; at < allBytes.length; ) {
      // The random number to the 4th power, so that small chunks are frequent.
      const chunkBytes = 1 + Math.floor(random.next() ** 4 * 3000);
      faults.push(counter.pass(allBytes.subarray(at, at + chunkBytes), 65_536));
      at += chunkBytes;
    }
    t.ok(
      faults.every((fault) => fault === undefined),
      'no packet is at fault',
    );
    t.equal(counter.complete, 2 * lengths.length + 1);
  }
  const why = (...bytes: number[]): string | undefined => new FrameCounter().pass(Buffer.from(bytes), 65_536)?.why;
  t.equal(why(0x30, ...encodeLength(65_536)), undefined);
  t.match(why(0x30, ...encodeLength(65_537)), /65,537 bytes/);
  t.match(why(0x30, 0x80, 0x80, 0x80, 0x80, 0x01), /more than 4 bytes/);
  // Types 0 and 15 are reserved. A second CONNECT (1), answers of QoS 2 (5 to 7) and what only servers send are refused
  // too.
  for (const type of [0, 1, 2, 5, 6, 7, 9, 11, 13, 15]) t.match(why(type << 4), /is not allowed/, `type ${type}`);
  // The size includes the type's byte and the two bytes of the length.
  t.match(firstPacket(Buffer.from([0x10, ...encodeLength(4096)]), 4096), { state: 'incomplete', size: 4099 });
  t.match(firstPacket(Buffer.from([0x10, ...encodeLength(4097)]), 4096), { state: 'fault' });
  t.match(firstPacket(Buffer.from([0x10]), 4096), { state: 'incomplete' });
  t.match(firstPacket(Buffer.from([0x10, 0xff, 0xff, 0xff, 0xff]), 4096), { state: 'fault' });
});

t.test(
  'a first packet that is not a CONNECT of at most 4 KiB closes the connection at once and is reported',
  async (t) => {
    const { gateway, open } = await setUpGateway(t);
    const firstPackets = {
      'a PUBLISH': publishPacket('up', testBytes(1)),
      'a SUBSCRIBE': subscribePacket('down'),
      'a PINGREQ': PINGREQ,
      HTTP: Buffer.from('GET / HTTP/1.1\r\n'),
      'a TLS ClientHello': Buffer.from([0x16, 3, 1, 2, 0, 1]),
      '256 MB': Buffer.from([0x10, ...encodeLength(256 * KIB * KIB - 1)]),
      '4 KiB and a byte': Buffer.from([0x10, ...encodeLength(4 * KIB + 1)]),
      'a length without an end': Buffer.from([0x10, 0x80, 0x80, 0x80, 0x80, 0x80]),
    };
    for (const [what, bytes] of Object.entries(firstPackets)) {
      const reported = waitForEvents(gateway, 'refused', 1);
      const stranger = await open();
      stranger.write(bytes);
      await stranger.waitForClose();
      t.equal(stranger.receivedHex, '', `${what}: no answer`);
      t.match(
        await reported,
        [{ what: 'connect', address: '127.0.0.1', why: /first packet|announces|length|uses TLS/ }],
        what,
      );
    }
  },
);

t.test('a CONNECT may arrive byte by byte', async (t) => {
  const { open, credentials } = await setUpGateway(t);
  const lock = await open();
  for (const byte of connectPacket(credentials)) await lock.flush(Buffer.from([byte]));
  await lock.waitForHex(CONNACK_ACCEPTED);
  for (const byte of publishPacket('up', testBytes(1))) await lock.flush(Buffer.from([byte]));
  await lock.waitForHex(pubackHex());
});

t.test('a connection without a complete CONNECT is closed after 5 s; one with a CONNECT stays', async (t) => {
  const { gateway, clock, open, credentials } = await setUpGateway(t);
  const [half, slow, silent] = [await open(), await open(), await open()];
  const bytes = connectPacket(credentials);
  half.write(bytes.subarray(0, 40));
  slow.write(bytes.subarray(0, 40));
  await waitUntilAccepted(t, gateway);
  clock.advance(Seconds(4.9));
  slow.write(bytes.subarray(40));
  await slow.waitForHex(CONNACK_ACCEPTED);
  t.notOk(half.isClosed || silent.isClosed, 'none is closed before 5 s');
  const reported = waitForEvents(gateway, 'refused', 2);
  clock.advance(Seconds(0.6));
  await half.waitForClose();
  await silent.waitForClose();
  t.match(await reported, [{ why: /not finished within 5 s/ }, { why: /not finished within 5 s/ }]);
  slow.write(PINGREQ);
  await slow.waitForHex(PINGRESP);
});

t.test('when the bytes held for strangers exceed the limit, the newest connection is closed', async (t) => {
  const { gateway, open, connectLock } = await setUpGateway(t, { guardLimits: { heldBytes: 64 * KIB } });
  let refused = 0;
  gateway.events.on('refused', ({ why }) => {
    if (why.includes('are held already')) refused += 1;
  });
  // A CONNECT of 4 KiB without its last bytes.
  const unfinished = Buffer.concat([Buffer.from([0x10, ...encodeLength(4 * KIB)]), Buffer.alloc(4 * KIB - 10, 0)]);
  const strangers: RawLock[] = [];
  for (let count = 0; count < 32; count++) {
    const stranger = await open();
    stranger.write(unfinished);
    strangers.push(stranger);
  }
  await waitUntilAccepted(t, gateway);
  t.ok(refused >= 15 && refused <= 17, `of 32 strangers with 4 KiB each, ${refused} were refused`);
  const heldConnections = strangers.length - refused;
  await Promise.all(strangers.slice(heldConnections).map((stranger) => stranger.waitForClose()));
  await connectLock();
  t.pass('a CONNECT that arrives in one chunk needs no held bytes');
  for (const stranger of strangers) stranger.socket.destroy();
  await waitUntilAccepted(t, gateway);
  const newStranger = await open();
  newStranger.write(unfinished);
  await waitUntilAccepted(t, gateway);
  t.notOk(newStranger.isClosed, 'the held bytes are released');
});

t.test('the limit of connections per address applies', async (t) => {
  const { gateway, open } = await setUpGateway(t, { guardLimits: { perAddress: 3 } });
  const first = await open();
  const stayingOpen = [await open(), await open()];
  const reported = waitForEvents(gateway, 'refused', 1);
  const fourth = await open();
  await fourth.waitForClose();
  t.match(await reported, [{ what: 'connect', why: /has 3 connections/ }]);
  first.socket.destroy();
  const wrongCredentials = { user: MAC, secret: 'x' };
  // The gateway learns of the close when it next reads. Then a connection gets an answer again: a refusal.
  for (let isAccepted = false; !isAccepted; ) {
    const next = await open();
    next.write(connectPacket(wrongCredentials));
    await next.waitForClose();
    isAccepted = next.receivedHex === CONNACK_NOT_AUTHORIZED;
  }
  t.notOk(
    stayingOpen.some(({ isClosed }) => isClosed),
    'the others stay open',
  );
});

t.test('at too many silent connections of an address, the oldest is closed, but no lock', async (t) => {
  const { gateway, clock, open, connectLock } = await setUpGateway(t, { guardLimits: { silentPerAddress: 2 } });
  const lock = await connectLock();
  const silent = [await open(), await open(), await open()];
  await waitUntilAccepted(t, gateway);
  t.notOk(
    silent.some(({ isClosed }) => isClosed),
    'what they have sent may still be on its way',
  );
  // Connections count as silent after a second; each new one beyond the limit of two closes the longest silent one.
  clock.advance(Seconds(1.5));
  const reported = waitForEvents(gateway, 'refused', 1);
  const newcomer = await open();
  await silent[0]?.waitForClose();
  t.match(await reported, [
    { what: 'connect', why: /has 2 connections without a CONNECT; this one was silent the longest/ },
  ]);
  t.notOk(lock.isClosed, 'the lock stays');
  // The lock connects again: its CONNACK shows that the broker has accepted the newcomer too.
  lock.socket.destroy();
  await connectLock();
  t.notOk(newcomer.isClosed, 'the newest connection stays');
});

t.test(
  'without a free descriptor a lock is refused for now; a silent stranger is closed to make room for it',
  async (t) => {
    let descriptorRoom: DescriptorRoom = 'short';
    const clock = new ManualClock();
    const { broker, addLock } = await startTestBroker(t, { guardClock: clock, roomFor: () => descriptorRoom });
    const credentials = await addLock(MAC);
    const openAndConnect = async (): Promise<RawLock> => {
      const lock = await RawLock.open(t, broker.port);
      lock.write(connectPacket(credentials));
      return lock;
    };
    const refused = await openAndConnect();
    t.equal(await refused.waitForAnswer(), UNAVAILABLE);
    await refused.waitForClose();
    descriptorRoom = 'none';
    const closed = await openAndConnect();
    await closed.waitForClose();
    t.equal(closed.receivedHex, '', 'no descriptor is left for an answer');
    descriptorRoom = 'enough';
    const silent = await RawLock.open(t, broker.port);
    const lock = await openAndConnect();
    t.equal(await lock.waitForAnswer(), CONNACK_ACCEPTED);
    descriptorRoom = 'short';
    // A connection without a CONNECT counts as silent after a second.
    clock.advance(Seconds(1.5));
    const replacing = await openAndConnect();
    t.equal(await replacing.waitForAnswer(), CONNACK_ACCEPTED);
    await silent.waitForClose();

    descriptorRoom = 'enough';
    const silentAgain = await RawLock.open(t, broker.port);
    // The CONNACK shows that the broker has accepted the silent connection too.
    await (await openAndConnect()).waitForAnswer();
    descriptorRoom = 'none';
    clock.advance(Seconds(1.5));
    // The broker accepted it with a descriptor that it holds in reserve, so it closes it at once; closing the silent
    // one makes room for the next.
    const withoutDescriptor = await openAndConnect();
    await withoutDescriptor.waitForClose();
    t.equal(withoutDescriptor.receivedHex, '', 'no connection keeps a reserved descriptor');
    await silentAgain.waitForClose();
    descriptorRoom = 'enough';
    t.equal(
      await (await openAndConnect()).waitForAnswer(),
      CONNACK_ACCEPTED,
      'the next connection gets the freed descriptor',
    );
  },
);

t.test('packets right after the CONNECT are processed only once the CONNECT is accepted', async (t) => {
  const { gateway, open, credentials } = await setUpGateway(t);
  const uplinks = Array.from({ length: 100 }, (_, index) => publishPacket('up', testBytes(index + 1), index + 1));
  const lock = await open();
  lock.write(Buffer.concat([connectPacket(credentials), subscribePacket('down'), ...uplinks]));
  await lock.waitForHex(pubackHex(100));
  t.ok(
    lock.receivedHex.startsWith(`${CONNACK_ACCEPTED}${SUBACK_GRANTED}`),
    'accepted, subscribed, and all acknowledged',
  );
  t.equal((await gateway.store.readEvents(FIRST_ID, LOG_START, 999)).length, 100, 'each uplink is stored');

  const wrongClient = await open();
  wrongClient.write(
    Buffer.concat([connectPacket({ ...credentials, secret: 'wrong' }), publishPacket('up', testBytes(200))]),
  );
  await wrongClient.waitForClose();
  t.equal(wrongClient.receivedHex, CONNACK_NOT_AUTHORIZED);
  t.equal(
    (await gateway.store.readEvents(FIRST_ID, LOG_START, 999)).length,
    100,
    'nothing from a refused client is stored',
  );
});

t.test('a second CONNECT and packets that only servers send close the connection', async (t) => {
  const { gateway, connectLock, credentials } = await setUpGateway(t);
  const packets = {
    'a CONNECT': connectPacket(credentials),
    'a CONNACK': Buffer.from([0x20, 2, 0, 0]),
    'a PUBREL': Buffer.from([0x62, 2, 0, 1]),
    'a PINGRESP': Buffer.from([0xd0, 0]),
    'a packet of type 15': Buffer.from([0xf0, 0]),
    '65,537 bytes': Buffer.from([0x32, ...encodeLength(64 * KIB + 1)]),
  };
  for (const [what, bytes] of Object.entries(packets)) {
    const lock = await connectLock();
    const reported = waitForEvents(gateway, 'refused', 1);
    const ended = waitForEvents(gateway, 'disconnected', 1);
    lock.write(bytes);
    await lock.waitForClose();
    t.match(await reported, [{ what: 'packet', clientId: MAC, why: new RegExp(what) }], what);
    t.match(await ended, [{ mac: MAC, cause: 'gateway' }], 'by the gateway');
  }
});

t.test('an uplink that is too long is quarantined and acknowledged', async (t) => {
  const { gateway, connectLock } = await setUpGateway(t);
  const lock = await connectLock();
  // A PUBLISH has the topic with its length, and a packet id, before the payload; in all, at most 64 KiB.
  const headBytes = 'up'.length + 2 + 2;
  const quarantinedEvents = waitForEvents(gateway, 'quarantined', 2);
  // An uplink may have 1,024 bytes.
  for (const [id, length] of [1025, 64 * KIB - headBytes].entries()) {
    lock.write(publishPacket('up', Buffer.alloc(length, 1), id + 1));
    await lock.waitForHex(pubackHex(id + 1));
  }
  t.match(await quarantinedEvents, [{ code: 'too-long' }, { code: 'too-long' }]);
  t.same(
    (await gateway.store.readQuarantine(FIRST_ID, 9)).map(({ bytes }) => bytes.length),
    [64 * KIB - headBytes, 1025],
  );
});

t.test('a silent client is disconnected after one and a half times its keepalive', async (t) => {
  const { gateway, clock, connectLock } = await setUpGateway(t);
  // A keepalive of 0 (none) counts as 300 s, and one above an hour as an hour.
  const limits = [
    { keepalive: 10, seconds: 15 },
    { keepalive: 300, seconds: 450 },
    { keepalive: 0, seconds: 450 },
    { keepalive: 65_535, seconds: Minutes(90) / Seconds(1) },
  ];
  for (const { keepalive, seconds } of limits) {
    const lock = await connectLock({ keepalive });
    clock.advance(Seconds(seconds - 1));
    lock.write(PINGREQ);
    await lock.waitForHex(PINGRESP);
    clock.advance(Seconds(seconds - 1));
    lock.write(PINGREQ);
    await lock.waitForHex(PINGRESP + PINGRESP);
    const ended = waitForEvents(gateway, 'disconnected', 1);
    clock.advance(Seconds(seconds + 1));
    await lock.waitForClose();
    t.match(await ended, [{ mac: MAC, cause: 'keepalive' }], `keepalive ${keepalive}: ${seconds} s`);
  }
});

t.test('unknown and wrong credentials get the same answer', async (t) => {
  const { gateway, open, credentials } = await setUpGateway(t);
  const logins = {
    'no such lock': { user: OTHER_MAC, secret: credentials.secret },
    'wrong secret': { ...credentials, secret: 'lgs_wrong' },
    'client id': { ...credentials, clientId: OTHER_MAC },
    'carries a will': { ...credentials, will: true },
  };
  for (const [why, login] of Object.entries(logins)) {
    const reported = waitForEvents(gateway, 'refused', 1);
    const stranger = await open();
    stranger.write(connectPacket(login));
    await stranger.waitForClose();
    t.equal(stranger.receivedHex, CONNACK_NOT_AUTHORIZED, why);
    t.match(await reported, [{ what: 'connect', why: new RegExp(why) }], 'only operators see the reason');
  }
});

t.test('a client with a wrong credential can’t take over a lock’s connection', async (t) => {
  const { gateway, open, connectLock } = await setUpGateway(t);
  const { secret } = await gateway.accounts.addDevice({ mac: OTHER_MAC });
  const lock = await connectLock();
  for (const credentials of [
    { clientId: MAC, user: OTHER_MAC, secret },
    { clientId: MAC, user: MAC, secret },
  ]) {
    const thief = await open();
    thief.write(connectPacket(credentials));
    await thief.waitForClose();
    t.equal(thief.receivedHex, CONNACK_NOT_AUTHORIZED);
  }
  lock.write(publishPacket('up', testBytes(1)));
  await lock.waitForHex(pubackHex());
});

t.test('refused topics and publishes are reported, and counted for operators', async (t) => {
  const { gateway, open, connectLock } = await setUpGateway(t);
  for (const topic of ['#', '+', 'up', '$SYS/#', '$share/g/down', 'down/+']) {
    const lock = await connectLock();
    const reported = waitForEvents(gateway, 'refused', 1);
    lock.write(subscribePacket(topic));
    await lock.waitForHex(SUBACK_REFUSED);
    t.match(await reported, [{ what: 'subscribe' }], topic);
    lock.socket.destroy();
  }
  const publishes = {
    'another topic': publishPacket(`up/${OTHER_MAC}`, testBytes(1)),
    'the topic of commands': publishPacket('down', testBytes(1)),
    'a system topic': publishPacket('$SYS/x', testBytes(1)),
    'a wildcard': publishPacket('#', testBytes(1)),
    'no topic': publishPacket('', testBytes(1)),
    'QoS 2': publishPacket('up', testBytes(1), 1, 0x04),
    retained: publishPacket('up', testBytes(1), 1, 0x03),
    'QoS 3': publishPacket('up', testBytes(1), 1, 0x06),
  };
  for (const [what, bytes] of Object.entries(publishes)) {
    const lock = await connectLock();
    const reported = waitForEvents(gateway, 'refused', 1);
    lock.write(bytes);
    await lock.waitForClose();
    t.match(await reported, [{ what: 'publish' }], what);
  }
  const stranger = await open();
  stranger.write(PINGREQ);
  await stranger.waitForClose();
  const answer = await fetch(`http://127.0.0.1:${gateway.operatorPort}/status`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
  });
  const { mqtt } = (await answer.json()) as { mqtt: { refused: unknown } };
  t.same(mqtt.refused, { connect: 1, packet: 0, publish: 8, subscribe: 6, connection: 0 });
  t.same(await gateway.store.readEvents(FIRST_ID, LOG_START, 9), [], 'nothing was stored');
});
