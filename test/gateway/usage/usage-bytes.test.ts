/**
 * The billed bytes of a lock equal those that a network between lock and gateway counts, exactly and per direction (up:
 * from the lock): over a complete connection, however it ends, with and without TLS, at the end of a month, and after a
 * crash. A counting proxy plays the network. The last tests are about the activation of SIMs, which is billed too.
 */
import { connect, Socket } from 'node:net';
import type { IClientOptions } from 'mqtt';
import t, { type Test } from 'tap';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import type { UsageDelta, UsageRow } from '../../../gateway/store/contract/usage-store.js';
import { afterThisTurn, Seconds } from '../../../proto/clock.js';
import { encodeDownlink } from '../../../proto/wire/codec.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { ChangeSignal } from '../../helpers/clocks/change-signal.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { GatewayChild } from '../../helpers/gateway/gateway-child.js';
import { testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { BEFORE_MONTH_END_MS, setUpUsage, type UsageSetup } from '../../helpers/gateway/usage-setup.js';
import { CountingProxy, type ProxiedConnection } from '../../helpers/http/counting-proxy.js';
import { connackCode, TestLock } from '../../helpers/mqtt/test-lock.js';

t.setTimeout(120_000);

const MAC = testMac();
// Return codes of MQTT's CONNACK.
const NOT_AUTHORIZED = 5;
const SERVER_UNAVAILABLE = 3;
/** A command to the lock that expires in 2027; the lock does not execute it. */
const COMMAND = encodeDownlink({ id: 7, expiresMs: 1_800_000_000_000, command: { type: 'locate-gps' } });

/** A wait that takes longer fails the test. */
const MAX_WAIT_SECONDS = 20;
const TRANSPORTS: Readonly<Record<'tcp' | 'tls', IClientOptions>> = {
  tcp: {},
  // The gateway's certificate is self-signed.
  tls: { protocol: 'mqtts', rejectUnauthorized: false },
};

interface BytesSetup extends UsageSetup {
  readonly proxy: CountingProxy;
  readonly secret: string;
  readonly deviceId: number;
  /** Connects the lock through the proxy. */
  connectLock(): Promise<TestLock>;
}

async function setUpBytes(t: Test, transport: 'tcp' | 'tls'): Promise<BytesSetup> {
  const usage = await setUpUsage(t);
  const port = await usage.openPort(transport);
  const proxy = await CountingProxy.start(t, () => port);
  const { device, secret } = await usage.accounts.addDevice({ mac: MAC });
  const connectLock = (): Promise<TestLock> => TestLock.connect(t, proxy.port, MAC, secret, TRANSPORTS[transport]);
  return { ...usage, proxy, secret, deviceId: device.id, connectLock };
}

/** The bytes that the gateway bills for the lock, in all months together. */
async function billedBytes({ usage }: UsageSetup): Promise<{ up: number; down: number }> {
  const rows = await usage.read({ mac: MAC });
  const sum = (of: (row: UsageRow) => number): number => rows.map(of).reduce((a, b) => a + b, 0);
  return { up: sum(({ bytesUp }) => bytesUp), down: sum(({ bytesDown }) => bytesDown) };
}

/** Sends MQTT's PINGREQ and waits for the PINGRESP. */
async function pingAndWait(lock: TestLock): Promise<void> {
  const answered = new Promise<void>((resolve) => {
    lock.client.on('packetreceive', (packet) => packet.cmd === 'pingresp' && resolve());
  });
  lock.client.sendPing();
  await answered;
}

/** Sends a command to the lock and waits until it has arrived. */
async function sendCommand(lock: TestLock, { broker, deviceId }: BytesSetup): Promise<void> {
  const arrived = new Promise<Buffer>((resolve) => lock.client.once('message', (_topic, payload) => resolve(payload)));
  await broker.sessions.ofLock(deviceId)?.send(Buffer.from(COMMAND));
  if (!(await arrived).equals(COMMAND)) throw new Error('another command arrived');
}

/** Sends and receives each kind of packet that a lock's connection may have, the DISCONNECT last. */
async function sendEveryPacket(setup: BytesSetup): Promise<void> {
  const lock = await setup.connectLock();
  await lock.client.subscribeAsync('down', { qos: 1 });
  for (let sequence = 1; sequence <= 5; sequence += 1) await lock.send(testBytes(sequence));
  await lock.send(testBytes(5));
  await lock.send(Buffer.from('garbage'));
  await sendCommand(lock, setup);
  await pingAndWait(lock);
  await Promise.all(Array.from({ length: 20 }, (_, index) => lock.send(testBytes(10 + index))));
  await lock.client.endAsync();
  await lock.closed;
}

/** The ways in which a connection ends, each with the actions that cause it. */
const CONNECTION_ENDS: Readonly<Record<string, (setup: BytesSetup) => Promise<void>>> = {
  'the lock’s DISCONNECT, after every kind of packet': sendEveryPacket,
  'the lock’s DISCONNECT right after an uplink': async (setup) => {
    const lock = await setup.connectLock();
    lock.client.publish('up', testBytes(40), { qos: 0 });
    await lock.client.endAsync();
    await lock.closed;
  },
  'the lock’s close of the TCP connection without a DISCONNECT': async (setup) => {
    const lock = await setup.connectLock();
    await lock.send(testBytes(41));
    lock.client.stream.end();
    await lock.closed;
  },
  // A second connection of the lock ends the first one.
  'a takeover': async (setup) => {
    const first = await setup.connectLock();
    await first.send(testBytes(42));
    const second = await setup.connectLock();
    await first.closed;
    await second.send(testBytes(43));
    await second.client.endAsync();
  },
  'a disconnect by the gateway': async (setup) => {
    const lock = await setup.connectLock();
    await lock.send(testBytes(44));
    setup.broker.sessions.end(setup.deviceId);
    await lock.closed;
  },
  'a refused publish, followed by others': async (setup) => {
    const lock = await setup.connectLock();
    lock.client.publish('elsewhere', testBytes(45), { qos: 1 }, () => undefined);
    for (let index = 0; index < 10; index += 1) lock.client.publish('up', testBytes(46), { qos: 1 }, () => undefined);
    await lock.closed;
  },
  'the gateway’s stop': async (setup) => {
    const lock = await setup.connectLock();
    await lock.send(testBytes(47));
    const closed = setup.broker.close();
    await lock.closed;
    await closed;
  },
};

for (const transport of ['tcp', 'tls'] as const) {
  t.test(`every byte over ${transport} is counted once, however the connection ends`, async (t) => {
    const setup = await setUpBytes(t, transport);
    let connections = 0;
    for (const [ending, connectAndEnd] of Object.entries(CONNECTION_ENDS)) {
      await connectAndEnd(setup);
      connections = setup.proxy.connections.length;
      await setup.proxy.waitForAllClosed(connections);
      await setup.waitForSocketsClosed();
      const { up, down } = setup.proxy.bytes;
      t.ok(up > 0 && down > 0, 'something was counted');
      t.same(await billedBytes(setup), { up, down }, ending);
    }
    const [row] = await setup.usage.read({ mac: MAC });
    t.equal(row?.connections, connections, 'every connection is counted');
  });
}

t.test('every message is counted, including repeats and undecodable ones', async (t) => {
  const setup = await setUpBytes(t, 'tcp');
  await sendEveryPacket(setup);
  await setup.proxy.waitForAllClosed(1);
  await setup.waitForSocketsClosed();
  t.match(await setup.usage.read({}), [
    // sendEveryPacket sends 5 pings, a repeat, garbage and 20 more pings, and receives one command.
    { month: '2099-11', mac: MAC, simulated: false, messagesUp: 27, messagesDown: 1, connections: 1 },
  ]);
});

t.test('a reader counts each connection with a message since the last reading', async (t) => {
  const setup = await setUpBytes(t, 'tcp');
  const { meter } = setup.usage;
  const lock = await setup.connectLock();
  // `take` returns and removes the counts since the last call; “active” leaves out connections without a message.
  const connected = meter.take('active');
  t.match(connected, [{ connections: 1, messagesUp: 0 }], 'a new connection counts');
  await lock.send(testBytes(1));
  const active = meter.take('active');
  t.match(active, [{ connections: 0, messagesUp: 1 }]);
  t.same(meter.take('active'), [], 'nothing passed since then');
  const bytesUp = [...connected, ...active].reduce((sum, delta) => sum + delta.bytesUp, 0);
  t.equal(bytesUp, setup.proxy.bytes.up, 'no byte is lost');
  meter.putBack([...connected, ...active]);
});

t.test('a connection that lasts beyond the end of a month is split there', async (t) => {
  const setup = await setUpBytes(t, 'tcp');
  const lock = await setup.connectLock();
  await lock.send(testBytes(1));
  const { up, down } = setup.proxy.bytes;
  // The setup's clock starts ten seconds before the end of November 2099.
  setup.clock.advance(Seconds(9));
  t.equal(setup.usage.meter.month, '2099-11');
  setup.clock.advance(Seconds(1));
  t.equal(setup.usage.meter.month, '2099-12', 'the first millisecond of a month belongs to it');
  await lock.send(testBytes(2));
  await lock.send(testBytes(3));
  await lock.client.endAsync();
  await setup.proxy.waitForAllClosed(1);
  await setup.waitForSocketsClosed();
  const allBytes = setup.proxy.bytes;
  const [november, december, ...otherMonths] = await setup.usage.read({});
  t.match(november, { month: '2099-11', bytesUp: up, bytesDown: down, messagesUp: 1, connections: 1 });
  const decemberBytes = { bytesUp: allBytes.up - up, bytesDown: allBytes.down - down };
  t.match(december, { month: '2099-12', ...decemberBytes, messagesUp: 2, connections: 0 });
  t.same(otherMonths, []);
});

t.test('a connection whose CONNECT is incomplete at the end of a month is split there', async (t) => {
  const usage = await setUpUsage(t);
  const port = await usage.openPort('tcp');
  const { secret } = await usage.accounts.addDevice({ mac: MAC });
  const packet = connectPacket(MAC, secret);
  const novemberBytes = 20;
  const connackBytes = 4;
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  t.teardown(() => socket.destroy());
  socket.write(packet.subarray(0, novemberBytes));
  while (usage.sockets[0]?.bytesRead !== novemberBytes) await new Promise<void>((resolve) => afterThisTurn(resolve));
  usage.clock.advance(Seconds(10));
  const answered = new Promise((resolve) => socket.once('data', resolve));
  socket.write(packet.subarray(novemberBytes));
  await answered;
  t.match(await usage.usage.read({}), [
    { month: '2099-11', bytesUp: novemberBytes, bytesDown: 0, connections: 0 },
    { month: '2099-12', bytesUp: packet.length - novemberBytes, bytesDown: connackBytes, connections: 1 },
  ]);
});

/** The bytes of an MQTT 3.1.1 CONNECT, which fit into 127 bytes, so that its length is one byte. */
function connectPacket(mac: Mac, secret: string): Buffer {
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([0, value.length]), Buffer.from(value)]);
  const protocolLevel = 4;
  const flags = 0xc2; // user name, password, clean session
  const keepAliveSeconds = [0, 60];
  const header = Buffer.from([protocolLevel, flags, ...keepAliveSeconds]);
  const clientIdUserAndPassword = [text(mac), text(mac), text(secret)];
  const body = Buffer.concat([text('MQTT'), header, ...clientIdUserAndPassword]);
  const packetType = 0x10;
  return Buffer.concat([Buffer.from([packetType, body.length]), body]);
}

t.test('a refused CONNECT is not billed', async (t) => {
  const setup = await setUpBytes(t, 'tcp');
  const wrongPassword = { clientId: MAC, username: MAC, password: 'wrong' };
  t.equal(await connackCode(setup.proxy.port, wrongPassword), NOT_AUTHORIZED);
  await setup.proxy.waitForAllClosed(1);
  await setup.waitForSocketsClosed();
  t.ok(setup.proxy.bytes.up > 0, 'the network has counted it');
  t.same(await setup.usage.read({}), []);
  t.equal(setup.usage.sims.activatedAtMs(MAC), null, 'it activates no SIM');
});

t.test('bytes that Node buffered but never gave to the operating system do not count as sent', async (t) => {
  const setup = await setUpBytes(t, 'tcp');
  await setup.connectLock();
  const raw = setup.broker.sessions.ofLock(setup.deviceId)?.connection.raw as Socket;
  // More than the system's socket buffers hold.
  const large = Buffer.alloc(64 * 1024 * 1024);
  raw.write(large);
  // At once: the gateway's own ways to end a connection may wait for writes.
  Socket.prototype.destroy.call(raw);
  t.ok(raw.bytesWritten >= large.length, 'Node’s own count includes them');
  await setup.proxy.waitForAllClosed(1);
  await setup.waitForSocketsClosed();
  t.ok(setup.proxy.bytes.down < large.length, 'most of it never left');
  t.same(await billedBytes(setup), setup.proxy.bytes);
});

t.test('changed counts are stored every second in one commit, and a failure of the store loses none', async (t) => {
  const commits: (readonly UsageDelta[])[] = [];
  const changeSignal = new ChangeSignal();
  let isFailing = false;
  const setup = await setUpUsage(t, {
    wrapStore: (store) => {
      const add = async (deltas: readonly UsageDelta[], nowMs: number): Promise<void> => {
        if (isFailing) throw new StoreFailure('add usage', new Error('disk full'));
        await store.usage.add(deltas, nowMs);
        commits.push(deltas);
        changeSignal.notify();
      };
      return withOverrides(store, { usage: withOverrides(store.usage, { add }) });
    },
  });
  const committed = (count: number): Promise<void> =>
    changeSignal.waitUntil(
      () => commits.length === count,
      MAX_WAIT_SECONDS,
      () => 'a commit',
    );
  const locks: TestLock[] = [];
  for (const number of [1, 2, 3]) {
    const { secret } = await setup.accounts.addDevice({ mac: testMac(number) });
    locks.push(await TestLock.connect(t, setup.broker.port, testMac(number), secret));
  }
  setup.clock.advance(Seconds(1));
  await committed(1);
  t.same(
    commits[0]?.map(({ connections }) => connections),
    [1, 1, 1],
    'three locks, one commit',
  );
  setup.clock.advance(Seconds(1));
  await locks[0]?.send(testBytes(1));
  setup.clock.advance(Seconds(1));
  await committed(2);
  t.match(commits[1], [{ mac: testMac(1), messagesUp: 1, connections: 0 }], 'only the lock that sent something');
  isFailing = true;
  const failed = new Promise((resolve) => setup.events.once('store-failed', resolve));
  await locks[1]?.send(testBytes(1));
  setup.clock.advance(Seconds(1));
  t.match(await failed, { why: /disk full/ }, 'a failing store is reported');
  await locks[1]?.send(testBytes(2));
  isFailing = false;
  setup.clock.advance(Seconds(1));
  await committed(3);
  t.ok(
    commits[2]?.every(({ mac }) => mac === testMac(2)),
    'only the lock that sent something',
  );
  t.match(
    await setup.usage.read({ mac: testMac(2) }),
    [{ messagesUp: 2, connections: 1 }],
    'the counts are stored later, once',
  );
  isFailing = true;
  const failures: unknown[] = [];
  setup.events.on('store-failed', (failure) => failures.push(failure));
  await locks[2]?.send(testBytes(1));
  await setup.usage.stop();
  t.match(failures, [{ why: /disk full/ }], 'so is one that fails at the stop');
});

/** The sums of the lines `usage [{…}]` with which the gateway's process reports each commit of counts. */
function storedBytes(lines: readonly string[]): { up: number; down: number } {
  const deltas = lines
    .filter((line) => line.startsWith('usage '))
    .flatMap((line) => JSON.parse(line.slice('usage '.length)) as UsageDelta[]);
  const sum = (of: (delta: UsageDelta) => number): number => deltas.map(of).reduce((a, b) => a + b, 0);
  return { up: sum(({ bytesUp }) => bytesUp), down: sum(({ bytesDown }) => bytesDown) };
}

t.test('kill -9 loses only counts that were not stored yet, and nothing is counted twice', async (t) => {
  const gateway = await GatewayChild.create(t, { printsUsage: true });
  await gateway.start();
  await gateway.post('/merchants', { name: 'Amber' });
  const secret = await gateway.addLock(MAC);
  const proxy = await CountingProxy.start(t, () => gateway.mqttPort);
  const first = await TestLock.connect(t, proxy.port, MAC, secret);
  for (let sequence = 1; sequence <= 20; sequence += 1) await first.send(testBytes(sequence));
  // The lock has its last PUBACK, so the proxy has counted all bytes up to now.
  const before = proxy.bytes;
  await gateway.program.waitUntil((lines) => {
    const { up, down } = storedBytes(lines);
    return up === before.up && down === before.down;
  });
  t.pass('all counts are on the disk');
  for (let sequence = 21; sequence <= 30; sequence += 1) await first.send(testBytes(sequence));
  await gateway.kill();
  await first.closed;
  const atKill = proxy.bytes;

  await gateway.start();
  type Answer = { usage: { bytes_up: number; bytes_down: number }[] };
  const [row] = (await gateway.get<Answer>('/usage')).usage;
  const { bytes_up: up = 0, bytes_down: down = 0 } = row ?? {};
  t.ok(up >= before.up && down >= before.down, `${up} and ${down} of ${JSON.stringify(before)}, all that was stored`);
  t.ok(up <= atKill.up && down <= atKill.down, 'no more bytes than the network counted');
  const second = await TestLock.connect(t, proxy.port, MAC, secret);
  await second.send(testBytes(31));
  await second.client.endAsync();
  await proxy.waitForAllClosed(2);
  const [after] = (await gateway.get<Answer>('/usage')).usage;
  const secondConnection = proxy.connections[1] as ProxiedConnection;
  t.match(
    after,
    { bytes_up: up + secondConnection.up, bytes_down: down + secondConnection.down },
    'the restarted gateway continues the count',
  );
  type Shown = { sim: unknown };
  const { sim } = await gateway.get<Shown>(`/devices/${MAC}`);
  t.match(sim, { state: 'active', activated_at: /^20/ });
  const limitSeconds = 20;
  t.same(await gateway.stop(limitSeconds), 0);
});

t.test('a SIM’s activation is durable before the CONNACK is sent, and its time never changes', async (t) => {
  const order: ('stored' | 'CONNACK')[] = [];
  const setup = await setUpUsage(t, {
    wrapStore: (store) => {
      const activate: typeof store.usage.activate = async (sims) => {
        await store.usage.activate(sims);
        // A CONNACK that does not wait for the store would arrive during these turns of the event loop.
        for (let turns = 0; turns < 500; turns += 1) await new Promise<void>((resolve) => afterThisTurn(resolve));
        order.push('stored');
      };
      return withOverrides(store, { usage: withOverrides(store.usage, { activate }) });
    },
  });
  const { secret } = await setup.accounts.addDevice({ mac: MAC });
  t.equal(setup.usage.sims.activatedAtMs(MAC), null);
  const lock = await TestLock.connect(t, setup.broker.port, MAC, secret);
  order.push('CONNACK');
  t.same(order, ['stored', 'CONNACK']);
  t.same(await setup.store.usage.readActivations(), [{ mac: MAC, activatedAtMs: BEFORE_MONTH_END_MS }]);
  await lock.client.endAsync();
  setup.clock.advance(Seconds(5));
  await TestLock.connect(t, setup.broker.port, MAC, secret);
  t.same(order, ['stored', 'CONNACK'], 'a SIM is activated once');
  await setup.store.usage.activate([{ mac: MAC, atMs: 1 }]);
  t.same(await setup.store.usage.readActivations(), [{ mac: MAC, activatedAtMs: BEFORE_MONTH_END_MS }]);
});

t.test('a lock whose activation can’t be stored is not accepted', async (t) => {
  let isFailing = true;
  const setup = await setUpUsage(t, {
    wrapStore: (store) => {
      const activate: typeof store.usage.activate = async (sims) => {
        if (isFailing) throw new StoreFailure('activate a SIM', new Error('disk full'));
        await store.usage.activate(sims);
      };
      return withOverrides(store, { usage: withOverrides(store.usage, { activate }) });
    },
  });
  const { secret } = await setup.accounts.addDevice({ mac: MAC });
  const identity = { clientId: MAC, username: MAC, password: secret };
  t.equal(await connackCode(setup.broker.port, identity), SERVER_UNAVAILABLE);
  t.equal(setup.usage.sims.activatedAtMs(MAC), null);
  isFailing = false;
  t.equal(await connackCode(setup.broker.port, identity), 0);
});

t.test('the activations of SIMs that connect at the same time share commits', async (t) => {
  const commitSizes: number[] = [];
  const setup = await setUpUsage(t, {
    wrapStore: (store) => {
      const activate: typeof store.usage.activate = async (sims) => {
        commitSizes.push(sims.length);
        await store.usage.activate(sims);
      };
      return withOverrides(store, { usage: withOverrides(store.usage, { activate }) });
    },
  });
  const macs = Array.from({ length: 100 }, (_, index) => testMac(index));
  await Promise.all([...macs, ...macs].map((mac) => setup.usage.sims.activate(mac)));
  t.equal((await setup.store.usage.readActivations()).length, 100, 'each SIM is activated once');
  // The first SIM is committed alone, since nothing else waits yet; meanwhile the others gather for the next commit.
  t.ok(commitSizes.length <= 2, `${commitSizes.length} commits`);
});
