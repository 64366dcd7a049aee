/**
 * MQTT for locks, on aedes; the only file that knows it.
 *
 * aedes writes the PUBACK before it publishes, persists or calls `published`, so whatever is stored there can be lost
 * after the lock was told that it's safe. It does wait for `authorizePublish`, and closes the connection without a
 * PUBACK where that fails. So an uplink is decoded and committed inside `authorizePublish`, and its callback is the
 * acknowledgement. Uplinks as locks send them go past aedes, with the same promise (uplink-fast-path.ts).
 *
 * The connection is the identity (protocol.md §1): who speaks is settled at CONNECT, and no topic carries a MAC.
 */

import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import {
  Aedes,
  type AedesOptions,
  type AedesPublishPacket,
  type AuthenticateError,
  type Client,
  type ConnectPacket,
} from 'aedes';
import mqttPacket from 'mqtt-packet';
import { afterThisTurn, Hours, monotonicMs, RunClock, Seconds, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { DisconnectCause } from '../../proto/power/judge/event.js';
import type { Refused } from '../events.js';
import { StoreFailure } from '../store/contract/errors.js';
import { type Authentication, authenticate, type ConnectClaim } from './authentication.js';
import type { BrokerOptions } from './broker-options.js';
import { type ConnectionFilter, connectionFilterOf } from './connection-filter.js';
import { ConnectionGuard, GUARD_LIMITS } from './connection-guard.js';
import { closeLingering } from './lingering-close.js';
import { type Connection, Listener } from './listener.js';
import { DeafEmitter, NoPersistence } from './no-routing.js';
import { filterOf, keepRepeatedFilters } from './packets/repeated-filters.js';
import { DOWN_TOPIC, publishFault, subscribeFault } from './packets/topics.js';
import type { RefusalCause } from './refusals/refusal-reason.js';
import { type RefusalCounts, Refusals, type RefusedClient } from './refusals/refusals.js';
import { SessionExpiry } from './session-expiry.js';
import { type Session, Sessions } from './sessions.js';
import { readTlsIdentity, type TlsIdentity } from './tls-identity.js';
import { type UplinkFastPath, UplinkFastPaths } from './uplink-fast-path.js';

/**
 * What aedes does by itself is of no use here: it routes nothing, keeps nothing, and what takes too long the front door
 * ends before it would.
 */
const AEDES_OPTIONS = {
  mq: new DeafEmitter(),
  persistence: new NoPersistence(),
  heartbeatInterval: Hours(1),
  drainTimeout: Seconds(10),
} as const satisfies AedesOptions;
// Or 65,536 small buffers are made with the first packet, one for each number there can be, and stay.
mqttPacket.writeToStream.cacheNumbers = false;
/** MQTT 3.1.1 §3.2.2.3: the CONNACK of a refused connection. */
const SERVER_UNAVAILABLE = 3;
const NOT_AUTHORIZED = 5;

/** aedes' own words for a packet to a client that is gone. */
const CLOSED_ALREADY = 'connection closed';

/** Said of a client that speaks before it was let in. */
const NOT_AUTHENTICATED: RefusalCause = { reason: 'not-authenticated', why: 'the client is not authenticated' };
const UNKNOWN_CONNECTION: RefusalCause = { reason: 'not-authenticated', why: 'the connection is unknown' };

/** How often a CONNECT is looked at anew because credentials were withdrawn meanwhile, before it is turned away. */
const AUTHENTICATED_MOST = 5;

type Accepted = Extract<Authentication, { ok: true }>;

export class Broker {
  /** Those who are authenticated now. */
  readonly sessions = new Sessions();
  readonly #refusals: Refusals;
  readonly #options: BrokerOptions;
  readonly #aedes: Aedes;
  readonly #door: ConnectionGuard;
  readonly #listeners: Listener[] = [];
  readonly #keepalives = new WeakMap<Client, number>();
  readonly #sessionOf = new WeakMap<Client, Session>();
  readonly #withWill = new WeakSet<Client>();
  readonly #expiry: SessionExpiry;
  readonly #lanes: UplinkFastPaths;
  readonly #laneOf = new WeakMap<Client, UplinkFastPath>();
  #identity: TlsIdentity | undefined;
  #closing = false;

  private constructor(options: BrokerOptions, aedes: Aedes) {
    this.#options = options;
    this.#aedes = aedes;
    this.#refusals = new Refusals(options);
    this.#expiry = new SessionExpiry(options.wallClock, (expired) => {
      this.sessions.end(expired.sender.deviceId, (session) => session === expired);
    });
    this.#lanes = new UplinkFastPaths({
      ingest: options.ingest,
      events: options.events,
      onFirst: (gate) => this.#ready(clientOf(gate) as Client),
      onFailed: (gate, error) => this.#laneFailed(clientOf(gate) as Client, error),
    });
    this.#door = new ConnectionGuard({
      limits: { ...GUARD_LIMITS, ...options.limits },
      roomFor: options.roomFor,
      clock: options.doorClock ?? new RunClock(options.clock.now()),
      onConnect: ({ stream }) => void aedes.handle(stream),
      onRefused: (gate, what, why) => this.#endedAtDoor(gate, 'gateway', what, why),
      onSilent: (gate) => this.#setCauseOf(gate, 'keepalive'),
      onUnread: (gate, why) => this.#endedAtDoor(gate, 'dropped', 'connection', why),
    });
    this.#installHooks();
  }

  /** @throws LockgateError `port-taken`, `input-address`, `tls-file` */
  static async start(options: BrokerOptions): Promise<Broker> {
    const aedes = await Aedes.createBroker(AEDES_OPTIONS);
    const broker = new Broker(options, aedes);
    try {
      await broker.#listen();
    } catch (error) {
      // Its timers would keep a process going that has just said why it can't start.
      await broker.close();
      throw error;
    }
    return broker;
  }

  /** How many CONNECTs, packets and so on were refused since the start. */
  get refusals(): RefusalCounts {
    return this.#refusals.counts;
  }

  get port(): number {
    return this.#listeners[0]?.port ?? 0;
  }

  /** Undefined where there is no listener over TLS. */
  get tlsPort(): number | undefined {
    return this.#listeners[1]?.port;
  }

  /** See the gateway's. @throws LockgateError `tls-file` */
  reloadTls(): TlsIdentity {
    const { tls } = this.#options;
    if (!tls) throw new LockgateError('tls-file', 'no TLS certificate is set');
    this.#identity = readTlsIdentity(tls.files);
    return this.#identity;
  }

  /** When the certificate in force ends, ms since the epoch; null without TLS. */
  get certificateEndMs(): number | null {
    return this.#identity === undefined ? null : Date.parse(this.#identity.validTo);
  }

  /** How many locks and phones are connected now. */
  get connected(): number {
    return this.sessions.count;
  }

  /** Takes nothing new, lets what was taken be answered, then ends every connection. */
  async close(): Promise<void> {
    this.#closing = true;
    const closed = this.#listeners.map((listener) => listener.close());
    // No byte is read any more, but what is being stored still gets its PUBACK.
    this.#door.stopReading();
    await this.#options.ingest.stop();
    // A PUBACK is handed to its socket only at the end of the turn that wrote it.
    await new Promise<void>(afterThisTurn);
    await this.#door.sayGoodbye();
    await new Promise<void>((resolve) => this.#aedes.close(() => resolve()));
    this.#expiry.stop();
    this.#options.budgets?.stop();
    this.#door.destroyAll();
    await Promise.all(closed);
  }

  async #listen(): Promise<void> {
    const { host, port, tls } = this.#options;
    if (tls) this.reloadTls();
    const onConnection = (connection: Connection): void => this.take(connection);
    this.#listeners.push(await Listener.start({ host, port, onConnection }));
    if (!tls) return;
    const context = (): SecureContext => (this.#identity as TlsIdentity).context;
    this.#listeners.push(await Listener.start({ host: tls.host, port: tls.port, tls: context, onConnection }));
  }

  /** Speaks MQTT on a connection of which not one byte has been read. */
  take(connection: Connection): void {
    this.#options.usage.meter.opened(connection.raw);
    this.#door.take(connection);
  }

  #installHooks(): void {
    const aedes = this.#aedes;
    // What a lock publishes has been taken by now, and nobody is told of clients.
    aedes.publish = (_packet: unknown, client: unknown, done?: () => void) => {
      if (typeof client === 'function') client();
      else done?.();
    };
    aedes.preConnect = (client, packet, done) => this.#preConnect(client, packet, done);
    aedes.authenticate = (client, username, password, done) => {
      this.#authenticate(client, username, password).then(
        () => done(null, true),
        (error: AuthenticateError) => done(error, false),
      );
    };
    aedes.authorizePublish = (client, packet, done) => this.#publish(client, packet as AedesPublishPacket, done);
    aedes.authorizeSubscribe = (client, subscription, done) => {
      const session = this.#sessionOf.get(client);
      const { qos } = subscription;
      const topic = filterOf(subscription);
      const fault = session === undefined ? NOT_AUTHENTICATED : subscribeFault(session.sender.source, topic, qos);
      if (fault === undefined) return done(null, subscription);
      this.#refused('subscribe', client, fault);
      done(null, null);
    };
    aedes.on('subscribe', (subscriptions, client) => {
      if (subscriptions.some(({ topic, qos }) => topic === DOWN_TOPIC && qos < 2)) this.#listening(client);
    });
    aedes.on('unsubscribe', (filters, client) => {
      const session = filters.includes(DOWN_TOPIC) ? this.#sessionOf.get(client) : undefined;
      if (session?.isListening !== true) return;
      session.isListening = false;
      session.hasUnsubscribed = true;
    });
    aedes.on('clientReady', (client) => this.#ready(client));
    aedes.on('clientDisconnect', (client) => this.#gone(client));
    aedes.on('clientError', (client, error) => this.#failed(client, error));
    aedes.on('connectionError', (client, error) => {
      this.#refused('connect', client, { reason: 'other', why: error.message });
    });
  }

  /**
   * A lock keeps what it hasn't been told is safe, and the gateway keeps commands, so no session outlives its
   * connection: clean sessions only. A will would be a message that nobody sent.
   */
  #preConnect(client: Client, packet: ConnectPacket, done: (error: Error | null, go: boolean) => void): void {
    packet.clean = true;
    keepRepeatedFilters(client);
    // The front door watches who is silent, those too who asked for no watch.
    this.#keepalives.set(client, packet.keepalive ?? 0);
    packet.keepalive = 0;
    // An error here would close the connection without a CONNACK, so it is refused where it is authenticated.
    if (packet.will) this.#withWill.add(client);
    done(null, true);
  }

  /** Every refusal looks the same to the client: CONNACK 5. The reason is for operators alone. */
  async #authenticate(client: Client, username: string | undefined, password: Buffer | undefined): Promise<void> {
    if (this.#closing) throw this.#unavailable(client, { reason: 'stopping', why: 'the gateway is stopping' });
    const connection = connectionFilterOf(client.conn);
    if ((await this.#options.canStore?.()) === false)
      throw this.#unavailable(client, { reason: 'store', why: 'the store can’t write now' });
    const hasWill = this.#withWill.has(client);
    let answer: Authentication;
    try {
      answer = await this.#check({ clientId: client.id, username, password, hasWill });
    } catch (error) {
      const reason = error instanceof StoreFailure ? 'store' : 'other';
      throw this.#unavailable(client, { reason, why: (error as Error).message });
    }
    if (!answer.ok || connection === undefined) {
      const cause = answer.ok ? UNKNOWN_CONNECTION : answer.cause;
      this.#refused('connect', client, cause);
      throw refusal(NOT_AUTHORIZED, cause);
    }
    this.#begin(client, connection, answer);
  }

  /** Authenticates, and does so again where credentials were withdrawn while it did. */
  async #check(claim: ConnectClaim): Promise<Authentication> {
    for (let times = 0; times < AUTHENTICATED_MOST; times += 1) {
      const { ends } = this.sessions;
      const answer = await authenticate(this.#options, claim, this.#options.wallClock.now());
      // On the disk before the CONNACK: no crash can make a SIM's activation later than it was.
      if (answer.ok && answer.sender.source === 'lock') await this.#options.usage.sims.activate(answer.sender.mac);
      if (ends === this.sessions.ends) return answer;
    }
    throw new LockgateError('overloaded', 'credentials are being withdrawn faster than a CONNECT can be checked');
  }

  #unavailable(client: Client, cause: RefusalCause): AuthenticateError {
    this.#refused('connect', client, cause);
    return refusal(SERVER_UNAVAILABLE, cause);
  }

  #begin(client: Client, connection: ConnectionFilter, { sender, expiresAtMs }: Accepted): void {
    // aedes ends the connection before this one, which has the same client id, when it registers the new one.
    for (const before of this.sessions.ofClient(sender.deviceId, client.id)) before.cause ??= 'takeover';
    const messages = this.#options.usage.meter.accepted(connection.raw, sender);
    // What is still on its way when we end a connection is paid for too, so it is counted.
    closeLingering(connection, systemClock, () => client.close());
    const session: Session = {
      sender,
      clientId: client.id,
      connection,
      expiresAtMs,
      messages,
      isReady: false,
      isListening: false,
      hasUnsubscribed: false,
      isEnded: false,
      cause: undefined,
      send: async (payload) => {
        this.#door.sent(connection);
        await sendDown(client, payload);
        if (!client.closed) messages.messagesDown += 1;
      },
    };
    this.#sessionOf.set(client, session);
    this.sessions.add(session);
    this.#expiry.add(session);
    if (this.#options.fastLane !== false) {
      const lane = this.#lanes.open(session, connection);
      this.#laneOf.set(client, lane);
      connection.uplinkPath = lane;
    }
    connection.budget = this.#options.budgets?.of(sender);
    connection.stream.once('close', () => {
      this.#expiry.remove(session);
      // One that never gets ready is nobody's disconnect.
      if (!session.isReady) this.sessions.remove(session);
      // A client that ends before aedes has registered it takes another's entry of the same id with it, and of that one
      // aedes never says that it is gone.
      else afterThisTurn(() => this.#gone(client));
    });
    this.#door.open(connection, this.#keepalives.get(client) ?? 0);
  }

  #listening(client: Client): void {
    const session = this.#sessionOf.get(client);
    if (session === undefined || session.isListening) return;
    // A quick client subscribes before aedes says that it is ready.
    this.#ready(client);
    session.isListening = true;
    session.hasUnsubscribed = false;
    this.#options.onListening?.(session);
  }

  /** An uplink must not be acknowledged: aedes ends the connection as it does where `authorizePublish` fails. */
  #laneFailed(client: Client, error: Error): void {
    this.#setCause(client, 'gateway');
    client.emit('error', error);
  }

  /** The heart: the callback is called, and so the PUBACK written, when the uplink is on the disk. */
  #publish(client: Client | null, packet: AedesPublishPacket, done: (error?: Error | null) => void): void {
    // aedes itself publishes below $SYS (its birth, its heartbeat), with no client; nobody can subscribe to it.
    if (client === null) {
      done(null);
      return;
    }
    const arrivedAt = monotonicMs();
    const answer = (error?: Error): void => {
      // What was answered before it goes out before it.
      this.#laneOf.get(client)?.write();
      if (error !== undefined) this.#setCause(client, 'gateway');
      // At QoS 1 aedes writes the PUBACK before this returns.
      done(error ?? null);
      if (error === undefined && packet.qos === 1)
        this.#options.events.emit('acknowledged', { durationMs: monotonicMs() - arrivedAt });
    };
    const session = this.#sessionOf.get(client);
    const fault = session === undefined ? NOT_AUTHENTICATED : publishFault(packet);
    // Ended by us, or by a DISCONNECT, behind which nothing may come (MQTT 3.1.1, 3.14.4).
    if (session?.isEnded === true || !client.conn.writable) {
      done(new LockgateError('session-ended', 'the connection is being ended'));
      return;
    }
    if (session !== undefined && fault === undefined) {
      this.#ready(client);
      session.messages.messagesUp += 1;
      this.#options.ingest.take(session.sender, packet.payload as Buffer, answer);
      return;
    }
    if (fault !== undefined) this.#refused('publish', client, fault);
    answer(new LockgateError('publish-refused', fault?.why ?? ''));
  }

  /** aedes says so some turns after the CONNACK; a quick client's first publish may well be here before that. */
  #ready(client: Client): void {
    const session = this.#sessionOf.get(client);
    if (session === undefined || session.isReady) return;
    session.isReady = true;
    const { deviceId, mac, simulated, source } = session.sender;
    const atMs = this.#options.clock.now();
    this.#options.ingest.recordEvent(deviceId, mac, { type: 'connect', source, atMs }, () => {
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
    this.#options.ingest.recordEvent(deviceId, mac, { type: 'disconnect', source, cause, atMs }, () => {
      this.#options.events.emit('disconnected', { atMs, mac, source, cause });
    });
  }

  /** Protocol errors after CONNECT; a refused publish or CONNECT has been reported where it was refused. */
  #failed(client: Client, error: Error): void {
    if (error instanceof LockgateError || (error as AuthenticateError).returnCode !== undefined) return;
    // aedes says so once for each packet that it could not answer any more: nothing was refused.
    if (error.message === CLOSED_ALREADY) return;
    if (isSocketError(error)) this.#setCause(client, 'dropped');
    else this.#refused('publish', client, { reason: 'other', why: error.message });
  }

  #setCause(client: Client, cause: DisconnectCause): void {
    const session = this.#sessionOf.get(client);
    if (session !== undefined) session.cause ??= cause;
  }

  #setCauseOf(gate: ConnectionFilter, cause: DisconnectCause): void {
    const client = clientOf(gate);
    if (client !== undefined) this.#setCause(client, cause);
  }

  /** The front door ends a connection; it has none of aedes' clients before the CONNECT is whole. */
  #endedAtDoor(gate: ConnectionFilter, cause: DisconnectCause, what: Refused['what'], why: RefusalCause): void {
    this.#setCauseOf(gate, cause);
    this.#refusals.report(what, this.#refusedClient(gate, clientOf(gate)), why);
  }

  #refused(what: Refused['what'], client: Client, why: RefusalCause): void {
    this.#refusals.report(what, this.#refusedClient(connectionFilterOf(client.conn), client), why);
  }

  /** Who it is that is refused something: until it is let in, what its CONNECT says of itself. */
  #refusedClient(gate: ConnectionFilter | undefined, client: Client | undefined): RefusedClient {
    return {
      clientId: gate?.claim?.clientId ?? client?.id ?? '',
      userName: gate?.claim?.userName ?? '',
      sender: client === undefined ? undefined : this.#sessionOf.get(client)?.sender,
      address: gate?.address ?? '',
    };
  }
}

/** aedes' client on a connection, which aedes notes there; undefined until it has got the connection. */
function clientOf({ stream }: Pick<Connection, 'stream'>): Client | undefined {
  return (stream as Socket & { client?: Client }).client;
}

/** `client.publish` reaches this client alone, where `broker.publish` would reach every lock. */
function sendDown(client: Client, payload: Buffer): Promise<void> {
  const packet = { cmd: 'publish', topic: DOWN_TOPIC, payload, qos: 1, dup: false, retain: false } as const;
  return new Promise((resolve) => client.publish(packet, () => resolve()));
}

function refusal(returnCode: number, { why }: RefusalCause): AuthenticateError {
  return Object.assign(new Error(why), { returnCode }) as AuthenticateError;
}

/** Whether the client said DISCONNECT before it went. aedes notes it in a member that its types leave out. */
function endedWell(client: Client): boolean {
  return (client as Client & { _disconnected?: boolean })._disconnected === true;
}

function isSocketError(error: Error): boolean {
  return 'syscall' in error || (error as NodeJS.ErrnoException).code?.startsWith('ERR_STREAM') === true;
}
