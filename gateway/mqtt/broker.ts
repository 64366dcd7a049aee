/**
 * The MQTT broker for locks, built on aedes. Only this file may import aedes, which the other files of this folder call
 * "the library".
 *
 * aedes writes the PUBACK before it publishes, persists or calls `published`; storing an uplink at one of those points
 * could lose it after the lock got its acknowledgement. But aedes waits for `authorizePublish`, and closes the
 * connection without a PUBACK if that fails. So the gateway decodes and commits an uplink inside `authorizePublish`,
 * and calls the callback to acknowledge it. Ordinary uplinks bypass aedes, with the same guarantee
 * (uplink-fast-path.ts).
 *
 * The CONNECT determines the sender of everything on a connection (protocol.md §1); no topic contains a MAC.
 */
import type { Socket } from 'node:net';
import {
  Aedes,
  type AedesOptions,
  type AedesPublishPacket,
  type AuthenticateError,
  type Client,
  type ConnectPacket,
} from 'aedes';
import mqttPacket from 'mqtt-packet';
import { afterThisTurn, type Clock, Hours, monotonicMs, RunClock, Seconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { DisconnectCause } from '../../proto/power/judge/event.js';
import type { Refused } from '../lock-events.js';
import { StoreFailure } from '../store/contract/errors.js';
import type { Authentication } from './authentication.js';
import { BrokerListeners } from './broker-listeners.js';
import type { BrokerOptions } from './broker-options.js';
import { checkConnect } from './connect-check.js';
import { recordConnect, recordDisconnect } from './connection-events.js';
import { type ConnectionFilter, connectionFilterOf } from './connection-filter.js';
import { ConnectionGuard, GUARD_LIMITS } from './connection-guard.js';
import { makeCloseLinger } from './lingering-close.js';
import type { Connection } from './listener.js';
import { NullEmitter, NullPersistence } from './no-routing.js';
import { dropConnect } from './packets/dropped-connect.js';
import { answerRepeatedFilters, sentTopicFilter } from './packets/repeated-filters.js';
import { DOWN_TOPIC, publishFault, subscribeFault } from './packets/topics.js';
import { ProxiedConnections } from './proxied-connections.js';
import type { RefusalCause } from './refusals/refusal-reason.js';
import { type RefusalCounts, Refusals, type RefusedClient } from './refusals/refusals.js';
import { SessionExpiry } from './session-expiry.js';
import { Session, Sessions } from './sessions.js';
import type { SocketCopier } from './socket-copier.js';
import type { TlsIdentity } from './tls-identity.js';
import { UplinkFastPaths } from './uplink-fast-path.js';

/**
 * Turns off what the gateway does not need: aedes routes and persists nothing, its heartbeat (a publish below $SYS,
 * which nobody receives) is rare, and the connection guard closes connections that read slowly before aedes would
 * (`drainTimeout`).
 */
const AEDES_OPTIONS = {
  mq: new NullEmitter(),
  persistence: new NullPersistence(),
  heartbeatInterval: Hours(1),
  drainTimeout: Seconds(10),
} as const satisfies AedesOptions;
// Otherwise mqtt-packet allocates 65,536 small buffers at the first packet, one for each 16-bit number.
mqttPacket.writeToStream.cacheNumbers = false;
/** MQTT 3.1.1 §3.2.2.3: the CONNACK of a refused connection. */
const SERVER_UNAVAILABLE = 3;
const NOT_AUTHORIZED = 5;

/** The message of aedes' error for a packet to a client whose connection has closed. */
const CLOSED_CONNECTION_MESSAGE = 'connection closed';

/** Why a packet is refused that arrives before the client is authenticated. */
const NOT_AUTHENTICATED: RefusalCause = { reason: 'not-authenticated', why: 'the client is not authenticated' };
const UNKNOWN_CONNECTION: RefusalCause = { reason: 'not-authenticated', why: 'the connection is unknown' };
const CLIENT_LEFT: RefusalCause = { reason: 'other', why: 'the client closed the connection before it was accepted' };
const TAKEN_AWAY: RefusalCause = { reason: 'other', why: 'another gateway has just claimed the lock' };

type Accepted = Extract<Authentication, { ok: true }>;

export class Broker {
  /** The authenticated connections. */
  readonly sessions: Sessions;
  readonly #refusals: Refusals;
  readonly #options: BrokerOptions;
  readonly #aedes: Aedes;
  readonly #guard: ConnectionGuard;
  readonly #listeners: BrokerListeners;
  readonly #clientsWithWill = new WeakSet<Client>();
  readonly #expiry: SessionExpiry;
  readonly #fastPaths: UplinkFastPaths;
  #closing = false;

  private constructor(options: BrokerOptions, aedes: Aedes) {
    this.#options = options;
    this.sessions = options.sessions ?? new Sessions();
    this.#aedes = aedes;
    this.#refusals = new Refusals(options);
    // A run clock at normal speed follows real time, and never goes back.
    const guardClock = options.guardClock ?? new RunClock(options.clock.now());
    this.#listeners = new BrokerListeners(options, this.#proxiedConnections(guardClock));
    this.#expiry = new SessionExpiry(options.wallClock, (expired) => {
      this.sessions.end(expired.sender.deviceId, (session) => session === expired);
    });
    this.#fastPaths = new UplinkFastPaths({
      ingest: options.ingest,
      events: options.events,
      // `onFirst`: the first uplink of a connection came. Only authenticated connections have a fast path, so aedes has
      // a client for the connection.
      onFirst: (filter) => this.#markConnected(clientOf(filter) as Client),
      onFailed: (filter, error) => this.#uplinkFailed(clientOf(filter) as Client, error),
    });
    this.#guard = new ConnectionGuard({
      limits: { ...GUARD_LIMITS, ...options.limits },
      roomFor: options.roomFor,
      clock: guardClock,
      onConnect: ({ stream }) => void aedes.handle(stream),
      onRefused: (filter, what, refused) => this.#endedByGuard(filter, 'gateway', what, refused),
      onSilent: (filter) => this.#setCauseOf(filter, 'keepalive'),
      onUnread: (filter, refused) => this.#endedByGuard(filter, 'dropped', 'connection', refused),
      onLingering: (filter) => clientOf(filter)?.close(),
      onClosed: (filter) => this.#connectionClosed(filter),
    });
    this.#installHooks();
  }

  /** @throws LockgateError `port-taken`, `input-address`, `tls-file` */
  static async start(options: BrokerOptions): Promise<Broker> {
    const aedes = await Aedes.createBroker(AEDES_OPTIONS);
    const broker = new Broker(options, aedes);
    try {
      await broker.#listeners.start((connection) => broker.take(connection));
    } catch (error) {
      // Timers of the broker would keep the process alive after the failed start.
      await broker.close();
      throw error;
    }
    return broker;
  }

  /** The number of refused CONNECTs, packets, publishes and so on since the start. */
  get refusals(): RefusalCounts {
    return this.#refusals.counts;
  }

  /**
   * Copies the sockets for locks, so that more of them are accepted at a time. Takes some milliseconds, in which locks
   * are served: so all parts must be connected before.
   */
  async copySockets(copier: SocketCopier): Promise<void> {
    await this.#listeners.copySockets(copier);
  }

  get port(): number {
    return this.#listeners.port;
  }

  /** Undefined if there is no listener over TLS. */
  get tlsPort(): number | undefined {
    return this.#listeners.tlsPort;
  }

  /** Reads certificate and key again. New connections use them; open ones stay. @throws LockgateError `tls-file` */
  reloadTls(): TlsIdentity {
    return this.#listeners.reloadTls();
  }

  /** When the current certificate expires, ms since the epoch; null without TLS. */
  get certificateEndMs(): number | null {
    return this.#listeners.certificateEndMs;
  }

  /** How many locks and phones are connected now. */
  get connected(): number {
    return this.sessions.count;
  }

  /**
   * Stops accepting connections and reading, waits until received uplinks are answered, then closes all connections.
   */
  async close(): Promise<void> {
    this.#closing = true;
    const closed = this.#listeners.close();
    // Nothing more is read, but uplinks that are being stored still get their PUBACKs.
    this.#guard.stopReading();
    await this.#options.ingest.stop();
    // A PUBACK reaches its socket only at the end of the event loop turn that wrote it.
    await new Promise<void>(afterThisTurn);
    await this.#guard.closeAll();
    await new Promise<void>((resolve) => this.#aedes.close(() => resolve()));
    this.#expiry.stop();
    this.#options.budgets?.stop();
    this.#guard.destroyAll();
    await closed;
  }

  /** Serves MQTT on a new connection. */
  take(connection: Connection): void {
    this.#options.usage.meter.opened(connection.raw, connection.headerBytes);
    this.#guard.take(connection);
  }

  #proxiedConnections(clock: Clock): ProxiedConnections {
    return new ProxiedConnections({
      trusts: this.#options.isProxy ?? (() => false),
      clock,
      onRefused: (address, cause) => {
        this.#refusals.report('connect', { clientId: '', userName: '', sender: undefined, address }, cause);
      },
    });
  }

  #installHooks(): void {
    const aedes = this.#aedes;
    // aedes calls this after `authorizePublish`, when ingest has the uplink, and for its own notices about clients,
    // which have no subscribers. So there is nothing to publish.
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
      const session = sessionOf(client);
      const { qos } = subscription;
      const topic = sentTopicFilter(subscription);
      const fault = session === undefined ? NOT_AUTHENTICATED : subscribeFault(session.sender.source, topic, qos);
      if (fault === undefined) return done(null, subscription);
      this.#reportRefusal('subscribe', client, fault);
      done(null, null);
    };
    aedes.on('subscribe', (subscriptions, client) => {
      // Refused subscriptions are reported here too, as of QoS 128 (the failure code of a SUBACK).
      if (subscriptions.some(({ topic, qos }) => topic === DOWN_TOPIC && qos < 2)) this.#subscribed(client);
    });
    aedes.on('unsubscribe', (filters, client) => {
      const session = filters.includes(DOWN_TOPIC) ? sessionOf(client) : undefined;
      if (session?.isListening === true) session.subscription = 'withdrawn';
    });
    aedes.on('clientReady', (client) => this.#markConnected(client));
    aedes.on('clientDisconnect', (client) => this.#markDisconnected(client));
    aedes.on('clientError', (client, error) => this.#clientFailed(client, error));
    aedes.on('connectionError', (client, error) => {
      this.#reportRefusal('connect', client, { reason: 'other', why: error.message });
    });
  }

  /**
   * Makes every session clean: a lock retains uplinks until they are acknowledged, and the gateway stores commands, so
   * no session needs to outlive its connection.
   */
  #preConnect(client: Client, packet: ConnectPacket, done: (error: Error | null, go: boolean) => void): void {
    packet.clean = true;
    answerRepeatedFilters(client);
    // The connection guard enforces the keepalive, also for clients that ask for none.
    const connection = connectionFilterOf(client.conn);
    if (connection !== undefined) connection.keepalive = packet.keepalive ?? 0;
    packet.keepalive = 0;
    // An error here would close the connection without a CONNACK, so a will is refused during authentication.
    if (packet.will) this.#clientsWithWill.add(client);
    done(null, true);
  }

  /** Every refusal looks the same to the client: CONNACK 5. Only operators see the reason. */
  async #authenticate(client: Client, username: string | undefined, password: Buffer | undefined): Promise<void> {
    if (this.#closing) throw this.#unavailable(client, { reason: 'stopping', why: 'the gateway is stopping' });
    const connection = connectionFilterOf(client.conn);
    if ((await this.#options.canStore?.()) === false)
      throw this.#unavailable(client, { reason: 'store', why: 'the store can’t write now' });
    const hasWill = this.#clientsWithWill.has(client);
    let result: Authentication;
    try {
      const claim = { clientId: client.id, username, password, hasWill };
      const hasLeft = (): boolean => connection?.stream.destroyed === true;
      result = await checkConnect(this.#options, this.sessions, claim, hasLeft);
    } catch (error) {
      const reason = error instanceof StoreFailure ? 'store' : 'other';
      throw this.#unavailable(client, { reason, why: (error as Error).message });
    }
    if (!result.ok || connection === undefined) {
      const cause = result.ok ? UNKNOWN_CONNECTION : result.cause;
      this.#reportRefusal('connect', client, cause);
      throw refusal(NOT_AUTHORIZED, cause);
    }
    // A session of a closed connection would never end, and whoever waits for its end would wait for ever.
    if (connection.stream.destroyed) throw refusal(SERVER_UNAVAILABLE, CLIENT_LEFT);
    if (this.#options.owner?.owns(result.sender) === false) throw this.#unavailable(client, TAKEN_AWAY);
    this.#startSession(client, connection, result);
  }

  /** Reports that the gateway can't serve a CONNECT now. Returns the error for CONNACK 3. */
  #unavailable(client: Client, cause: RefusalCause): AuthenticateError {
    this.#reportRefusal('connect', client, cause);
    return refusal(SERVER_UNAVAILABLE, cause);
  }

  /** Sends a downlink to a session's client; shared by all sessions. */
  readonly #send = async ({ connection, messages }: Session, payload: Buffer): Promise<void> => {
    // A connection with a session is a filter, and has a client.
    const client = clientOf(connection) as Client;
    this.#guard.sent(connection as ConnectionFilter);
    await sendDown(client, payload);
    if (!client.closed) messages.messagesDown += 1;
  };

  /** Creates the session of an authenticated client, and opens its connection for further packets. */
  #startSession(client: Client, connection: ConnectionFilter, { sender, expiresAtMs }: Accepted): void {
    // When aedes registers this client, aedes closes the previous connection of the same client id.
    for (const previous of this.sessions.ofClient(sender.deviceId, client.id)) previous.cause ??= 'takeover';
    const messages = this.#options.usage.meter.accepted(connection.raw, sender);
    // Bytes that are still on their way when the gateway closes a connection are billed too, so they must be counted.
    makeCloseLinger(connection);
    const session = new Session({
      sender,
      clientId: client.id,
      connection,
      expiresAtMs,
      messages,
      send: this.#send,
    });
    connection.session = session;
    dropConnect(client);
    this.sessions.add(session);
    this.#expiry.add(session);
    if (this.#options.fastPath !== false) connection.uplinkPath = this.#fastPaths.open(session, connection);
    connection.budget = this.#options.budgets?.of(sender);
    this.#guard.open(connection);
  }

  #connectionClosed(connection: ConnectionFilter): void {
    const { session } = connection;
    if (session === undefined) return;
    this.#expiry.remove(session);
    // A session that was never connected does not disconnect either.
    if (session.phase === 'authenticated') this.sessions.remove(session);
    // aedes does not report every disconnect: a client that closes before aedes has registered it removes aedes' entry
    // of another client with the same id. A connection with a session has a client.
    else afterThisTurn(() => this.#markDisconnected(clientOf(connection) as Client));
  }

  #subscribed(client: Client): void {
    const session = sessionOf(client);
    if (session === undefined || session.isListening) return;
    // A quick client subscribes before aedes reports it as ready.
    this.#markConnected(client);
    session.subscription = 'active';
    this.#options.onSubscribed?.(session);
  }

  /** Closes the connection because an uplink must not be acknowledged. aedes does so if `authorizePublish` fails. */
  #uplinkFailed(client: Client, error: Error): void {
    this.#setCause(client, 'gateway');
    client.emit('error', error);
  }

  /** Handles `authorizePublish`. Calls `done` when the uplink is on disk; aedes then writes the PUBACK. */
  #publish(client: Client | null, packet: AedesPublishPacket, done: (error?: Error | null) => void): void {
    // aedes itself publishes below $SYS (its start, its heartbeat), without a client. No client can subscribe to that.
    if (client === null) {
      done(null);
      return;
    }
    const arrivedAt = monotonicMs();
    const answer = (error?: Error): void => {
      // PUBACKs of earlier uplinks must be written first.
      connectionFilterOf(client.conn)?.uplinkPath?.write();
      if (error !== undefined) this.#setCause(client, 'gateway');
      // At QoS 1 aedes writes the PUBACK before this returns.
      done(error ?? null);
      if (error === undefined && packet.qos === 1)
        this.#options.events.emit('acknowledged', { durationMs: monotonicMs() - arrivedAt });
    };
    const session = sessionOf(client);
    const fault = session === undefined ? NOT_AUTHENTICATED : publishFault(packet);
    // The gateway is ending the connection, or the client sent a DISCONNECT, which must be last (MQTT 3.1.1, 3.14.4).
    if (session?.isEnded === true || !client.conn.writable) {
      done(new LockgateError('session-ended', 'the connection is being ended'));
      return;
    }
    if (session !== undefined && fault === undefined) {
      this.#markConnected(client);
      session.messages.messagesUp += 1;
      this.#options.ingest.take(session.sender, packet.payload as Buffer, answer);
      return;
    }
    if (fault !== undefined) this.#reportRefusal('publish', client, fault);
    answer(new LockgateError('publish-refused', fault?.why ?? ''));
  }

  /**
   * Marks the session as connected, if it is not yet. aedes reports a client as ready only some time after a quick
   * client's first packet.
   */
  #markConnected(client: Client): void {
    const session = sessionOf(client);
    if (session?.phase !== 'authenticated') return;
    recordConnect(session, this.#options);
  }

  /** Marks the session as disconnected, if it is not yet. */
  #markDisconnected(client: Client): void {
    const connection = connectionFilterOf(client.conn);
    const session = connection?.session;
    if (connection === undefined || session === undefined) return;
    // aedes may have registered the client without reporting it as ready. A disconnect event follows a connect event.
    this.#markConnected(client);
    connection.session = undefined;
    this.#expiry.remove(session);
    this.sessions.remove(session);
    const cause = session.cause ?? (this.#closing ? 'gateway' : hasSentDisconnect(client) ? 'closed' : 'dropped');
    recordDisconnect(session, cause, this.#options);
  }

  /** Reports protocol errors after the CONNECT. A refused publish or CONNECT has been reported already. */
  #clientFailed(client: Client, error: Error): void {
    if (error instanceof LockgateError || (error as AuthenticateError).returnCode !== undefined) return;
    // aedes reports this for each packet that it could not answer after the close. Nothing was refused.
    if (error.message === CLOSED_CONNECTION_MESSAGE) return;
    if (isSocketError(error)) this.#setCause(client, 'dropped');
    else this.#reportRefusal('publish', client, { reason: 'other', why: error.message });
  }

  #setCause(client: Client, cause: DisconnectCause): void {
    const session = sessionOf(client);
    if (session !== undefined) session.cause ??= cause;
  }

  #setCauseOf(filter: ConnectionFilter, cause: DisconnectCause): void {
    const client = clientOf(filter);
    if (client !== undefined) this.#setCause(client, cause);
  }

  /**
   * Reports that the guard closes a connection: `cause` is the session's, `refused` is for operators. Before the
   * CONNECT is complete, aedes has no client for the connection.
   */
  #endedByGuard(filter: ConnectionFilter, cause: DisconnectCause, what: Refused['what'], refused: RefusalCause): void {
    this.#setCauseOf(filter, cause);
    this.#refusals.report(what, this.#refusedClientOf(filter, clientOf(filter)), refused);
  }

  #reportRefusal(what: Refused['what'], client: Client, cause: RefusalCause): void {
    this.#refusals.report(what, this.#refusedClientOf(connectionFilterOf(client.conn), client), cause);
  }

  /** The client that is refused. Until it is authenticated, its identity is the one that its CONNECT claims. */
  #refusedClientOf(filter: ConnectionFilter | undefined, client: Client | undefined): RefusedClient {
    return {
      clientId: filter?.claim?.clientId ?? client?.id ?? '',
      userName: filter?.claim?.userName ?? '',
      sender: client === undefined ? undefined : sessionOf(client)?.sender,
      address: filter?.address ?? '',
    };
  }
}

/** The session of a client; undefined before it is authenticated and after it has disconnected. */
function sessionOf(client: Client): Session | undefined {
  return connectionFilterOf(client.conn)?.session;
}

/** aedes' client of a connection, which aedes sets on the stream; undefined until aedes has the connection. */
function clientOf({ stream }: Pick<Connection, 'stream'>): Client | undefined {
  return (stream as Socket & { client?: Client }).client;
}

/** Sends a downlink to this client only: `client.publish` reaches one client, `broker.publish` every lock. */
function sendDown(client: Client, payload: Buffer): Promise<void> {
  const packet = { cmd: 'publish', topic: DOWN_TOPIC, payload, qos: 1, dup: false, retain: false } as const;
  return new Promise((resolve) => client.publish(packet, () => resolve()));
}

function refusal(returnCode: number, { why }: RefusalCause): AuthenticateError {
  return Object.assign(new Error(why), { returnCode }) as AuthenticateError;
}

/** Whether the client sent a DISCONNECT. aedes notes this in a member that its types lack. */
function hasSentDisconnect(client: Client): boolean {
  return (client as Client & { _disconnected?: boolean })._disconnected === true;
}

function isSocketError(error: Error): boolean {
  return 'syscall' in error || (error as NodeJS.ErrnoException).code?.startsWith('ERR_STREAM') === true;
}
