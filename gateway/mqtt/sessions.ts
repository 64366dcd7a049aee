/**
 * The authenticated connections: whose they are, and how to end them. A lock has at most one of its own; phones that
 * act for it have others.
 */
import type { DisconnectCause } from '../../proto/power/judge/event.js';
import type { Sender } from '../ingest/ingest.js';
import { type NextPhases, nextPhase } from '../phase.js';
import type { MessageCounts } from '../usage/meter.js';
import type { Connection } from './listener.js';

/**
 * The life of a session, as ingest and with it the judge see it:
 *
 * - `authenticated`: the credential is right. Its CONNACK may not have been written yet, so nothing is reported.
 * - `connected`: the library reported the client as ready, or its first packet arrived. A connect event is reported.
 * - `disconnected`: the connection is gone. A disconnect event is reported. A session that was never connected does not
 *   get here: it is only removed.
 *
 * Beside that, {@link Session.end} may come in any phase. It destroys the socket, and from then on nothing that the
 * client sent is taken.
 */
export type SessionPhase = 'authenticated' | 'connected' | 'disconnected';

const NEXT_PHASES: NextPhases<SessionPhase> = {
  authenticated: ['connected'],
  connected: ['disconnected'],
  disconnected: [],
};

/** Whether a lock is subscribed to `down`: not yet, now, or not any more. */
export type Subscription = 'none' | 'active' | 'withdrawn';

export interface SessionParts {
  readonly sender: Sender;
  readonly clientId: string;
  readonly connection: Connection;
  /** When its credential expires, ms since the epoch, wall-clock time; null where it does not. */
  readonly expiresAtMs: number | null;
  /** Its messages so far, for billing. */
  readonly messages: MessageCounts;
  /**
   * Sends one message down at QoS 1, to this client only. Resolves when it has been handed to the socket, or when that
   * is no longer possible; the lock's reply comes back as an uplink.
   */
  readonly send: (payload: Buffer) => Promise<void>;
}

/** An authenticated connection. */
export class Session implements SessionParts {
  readonly sender: Sender;
  readonly clientId: string;
  readonly connection: Connection;
  readonly expiresAtMs: number | null;
  readonly messages: MessageCounts;
  readonly send: SessionParts['send'];
  /** Why it ends, once that is known; the first cause counts. */
  cause: DisconnectCause | undefined;
  subscription: Subscription = 'none';
  #phase: SessionPhase = 'authenticated';
  #isEnded = false;

  constructor({ sender, clientId, connection, expiresAtMs, messages, send }: SessionParts) {
    this.sender = sender;
    this.clientId = clientId;
    this.connection = connection;
    this.expiresAtMs = expiresAtMs;
    this.messages = messages;
    this.send = send;
  }

  get phase(): SessionPhase {
    return this.#phase;
  }

  /** It has subscribed to `down`: it receives what is sent now. */
  get isListening(): boolean {
    return this.subscription === 'active';
  }

  /** We have ended it: nothing that it sends is taken any more. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** @throws Error where it is not `authenticated` */
  connect(): void {
    this.#phase = nextPhase('a session', NEXT_PHASES, this.#phase, 'connected');
  }

  /** @throws Error where it is not `connected` */
  disconnect(): void {
    this.#phase = nextPhase('a session', NEXT_PHASES, this.#phase, 'disconnected');
  }

  /** Ends it, at once. */
  end(): void {
    this.cause ??= 'gateway';
    this.#isEnded = true;
    this.connection.stream.destroy();
  }
}

export class Sessions {
  readonly #byDevice = new Map<number, Set<Session>>();
  readonly #waiting = new Map<number, (() => void)[]>();
  #count = 0;
  #ends = 0;

  /** How many there are. */
  get count(): number {
    return this.#count;
  }

  /**
   * How often {@link end} was called. Authentication reads it before and after: if it changed, the credentials that
   * were read may have been withdrawn meanwhile.
   */
  get ends(): number {
    return this.#ends;
  }

  /** To be called as soon as a session is authenticated, so that {@link end} misses none. */
  add(session: Session): void {
    const { deviceId } = session.sender;
    const known = this.#byDevice.get(deviceId);
    if (known === undefined) this.#byDevice.set(deviceId, new Set([session]));
    else known.add(session);
    this.#count += 1;
  }

  remove(session: Session): void {
    const { deviceId } = session.sender;
    const known = this.#byDevice.get(deviceId);
    if (known?.delete(session) !== true) return;
    this.#count -= 1;
    if (known.size > 0) return;
    this.#byDevice.delete(deviceId);
    for (const done of this.#waiting.get(deviceId) ?? []) done();
    this.#waiting.delete(deviceId);
  }

  *all(): Iterable<Session> {
    for (const sessions of this.#byDevice.values()) yield* sessions;
  }

  /** The lock's own session, during a takeover the newest; undefined while it is not connected. */
  ofLock(deviceId: number): Session | undefined {
    let newest: Session | undefined;
    for (const session of this.#byDevice.get(deviceId) ?? [])
      if (session.sender.source === 'lock' && session.phase !== 'authenticated') newest = session;
    return newest;
  }

  /** Those of a device under one client id: one, except during a takeover. */
  ofClient(deviceId: number, clientId: string): Session[] {
    return [...(this.#byDevice.get(deviceId) ?? [])].filter((session) => session.clientId === clientId);
  }

  /** Resolves when a device has none. */
  async whenNone(deviceId: number): Promise<void> {
    if (!this.#byDevice.has(deviceId)) return;
    await new Promise<void>((done) => {
      this.#waiting.set(deviceId, [...(this.#waiting.get(deviceId) ?? []), done]);
    });
  }

  /**
   * Ends the sessions of a device for which `fits` is true, at once. The change that this is for must be committed by
   * then: a CONNECT that reads the credentials now reads the new ones, and one that read them before reads them again.
   */
  end(deviceId: number, fits: (session: Session) => boolean = () => true): void {
    this.#ends += 1;
    for (const session of [...(this.#byDevice.get(deviceId) ?? [])]) if (fits(session)) session.end();
  }
}
