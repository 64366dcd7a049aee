// Simulated locks over real MQTT (docs/protocol.md §1) to a plain broker on this machine. The locks' clock is manual.
// The tests wait for entries of a lock's diary, the record of what the simulated lock did.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Aedes, type Client } from 'aedes';
import { generate } from 'selfsigned';
import t from 'tap';
import { Fleet, fleetMacs } from '../../firmware-sim/fleet/fleet.js';
import { ConnectQueue } from '../../firmware-sim/link/connect-queue.js';
import type { Link } from '../../firmware-sim/link/link.js';
import { mqttLinks } from '../../firmware-sim/link/mqtt-link.js';
import type { DiaryEntry } from '../../firmware-sim/lock/diary.js';
import { MemoryFlash } from '../../firmware-sim/lock/flash.js';
import { Lock } from '../../firmware-sim/lock/lock.js';
import { ScriptedWorld, type WorldEvent } from '../../firmware-sim/world/world.js';
import { Hours, ManualClock, Minutes, RunClock, Seconds } from '../../proto/clock.js';
import { decodeUplink, encodeDownlink } from '../../proto/wire/codec.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command } from '../../proto/wire/ping.js';
import { MIDNIGHT_MS, MODEL_LOCK_MAC } from '../helpers/pair/model-lock.js';
import { PARKED, PARKED_AT } from '../helpers/sim/parked-bicycle.js';

const NOON_MS = MIDNIGHT_MS + Hours(12);
const SECRET = 'correct horse';

/** A broker that records what it receives. */
interface RecordingBroker {
  readonly broker: Aedes;
  readonly server: Server;
  readonly port: number;
  /** The payloads published to `up`, in hex, acknowledged or not. */
  readonly received: string[];
  readonly subscribed: string[];
  /** Whether the broker acknowledges publishes. */
  acknowledges: boolean;
  /** The client that connected last. */
  client: Client | undefined;
}

async function startBroker(t: Tap): Promise<RecordingBroker> {
  const broker = await Aedes.createBroker();
  const server = createServer(broker.handle);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = (server.address() as AddressInfo).port;
  const recording: RecordingBroker = {
    broker,
    server,
    port,
    received: [],
    subscribed: [],
    acknowledges: true,
    client: undefined,
  };
  broker.authenticate = (client, username, password, done) => {
    const isKnown = username === client.id && String(password) === SECRET;
    recording.client = client;
    // In MQTT, return code 4 of a CONNACK means a bad user name or password.
    done(isKnown ? null : Object.assign(new Error('bad'), { returnCode: 4 }), isKnown);
  };
  broker.authorizePublish = (_client, packet, done) => {
    recording.received.push(Buffer.from(packet.payload).toString('hex'));
    if (recording.acknowledges) done(null);
  };
  broker.authorizeSubscribe = (_client, subscription, done) => {
    recording.subscribed.push(`${subscription.topic} ${subscription.qos}`);
    done(null, subscription);
  };
  t.teardown(async () => {
    server.close();
    await new Promise<void>((resolve) => broker.close(resolve));
  });
  return recording;
}

/** The part of a test that the helpers here need. */
interface Tap {
  teardown(tidy: () => unknown): void;
}

/** A lock whose diary a test can wait for. */
class WatchedLock {
  readonly entries: DiaryEntry[] = [];
  readonly clock = new ManualClock(NOON_MS);
  readonly lock: Lock;
  #onEntry: (() => void) | undefined;

  /** @param changeLink changes the link before the lock uses it */
  constructor(
    t: Tap,
    port: number,
    events: WorldEvent[],
    secret = SECRET,
    changeLink: (link: Link) => void = () => {},
  ) {
    this.lock = new Lock({
      mac: MODEL_LOCK_MAC,
      firmwareVersion: '2.4.1',
      clock: this.clock,
      world: new ScriptedWorld(PARKED, events, { position: PARKED_AT, speedMetersPerSecond: 0, directionDegrees: 0 }),
      openLink: (mac, events) => {
        const link = mqttLinks({ host: '127.0.0.1', port }, () => secret)(mac, events);
        changeLink(link);
        return link;
      },
      flash: new MemoryFlash(),
      // Any seed: it varies only the waits of later attempts to connect.
      jitterSeed: 1,
      diary: (_mac, _atMs, entry) => {
        this.entries.push(entry);
        this.#onEntry?.();
      },
    });
    t.teardown(() => this.lock.stop());
    this.lock.start();
  }

  /** Waits until the diary has `count` entries of a type. */
  async until(type: DiaryEntry['type'], count = 1): Promise<DiaryEntry | undefined> {
    const matching = () => this.entries.filter((entry) => entry.type === type);
    while (matching().length < count) {
      await new Promise<void>((resolve) => {
        this.#onEntry = resolve;
      });
    }
    return matching()[count - 1];
  }
}

/** In recovery a lock connects at once, keeps its connection, and so receives commands at any time. */
const RECOVERY_AT_START: WorldEvent = { atMs: NOON_MS, change: { type: 'settings', change: { recovery: true } } };

const unlockedAt = (span: number): WorldEvent => ({
  atMs: NOON_MS + span,
  change: { type: 'lock-state', lockState: 'unlocked' },
});

/** The received uplinks as text, such as `1/2 gps`: boot number, sequence number and type. */
function uplinks(recording: RecordingBroker): string[] {
  return recording.received.map((hex) => {
    const uplink = decodeUplink(Buffer.from(hex, 'hex'));
    return uplink.ok ? `${uplink.value.boot}/${uplink.value.sequence} ${uplink.value.body.kind}` : 'unreadable';
  });
}

t.test('the connect queue limits concurrent attempts; waiting attempts start in order unless released', async (t) => {
  const queue = new ConnectQueue(2);
  const started: string[] = [];
  const slots = ['a', 'b', 'c', 'd', 'e'].map((name) => queue.acquire(() => started.push(name)));
  t.same(started, ['a', 'b'], 'attempts below the limit start at once');
  slots[2]?.release();
  slots[1]?.release();
  t.same(started, ['a', 'b', 'd'], 'a released attempt does not start');
  slots[1]?.release();
  t.same(started, ['a', 'b', 'd'], 'a second release does not free another place');
  slots[0]?.release();
  t.same(started, ['a', 'b', 'd', 'e']);
});

/** More than the 100 locks that may connect at once. */
const LOCK_COUNT = 121;

t.test('with more locks than may connect at once, the other locks wait until a slot is free', async (t) => {
  const recording = await startBroker(t);
  /** One for each connection attempt that the broker has not answered yet: answers it. */
  const answers: (() => void)[] = [];
  const address = { host: '127.0.0.1', port: recording.port };
  const [lastMac = '', ...macs] = fleetMacs('crowd', LOCK_COUNT);
  const { authenticate } = recording.broker;
  /** How many attempts were unanswered when the last lock connected; from then on the broker answers at once. */
  let concurrentAttempts = 0;
  recording.broker.authenticate = (client, username, password, done) => {
    const answer = (): void => authenticate(client, username, password, done);
    if (concurrentAttempts > 0) answer();
    else if (client.id !== lastMac) answers.push(answer);
    else {
      // This lock has another queue and connects last. So all locks that may connect have reached the broker by now.
      concurrentAttempts = answers.length;
      for (const answerNow of [answer, ...answers]) answerNow();
    }
  };
  await new Promise<void>((resolve) => {
    let unconnected = LOCK_COUNT;
    const connected = (): void => {
      unconnected -= 1;
      if (unconnected === 0) resolve();
    };
    const nothing = (): void => undefined;
    const events = {
      failed: nothing,
      disconnected: nothing,
      acknowledged: nothing,
      command: nothing,
      unreadable: nothing,
    };
    const [open, openLast] = [mqttLinks(address, () => SECRET), mqttLinks(address, () => SECRET)];
    const links = [
      ...macs.map((mac) => open(mac, { ...events, connected })),
      openLast(lastMac as Mac, { ...events, connected }),
    ];
    t.teardown(async () => void (await Promise.all(links.map((link) => link.close()))));
    for (const link of links) link.connect();
  });
  // The number of connection attempts that one connect queue allows at once.
  t.equal(concurrentAttempts, 100);
});

t.test('over MQTT a lock connects, subscribes, publishes at QoS 1 and closes', async (t) => {
  const recording = await startBroker(t);
  const { clock, until } = watch(t, recording, [unlockedAt(Seconds(1))]);
  clock.advance(Seconds(1));
  await until('acknowledged', 1);
  t.same(recording.subscribed, ['down 1']);
  t.equal(recording.client?.id, MODEL_LOCK_MAC);
  // The search for a GPS fix takes 30 s; 20 s after the last traffic the lock closes its connection.
  clock.advance(Seconds(30));
  await until('acknowledged', 2);
  clock.advance(Seconds(20));
  await until('closed');
  t.same(uplinks(recording), ['1/1 cellular', '1/2 gps', '1/3 close_connection']);
});

/** A lock on the broker, and what most tests need of it. @param changeLink changes the link before the lock uses it */
function watch(
  t: Tap,
  recording: RecordingBroker,
  events: WorldEvent[],
  secret = SECRET,
  changeLink?: (link: Link) => void,
) {
  const watched = new WatchedLock(t, recording.port, events, secret, changeLink);
  const until = (type: DiaryEntry['type'], count?: number) => watched.until(type, count);
  return { watched, clock: watched.clock, lock: watched.lock, until };
}

t.test('an uplink whose acknowledgement was lost with the connection is sent again, with the same bytes', async (t) => {
  const recording = await startBroker(t);
  const { clock, until } = watch(t, recording, [unlockedAt(Seconds(1))]);
  recording.acknowledges = false;
  const published = new Promise<void>((resolve) => {
    const authorize = recording.broker.authorizePublish;
    recording.broker.authorizePublish = (client, packet, done) => {
      authorize?.call(recording.broker, client, packet, done);
      resolve();
    };
  });
  clock.advance(Seconds(1));
  await published;
  recording.acknowledges = true;
  recording.client?.conn.destroy();
  await until('lost');
  // The first retry comes 10 s after a connection is lost, here and below.
  clock.advance(Seconds(10));
  await until('acknowledged');
  t.equal(recording.received.length, 2);
  t.equal(recording.received[0], recording.received[1]);
});

t.test('a refused connection reports the CONNACK’s code, and the model’s retries start', async (t) => {
  const recording = await startBroker(t);
  const { clock, until } = watch(t, recording, [unlockedAt(0)], 'wrong');
  clock.advance(0);
  t.match(await until('refused'), { trouble: { code: 4 } });
  clock.advance(Seconds(10));
  await until('refused', 2);
  t.same(recording.received, []);
});

t.test('an attempt to connect to a closed port fails and is reported', async (t) => {
  const recording = await startBroker(t);
  recording.server.close();
  const { clock, until } = watch(t, recording, [unlockedAt(0)]);
  clock.advance(0);
  t.match(await until('refused'), { trouble: { message: /ECONNREFUSED/ } });
});

t.test('a refused subscription does not count as a connection', async (t) => {
  const recording = await startBroker(t);
  recording.broker.authorizeSubscribe = (_client, _subscription, done) => done(null, null);
  const { clock, until } = watch(t, recording, [unlockedAt(0)]);
  clock.advance(0);
  t.match(await until('refused'), { trouble: { message: /down/ } });
});

t.test('commands are received, and an unreadable message is logged', async (t) => {
  const recording = await startBroker(t);
  const { clock, until } = watch(t, recording, [RECOVERY_AT_START]);
  clock.advance(0);
  await until('acknowledged');
  const send = (payload: Uint8Array) =>
    recording.client?.publish(
      { cmd: 'publish', topic: 'down', payload: Buffer.from(payload), qos: 1, dup: false, retain: false },
      () => {},
    );
  const command: Command = { type: 'siren', seconds: 3 };
  // No protobuf message.
  send(Buffer.from('ffff', 'hex'));
  await until('unreadable');
  send(encodeDownlink({ id: 3, expiresMs: NOON_MS + Minutes(2), command }));
  t.match(await until('received'), { downlink: { id: 3, command } });
  await until('acknowledged', 2);
  t.same(uplinks(recording).slice(1), ['1/2 ack']);
});

t.test('without coverage the connection is dropped silently; a stop closes it properly', async (t) => {
  const recording = await startBroker(t);
  const ends: string[] = [];
  recording.broker.on('clientDisconnect', (client) => ends.push(client.id));
  const { clock, until, lock } = watch(t, recording, [
    RECOVERY_AT_START,
    { atMs: NOON_MS + Seconds(5), change: { type: 'coverage', covered: false } },
    { atMs: NOON_MS + Seconds(6), change: { type: 'coverage', covered: true } },
  ]);
  clock.advance(0);
  await until('acknowledged');
  clock.advance(Seconds(5));
  // Coverage is back after 1 s, and the lock connects 10 s later.
  clock.advance(Seconds(20));
  await until('acknowledged', 2);
  recording.acknowledges = false;
  // A lock that keeps its connection sends a ping each 15 min. The lock is stopped while that ping is unacknowledged.
  clock.advance(Minutes(15));
  await lock.stop();
  t.equal(clock.pending, 0);
  t.ok(ends.length >= 1, 'the broker saw a connection end');
});

t.test('the locks of an accelerated fleet start one after another and are stopped properly', async (t) => {
  const recording = await startBroker(t);
  // 600 times as fast as real time, so that 20 uplinks come within seconds.
  const clock = new RunClock(NOON_MS, 600);
  const macs = fleetMacs('mqtt', 5);
  let acknowledged = 0;
  const enough = new Promise<void>((resolve) => {
    const fleet = new Fleet({
      seed: 'mqtt',
      clock,
      macs,
      openLink: mqttLinks({ host: '127.0.0.1', port: recording.port }, () => SECRET),
      pace: 'lively',
      diary: (_mac, _atMs, entry) => {
        if (entry.type === 'acknowledged' && ++acknowledged === 20) resolve();
      },
    });
    t.teardown(() => fleet.stop());
    fleet.start();
  });
  await enough;
  t.ok(recording.received.length >= 20);
});

/** The broker's sockets, in the order of the connections. */
function socketsOf(recording: RecordingBroker): Socket[] {
  const sockets: Socket[] = [];
  recording.server.on('connection', (socket) => sockets.push(socket));
  return sockets;
}

t.test('an uplink that is cut in the middle is not received, and is sent again completely', async (t) => {
  const recording = await startBroker(t);
  const sockets = socketsOf(recording);
  // Less than any PUBLISH with an uplink.
  const bytesBeforeCut = 20;
  let remainingCuts = 1;
  const { clock, until } = watch(t, recording, [unlockedAt(Seconds(1))], SECRET, (link) => {
    const publish = link.publish.bind(link);
    link.publish = (uplink) => {
      if (remainingCuts-- > 0) link.breakConnection(bytesBeforeCut);
      publish(uplink);
    };
  });
  clock.advance(Seconds(1));
  await until('lost');
  t.same(recording.received, []);
  clock.advance(Seconds(10));
  await until('acknowledged');
  t.same(uplinks(recording), ['1/1 cellular']);
  // Before the uplink a PUBLISH has four fields of 2 bytes: its header, the topic's length, "up" and the packet id. Two
  // hex digits are a byte.
  const publishBytes = 8 + (recording.received[0]?.length ?? 0) / 2;
  // Both connections begin with the same CONNECT and SUBSCRIBE. Only the second has the whole uplink.
  const [first, second] = sockets.map(({ bytesRead }) => bytesRead);
  t.equal(
    (second ?? 0) - (first ?? 0),
    publishBytes - bytesBeforeCut,
    'the broker received the first part of the uplink',
  );
});

t.test('the broker keeps an abandoned connection until the next one takes it over', async (t) => {
  const recording = await startBroker(t);
  const sockets = socketsOf(recording);
  const links: Link[] = [];
  const coverage = (span: number, covered: boolean): WorldEvent => {
    return { atMs: NOON_MS + span, change: { type: 'coverage', covered } };
  };
  const events = [RECOVERY_AT_START, coverage(Seconds(5), false), coverage(Seconds(6), true)];
  const { clock, until } = watch(t, recording, events, SECRET, (link) => {
    links.push(link);
    // The modem loses the network, and the broker does not notice.
    link.drop = () => link.abandon();
  });
  clock.advance(0);
  await until('acknowledged');
  const bytesBefore = sockets[0]?.bytesRead;
  clock.advance(Seconds(6));
  t.equal(recording.broker.connectedClients, 1, 'the broker still has the connection');
  const ended = once(sockets[0] as Socket, 'close');
  clock.advance(Seconds(10));
  await until('acknowledged', 2);
  await ended;
  t.equal(recording.broker.connectedClients, 1, 'only the new connection is left');
  t.equal(sockets[0]?.bytesRead, bytesBefore, 'nothing more arrived on the old connection, not even a DISCONNECT');
});

t.test('over TLS a lock connects to a trusted certificate and refuses an untrusted one', async (t) => {
  const recording = await startBroker(t);
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'localhost' }]);
  const tlsServer = createTlsServer({ key, cert }, (tlsSocket) => {
    const plainSocket = connect(recording.port, '127.0.0.1');
    tlsSocket
      .on('error', () => plainSocket.destroy())
      .pipe(plainSocket)
      .on('error', () => tlsSocket.destroy())
      .pipe(tlsSocket);
  });
  tlsServer.on('tlsClientError', () => undefined);
  tlsServer.listen(0, '127.0.0.1');
  await once(tlsServer, 'listening');
  t.teardown(() => tlsServer.close());
  const port = (tlsServer.address() as AddressInfo).port;
  const connectResult = async (ca: string | undefined): Promise<string> => {
    const open = mqttLinks(
      { host: '127.0.0.1', port, tls: { servername: 'localhost', ...(ca && { ca }) } },
      () => SECRET,
    );
    return await new Promise<string>((resolve) => {
      const link = open(MODEL_LOCK_MAC, {
        connected: () => void link.close().then(() => resolve('connected')),
        failed: ({ message }) => resolve(message),
        disconnected: () => resolve('disconnected'),
        acknowledged: () => undefined,
        command: () => undefined,
        unreadable: () => undefined,
      });
      link.connect();
    });
  };
  t.equal(await connectResult(cert), 'connected');
  t.match(await connectResult(undefined), /self-signed/);
});
