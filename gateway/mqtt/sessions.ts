/**
 * Holds the sessions, that is the authenticated connections, by device, and ends them. A lock has at most one session
 * (two for a moment while a new connection takes over from the old one); phones that act for it have further ones.
 */
import { afterThisTurn } from '../../proto/clock.js';
import type { DisconnectCause } from '../../proto/power/judge/event.js';
import type { Source } from '../../proto/wire/ping.js';
import type { Sender } from '../ingest/ingest.js';
import { type NextPhases, nextPhase } from '../phase.js';
import type { MessageCounts } from '../usage/meter.js';
import type { Connection } from './listener.js';

/**
 * The phases of a session, as reported to ingest:
 *
 * - `authenticated`: the credential is correct. The CONNACK may not have been written yet, so nothing is reported.
 * - `connected`: the library reported the client as ready, or its first packet arrived. A connect event is reported.
 * - `disconnected`: the connection has closed. A disconnect event is reported. A session that was never connected does
 *   not enter this phase: it is only removed.
 *
 * {@link Session.end} may be called in any phase. It destroys the socket; later bytes of the client are ignored.
 */
export type SessionPhase = 'authenticated' | 'connected' | 'disconnected';

const NEXT_PHASES: NextPhases<SessionPhase> = {
  authenticated: ['connected'],
  connected: ['disconnected'],
  disconnected: [],
};

/** Maximum number of sessions that one turn of the event loop ends: some 5 ms, for which pings wait. */
const MAX_ENDED_PER_TURN = 200;

/** Whether a lock is subscribed to `down`: not yet, now, or not any more. */
export type Subscription = 'none' | 'active' | 'withdrawn';

export interface SessionParts {
  readonly sender: Sender;
  readonly clientId: string;
  readonly connection: Connection;
  /** When its credential expires, ms since the epoch, wall-clock time; null if it does not expire. */
  readonly expiresAtMs: number | null;
  /** The number of its messages so far, for billing. */
  readonly messages: MessageCounts;
  /**
   * Sends one downlink at QoS 1, to the client of this session only. Resolves when the message has been handed to the
   * socket, or when the connection has closed. The lock's reply arrives as an uplink.
   */
  readonly send: (session: Session, payload: Buffer) => Promise<void>;
}

/** An authenticated connection. */
export class Session implements Omit<SessionParts, 'send'> {
  readonly sender: Sender;
  readonly clientId: string;
  readonly connection: Connection;
  readonly expiresAtMs: number | null;
  readonly messages: MessageCounts;
  /** Why the session ends, once known. Later causes do not replace the first. */
  cause: DisconnectCause | undefined;
  subscription: Subscription = 'none';
  readonly #send: SessionParts['send'];
  #phase: SessionPhase = 'authenticated';
  #isEnded = false;

  constructor({ sender, clientId, connection, expiresAtMs, messages, send }: SessionParts) {
    this.sender = sender;
    this.clientId = clientId;
    this.connection = connection;
    this.expiresAtMs = expiresAtMs;
    this.messages = messages;
    this.#send = send;
  }

  get phase(): SessionPhase {
    return this.#phase;
  }

  /** Whether the client is subscribed to `down`, so that it receives downlinks. */
  get isListening(): boolean {
    return this.subscription === 'active';
  }

  /** Whether the gateway has ended the session: the client's later bytes are ignored. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Sends one downlink, as {@link SessionParts.send} does. */
  send(payload: Buffer): Promise<void> {
    return this.#send(this, payload);
  }

  /** @throws Error if the phase is not `authenticated` */
  connect(): void {
    this.#phase = nextPhase('a session', NEXT_PHASES, this.#phase, 'connected');
  }

  /** @throws Error if the phase is not `connected` */
  disconnect(): void {
    this.#phase = nextPhase('a session', NEXT_PHASES, this.#phase, 'disconnected');
  }

  /** Ends the session at once. */
  end(): void {
    this.cause ??= 'gateway';
    this.#isEnded = true;
    this.connection.stream.destroy();
  }
}

export class Sessions {
  /** The oldest first. Arrays, since a lock rarely has more than one, for which a set would need much memory. */
  readonly #byDevice = new Map<number, Session[]>();
  /** The callers of {@link whenNone}, by device. */
  readonly #waiting = new Map<number, { readonly source: Source | undefined; readonly done: () => void }[]>();
  #count = 0;
  #endCount = 0;

  /** The number of sessions. */
  get count(): number {
    return this.#count;
  }

  /**
   * Counts calls of {@link end} and {@link endOfMerchant}. The broker compares this count before and after an
   * authentication: if it changed, the credentials may have been withdrawn meanwhile.
   */
  get endCount(): number {
    return this.#endCount;
  }

  /** Must be called as soon as a session is authenticated, so that {@link end} misses no session. */
  add(session: Session): void {
    const { deviceId } = session.sender;
    const sessions = this.#byDevice.get(deviceId);
    if (sessions === undefined) this.#byDevice.set(deviceId, [session]);
    else sessions.push(session);
    this.#count += 1;
  }

  remove(session: Session): void {
    const { deviceId } = session.sender;
    const sessions = this.#byDevice.get(deviceId);
    const place = sessions?.indexOf(session) ?? -1;
    if (sessions === undefined || place === -1) return;
    sessions.splice(place, 1);
    this.#count -= 1;
    if (sessions.length === 0) this.#byDevice.delete(deviceId);
    const waiting = this.#waiting.get(deviceId);
    if (waiting === undefined) return;
    const left = waiting.filter(({ source }) => this.#hasSession(deviceId, source));
    for (const each of waiting) if (!left.includes(each)) each.done();
    if (left.length > 0) this.#waiting.set(deviceId, left);
    else this.#waiting.delete(deviceId);
  }

  #hasSession(deviceId: number, source: Source | undefined): boolean {
    const sessions = this.#byDevice.get(deviceId) ?? [];
    return sessions.some(({ sender }) => source === undefined || sender.source === source);
  }

  *all(): Iterable<Session> {
    for (const sessions of this.#byDevice.values()) yield* sessions;
  }

  /** The lock's session (not a phone's), during a takeover the newest; undefined while the lock is not connected. */
  ofLock(deviceId: number): Session | undefined {
    let newest: Session | undefined;
    for (const session of this.#byDevice.get(deviceId) ?? [])
      if (session.sender.source === 'lock' && session.phase !== 'authenticated') newest = session;
    return newest;
  }

  /** A device's sessions with this client id: at most one, except during a takeover. */
  ofClient(deviceId: number, clientId: string): Session[] {
    return (this.#byDevice.get(deviceId) ?? []).filter((session) => session.clientId === clientId);
  }

  /** Resolves when the device has no session; with `source`, when the lock itself, or its phones, have none. */
  async whenNone(deviceId: number, source?: Source): Promise<void> {
    if (!this.#hasSession(deviceId, source)) return;
    await new Promise<void>((done) => {
      this.#waiting.set(deviceId, [...(this.#waiting.get(deviceId) ?? []), { source, done }]);
    });
  }

  /**
   * Ends all sessions of a merchant's locks and their phones. As for {@link end}, the caller must have committed before
   * that the merchant is closed. Many sessions are ended in several turns of the event loop.
   */
  async endOfMerchant(merchantId: number): Promise<void> {
    const sessions = [...this.all()].filter(({ sender }) => sender.merchantId === merchantId);
    this.#endCount += 1;
    for (const [index, session] of sessions.entries()) {
      if (index > 0 && index % MAX_ENDED_PER_TURN === 0) await new Promise<void>((resolve) => afterThisTurn(resolve));
      session.end();
    }
  }

  /**
   * Ends the device's sessions for which `fits` returns true, at once. The caller must have committed the change of
   * credentials: then a CONNECT that read the old credentials reads them again (see {@link endCount}).
   */
  end(deviceId: number, fits: (session: Session) => boolean = () => true): void {
    this.#endCount += 1;
    for (const session of [...(this.#byDevice.get(deviceId) ?? [])]) if (fits(session)) session.end();
  }
}
