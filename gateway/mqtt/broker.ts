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
import { Aedes, type AedesPublishPacket, type AuthenticateError, type Client, type ConnectPacket } from 'aedes';
import { type Clock, Seconds, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { DisconnectCause } from '../../proto/power-judge-event.js';
import type { GatewayEvents } from '../events.js';
import type { Ingest, Sender } from '../ingest.js';
import type { Keys } from '../keys.js';
import type { Store } from '../store/store.js';
import type { Usage } from '../usage/usage.js';
import { type Authentication, authenticate } from './authentication.js';
import { closeLingering } from './lingering-close.js';
import { type Connection, Listener } from './listener.js';
import { type Session, Sessions } from './sessions.js';

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
  /** Counts what goes over the air, and activates SIMs. */
  readonly usage: Pick<Usage, 'meter' | 'sims'>;
  readonly events: GatewayEvents;
  /** The run's clock. */
  readonly clock: Clock;
  /** Told when a lock has subscribed to `down`: from now on it hears commands. */
  readonly onListening?: (session: Session) => void;
}

export class Broker {
  /** Those who are authenticated now. */
  readonly sessions = new Sessions();
  readonly #options: BrokerOptions;
  readonly #aedes: Aedes;
  readonly #connections = new WeakMap<object, Connection>();
  readonly #sessionOf = new WeakMap<Client, Session>();
  readonly #withWill = new WeakSet<Client>();
  #listener: Listener | undefined;
  #closing = false;

  private constructor(options: BrokerOptions, aedes: Aedes) {
    this.#options = options;
    this.#aedes = aedes;
    this.#installHooks();
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
    return this.#listener?.port ?? 0;
  }

  /** How many locks and phones are connected now. */
  get connected(): number {
    return this.sessions.count;
  }

  /** Takes nothing new, lets what was taken be answered, then ends every connection. */
  async close(): Promise<void> {
    this.#closing = true;
    const closed = this.#listener?.close();
    // No byte is read any more, but what is being stored still gets its PUBACK.
    this.#listener?.pauseAll();
    await this.#options.ingest.stop();
    await new Promise<void>((resolve) => this.#aedes.close(() => resolve()));
    this.#listener?.destroyAll();
    await closed;
  }

  async #listen(): Promise<void> {
    const { host, port } = this.#options;
    this.#listener = await Listener.start({
      host,
      port,
      onConnection: (connection) => this.take(connection),
    });
  }

  /** Speaks MQTT on a connection of which not one byte has been read. */
  take(connection: Connection): void {
    this.#connections.set(connection.stream, connection);
    this.#options.usage.meter.opened(connection.raw);
    this.#aedes.handle(connection.stream);
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
      const fault = this.#subscribeFault(client, subscription);
      if (fault === undefined) return done(null, subscription);
      this.#refused('subscribe', client, fault);
      done(null, null);
    };
    aedes.on('subscribe', (subscriptions, client) => {
      if (subscriptions.some(({ topic, qos }) => topic === DOWN_TOPIC && qos < 2)) this.#listening(client);
    });
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
    const connection = this.#connections.get(client.conn);
    const hasWill = this.#withWill.has(client);
    let answer: Authentication;
    try {
      answer = await authenticate(this.#options, { clientId: client.id, username, password, hasWill });
      // On the disk before the CONNACK: no crash can make a SIM's activation later than it was.
      if (answer.ok && answer.sender.source === 'lock') await this.#options.usage.sims.activate(answer.sender.mac);
    } catch (error) {
      throw refusal(SERVER_UNAVAILABLE, (error as Error).message);
    }
    if (!answer.ok || connection === undefined) {
      const why = answer.ok ? 'the connection is unknown' : answer.why;
      this.#refused('connect', client, why);
      throw refusal(NOT_AUTHORIZED, why);
    }
    this.#begin(client, connection, answer.sender);
  }

  #begin(client: Client, connection: Connection, sender: Sender): void {
    // aedes ends the connection before this one, which has the same client id, when it registers the new one.
    for (const before of this.sessions.ofClient(sender.deviceId, client.id)) before.cause ??= 'takeover';
    const messages = this.#options.usage.meter.accepted(connection.raw, sender);
    // What is still on its way when we end a connection is paid for too, so it is counted.
    closeLingering(connection, systemClock, () => client.close());
    this.#sessionOf.set(client, {
      sender,
      clientId: client.id,
      connection,
      messages,
      isReady: false,
      isListening: false,
      cause: undefined,
      send: async (payload) => {
        await sendDown(client, payload);
        if (!client.closed) messages.messagesDown += 1;
      },
    });
  }

  #subscribeFault(client: Client, { topic, qos }: { topic: string; qos: number }): string | undefined {
    const session = this.#sessionOf.get(client);
    if (session === undefined) return 'the client is not authenticated';
    if (session.sender.source === 'phone') return 'a phone subscribes to nothing';
    if (topic !== DOWN_TOPIC) return `topic ${JSON.stringify(topic.slice(0, SHOWN_CLIENT_ID))}`;
    return qos === 2 ? 'QoS 2: a lock subscribes at QoS 1, or 0' : undefined;
  }

  #listening(client: Client): void {
    const session = this.#sessionOf.get(client);
    if (session === undefined || session.isListening) return;
    session.isListening = true;
    this.#options.onListening?.(session);
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
    const session = this.#sessionOf.get(client);
    const fault = session === undefined ? 'the client is not authenticated' : publishFault(packet);
    if (session !== undefined && fault === undefined) {
      this.#ready(client);
      session.messages.messagesUp += 1;
      this.#options.ingest.take(session.sender, packet.payload as Buffer, answer);
      return;
    }
    this.#refused('publish', client, fault ?? '');
    answer(new LockgateError('publish-refused', fault ?? ''));
  }

  /** aedes says so some turns after the CONNACK; a quick client's first publish may well be here before that. */
  #ready(client: Client): void {
    const session = this.#sessionOf.get(client);
    if (session === undefined || session.isReady) return;
    session.isReady = true;
    this.sessions.add(session);
    const { deviceId, mac, simulated, source } = session.sender;
    const atMs = this.#options.clock.now();
    this.#options.ingest.happen(deviceId, mac, { type: 'connect', source, atMs }, () => {
      this.#options.events.emit('connected', { atMs, mac, source, simulated });
    });
  }

  #gone(client: Client): void {
    const session = this.#sessionOf.get(client);
    if (session === undefined) return;
    this.#ready(client);
    this.#sessionOf.delete(client);
    this.sessions.remove(session);
    const { deviceId, mac, source } = session.sender;
    const atMs = this.#options.clock.now();
    const cause = session.cause ?? (this.#closing ? 'gateway' : endedWell(client) ? 'closed' : 'dropped');
    this.#options.ingest.happen(deviceId, mac, { type: 'disconnect', source, cause, atMs }, () => {
      this.#options.events.emit('disconnected', { atMs, mac, source, cause });
    });
  }

  /** Protocol errors after CONNECT; a refused publish or CONNECT has been reported where it was refused. */
  #failed(client: Client, error: Error): void {
    if (error instanceof LockgateError || (error as AuthenticateError).returnCode !== undefined) return;
    if (isSocketError(error)) this.#setCause(client, 'dropped');
    else this.#refused('publish', client, error.message);
  }

  #setCause(client: Client, cause: DisconnectCause): void {
    const session = this.#sessionOf.get(client);
    if (session !== undefined) session.cause ??= cause;
  }

  #refused(what: 'connect' | 'publish' | 'subscribe', client: Client, why: string): void {
    this.#options.events.emit('refused', {
      atMs: this.#options.clock.now(),
      what,
      clientId: String(client.id ?? '').slice(0, SHOWN_CLIENT_ID),
      address: this.#connections.get(client.conn)?.address ?? '',
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

/** `client.publish` reaches this client alone, where `broker.publish` would reach every lock. */
function sendDown(client: Client, payload: Buffer): Promise<void> {
  const packet = { cmd: 'publish', topic: DOWN_TOPIC, payload, qos: 1, dup: false, retain: false } as const;
  return new Promise((resolve) => client.publish(packet, () => resolve()));
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
