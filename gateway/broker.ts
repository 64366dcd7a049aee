/**
 * MQTT for locks, on aedes; the only file that knows it.
 *
 * aedes writes the PUBACK before it publishes, persists or calls `published`, so whatever is stored there can be lost
 * after the lock was told that it's safe. It does wait for `authorizePublish`, and closes the connection without a
 * PUBACK where that fails. So an uplink is decoded and committed inside `authorizePublish`, and its callback is the
 * acknowledgement.
 *
 * The connection is the identity (protocol.md §1): client id = user name = MAC, and no topic carries one.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Aedes, type AedesPublishPacket, type AuthenticateError, type Client, type ConnectPacket } from 'aedes';
import { type Clock, Seconds } from '../proto/clock.js';
import { LockgateError } from '../proto/errors.js';
import { type Mac, macFromWire } from '../proto/mac.js';
import type { DisconnectCause } from '../proto/power-judge-event.js';
import type { GatewayEvents } from './events.js';
import type { Ingest, Sender } from './ingest.js';
import type { Keys } from './keys.js';
import type { LockAccount, Store } from './store/store.js';

/** Uplinks travel on this topic, downlinks on the other; there are no more. */
const UP_TOPIC = 'up';
const DOWN_TOPIC = 'down';

/** A CONNECT that isn't finished by then is closed (quality.md §2). */
const CONNECT_TIMEOUT = Seconds(5);
/** What a stranger calls himself is shown to operators, but not at any length. */
const SHOWN_CLIENT_ID = 64;

/** MQTT 3.1.1 §3.2.2.3: the CONNACK of a refused connection. */
const SERVER_UNAVAILABLE = 3;
const NOT_AUTHORIZED = 5;

export interface BrokerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly store: Store;
  readonly keys: Keys;
  readonly ingest: Ingest;
  readonly events: GatewayEvents;
  /** The run's clock. */
  readonly clock: Clock;
}

/** An authenticated connection. */
interface Session {
  readonly sender: Sender;
  /** Its CONNACK is out. */
  isReady: boolean;
  cause: DisconnectCause | undefined;
}

export class Broker {
  readonly #options: BrokerOptions;
  readonly #aedes: Aedes;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new WeakMap<Client, Session>();
  readonly #clients = new Map<Mac, Client>();
  readonly #withWill = new WeakSet<Client>();
  #connected = 0;
  #closing = false;

  private constructor(options: BrokerOptions, aedes: Aedes) {
    this.#options = options;
    this.#aedes = aedes;
    this.#installHooks();
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.setNoDelay(true);
      aedes.handle(socket);
    });
  }

  /** @throws LockgateError `port-taken` */
  static async start(options: BrokerOptions): Promise<Broker> {
    const aedes = await Aedes.createBroker({ connectTimeout: CONNECT_TIMEOUT, heartbeatInterval: Seconds(3600) });
    const broker = new Broker(options, aedes);
    try {
      await broker.#listen();
    } catch (error) {
      // Its timers would keep a process going that has just said why it can't start.
      await new Promise<void>((resolve) => aedes.close(() => resolve()));
      throw error;
    }
    return broker;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How many locks are connected now. */
  get connected(): number {
    return this.#connected;
  }

  /** Takes nothing new, lets what was taken be answered, then ends every connection. */
  async close(): Promise<void> {
    this.#closing = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    // No byte is read any more, but what is being stored still gets its PUBACK.
    for (const socket of this.#sockets) socket.pause();
    await this.#options.ingest.stop();
    await new Promise<void>((resolve) => this.#aedes.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #listen(): Promise<void> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE') return reject(error);
        reject(new LockgateError('port-taken', `MQTT can't listen on ${host}:${port}: something else does already`));
      });
      this.#server.listen(port, host, resolve);
    });
  }

  #installHooks(): void {
    const aedes = this.#aedes;
    aedes.preConnect = (client, packet, done) => this.#preConnect(client, packet, done);
    aedes.authenticate = (client, username, password, done) => {
      this.#authenticate(client, username, password).then(
        () => done(null, true),
        (error: AuthenticateError) => done(error, false),
      );
    };
    aedes.authorizePublish = (client, packet, done) => this.#publish(client, packet as AedesPublishPacket, done);
    aedes.authorizeSubscribe = (client, subscription, done) => {
      if (subscription.topic === DOWN_TOPIC && subscription.qos < 2) return done(null, subscription);
      this.#refused('subscribe', client, `topic ${JSON.stringify(subscription.topic.slice(0, SHOWN_CLIENT_ID))}`);
      done(null, null);
    };
    aedes.on('clientReady', (client) => this.#ready(client));
    aedes.on('clientDisconnect', (client) => this.#gone(client));
    aedes.on('keepaliveTimeout', (client) => this.#setCause(client, 'keepalive'));
    aedes.on('clientError', (client, error) => this.#failed(client, error));
    aedes.on('connectionError', (client, error) => {
      this.#refused('connect', client, error.message);
    });
  }

  /**
   * A lock keeps what it hasn't been told is safe, and the gateway keeps commands, so no session outlives its
   * connection: clean sessions only. A will would be a message that nobody sent.
   */
  #preConnect(client: Client, packet: ConnectPacket, done: (error: Error | null, go: boolean) => void): void {
    packet.clean = true;
    // An error here would close the connection without a CONNACK, so it is refused where it is authenticated.
    if (packet.will) this.#withWill.add(client);
    done(null, true);
  }

  /** Every refusal looks the same to the client: CONNACK 5. The reason is for operators alone. */
  async #authenticate(client: Client, username: string | undefined, password: Buffer | undefined): Promise<void> {
    if (this.#closing) throw refusal(SERVER_UNAVAILABLE, 'the gateway is stopping');
    if (this.#withWill.has(client)) throw this.#refuse(client, 'the CONNECT carries a will');
    const mac = macFromWire(client.id);
    if (mac === undefined || client.id !== username)
      throw this.#refuse(client, 'client id and user name are not the same MAC of 12 upper-case hex digits');
    let account: LockAccount | null;
    try {
      account = await this.#options.store.findLock(mac);
    } catch (error) {
      throw refusal(SERVER_UNAVAILABLE, (error as Error).message);
    }
    // An unknown lock costs the same hash as a known one, so that time tells nothing.
    const hashes = account?.credentials ?? [];
    const given = password ?? Buffer.alloc(0);
    const credential = hashes.find(({ secretHash }) => this.#options.keys.matches(given, secretHash));
    if (hashes.length === 0) this.#options.keys.hashSecret(given);
    if (account === null) throw this.#refuse(client, 'no such lock');
    if (credential === undefined) throw this.#refuse(client, 'wrong secret');
    // aedes ends the connection before this one when it registers the new one.
    const before = this.#clients.get(mac);
    if (before !== undefined) this.#setCause(before, 'takeover');
    const { deviceId, merchantId, simulated } = account;
    this.#sessions.set(client, {
      sender: { deviceId, merchantId, credentialId: credential.id, mac, simulated },
      isReady: false,
      cause: undefined,
    });
  }

  #refuse(client: Client, why: string): AuthenticateError {
    this.#refused('connect', client, why);
    return refusal(NOT_AUTHORIZED, why);
  }

  /** The heart: the callback is called, and so the PUBACK written, when the uplink is on the disk. */
  #publish(client: Client | null, packet: AedesPublishPacket, done: (error?: Error | null) => void): void {
    // aedes itself publishes below $SYS (its birth, its heartbeat), with no client; nobody can subscribe to it.
    if (client === null) {
      done(null);
      return;
    }
    const answer = (error?: Error): void => {
      if (error !== undefined) this.#setCause(client, 'gateway');
      done(error ?? null);
    };
    const session = this.#sessions.get(client);
    const fault = session === undefined ? 'the client is not authenticated' : publishFault(packet);
    if (session !== undefined && fault === undefined) {
      this.#ready(client);
      this.#options.ingest.take(session.sender, packet.payload as Buffer, answer);
      return;
    }
    this.#refused('publish', client, fault ?? '');
    answer(new LockgateError('publish-refused', fault ?? ''));
  }

  /** aedes says so some turns after the CONNACK; a quick client's first publish may well be here before that. */
  #ready(client: Client): void {
    const session = this.#sessions.get(client);
    if (session === undefined || session.isReady) return;
    session.isReady = true;
    this.#connected += 1;
    const { deviceId, mac, simulated } = session.sender;
    const atMs = this.#options.clock.now();
    this.#clients.set(mac, client);
    this.#options.ingest.happen(deviceId, mac, { type: 'connect', source: 'lock', atMs }, () => {
      this.#options.events.emit('connected', { atMs, mac, simulated });
    });
  }

  #gone(client: Client): void {
    const session = this.#sessions.get(client);
    if (session === undefined) return;
    this.#ready(client);
    this.#sessions.delete(client);
    this.#connected -= 1;
    const { deviceId, mac } = session.sender;
    const atMs = this.#options.clock.now();
    if (this.#clients.get(mac) === client) this.#clients.delete(mac);
    const cause = session.cause ?? (this.#closing ? 'gateway' : endedWell(client) ? 'closed' : 'dropped');
    this.#options.ingest.happen(deviceId, mac, { type: 'disconnect', source: 'lock', cause, atMs }, () => {
      this.#options.events.emit('disconnected', { atMs, mac, cause });
    });
  }

  /** Protocol errors after CONNECT; a refused publish or CONNECT has been reported where it was refused. */
  #failed(client: Client, error: Error): void {
    if (error instanceof LockgateError || (error as AuthenticateError).returnCode !== undefined) return;
    if (isSocketError(error)) this.#setCause(client, 'dropped');
    else this.#refused('publish', client, error.message);
  }

  #setCause(client: Client, cause: DisconnectCause): void {
    const session = this.#sessions.get(client);
    if (session !== undefined) session.cause ??= cause;
  }

  #refused(what: 'connect' | 'publish' | 'subscribe', client: Client, why: string): void {
    this.#options.events.emit('refused', {
      atMs: this.#options.clock.now(),
      what,
      clientId: String(client.id ?? '').slice(0, SHOWN_CLIENT_ID),
      address: (client.conn as Socket).remoteAddress ?? '',
      why,
    });
  }
}

/** Why a publish is not taken; undefined when it is. */
function publishFault(packet: AedesPublishPacket): string | undefined {
  if (packet.topic !== UP_TOPIC) {
    const topic = JSON.stringify(packet.topic.slice(0, SHOWN_CLIENT_ID));
    return `topic ${topic}: a lock publishes to ${JSON.stringify(UP_TOPIC)} alone`;
  }
  if (packet.qos === 2) return 'QoS 2: a lock publishes at QoS 1, or 0';
  if (packet.retain) return 'a retained publish: nothing is retained here';
  return undefined;
}

function refusal(returnCode: number, why: string): AuthenticateError {
  return Object.assign(new Error(why), { returnCode }) as AuthenticateError;
}

/** Whether the client said DISCONNECT before it went. aedes notes it in a member that its types leave out. */
function endedWell(client: Client): boolean {
  return (client as Client & { _disconnected?: boolean })._disconnected === true;
}

function isSocketError(error: Error): boolean {
  return 'syscall' in error || (error as NodeJS.ErrnoException).code?.startsWith('ERR_STREAM') === true;
}
