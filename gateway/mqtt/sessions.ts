/**
 * The authenticated connections of this moment: whose they are, how to end them. A lock has at most one of its own, and
 * phones that act for it have theirs beside it.
 */
import type { DisconnectCause } from '../../proto/power/judge/event.js';
import type { Sender } from '../ingest/ingest.js';
import type { MessageCounts } from '../usage/meter.js';
import type { Connection } from './listener.js';

/** An authenticated connection. */
export interface Session {
  readonly sender: Sender;
  readonly clientId: string;
  readonly connection: Connection;
  /** When its credential ends, ms since the epoch by the wall's clock; null where it does not. */
  readonly expiresAtMs: number | null;
  /** Its messages so far, for the bill. */
  readonly messages: MessageCounts;
  /** Its CONNACK is out. */
  isReady: boolean;
  /** Why it ends, once that is known; the first to say so counts. */
  cause: DisconnectCause | undefined;
  /** It has subscribed to `down`: what is sent now is heard. */
  isListening: boolean;
  /** It has unsubscribed from `down`, and has not subscribed again. */
  hasUnsubscribed: boolean;
  /** We have ended it: nothing that it sent is taken any more. */
  isEnded: boolean;
  /**
   * Sends one message down at QoS 1, to this client only. Resolves when it has been handed to the socket, or when that
   * is no longer possible; what a lock makes of it comes back as an uplink.
   */
  readonly send: (payload: Buffer) => Promise<void>;
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
   * How often {@link end} was called. Who authenticates reads it before and after: where it changed, what was read of
   * the credentials may have been withdrawn meanwhile.
   */
  get ends(): number {
    return this.#ends;
  }

  /** From the moment that it is authenticated, so that {@link end} misses none. */
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

  /** The lock's own, the newest at the moment of a takeover; undefined while it isn't connected. */
  ofLock(deviceId: number): Session | undefined {
    let newest: Session | undefined;
    for (const session of this.#byDevice.get(deviceId) ?? [])
      if (session.sender.source === 'lock' && session.isReady) newest = session;
    return newest;
  }

  /** Those of a device under one client id: one, but for the moment of a takeover. */
  ofClient(deviceId: number, clientId: string): Session[] {
    return [...(this.#byDevice.get(deviceId) ?? [])].filter((session) => session.clientId === clientId);
  }

  /** Resolves when a device has none. */
  async none(deviceId: number): Promise<void> {
    if (!this.#byDevice.has(deviceId)) return;
    await new Promise<void>((done) => {
      this.#waiting.set(deviceId, [...(this.#waiting.get(deviceId) ?? []), done]);
    });
  }

  /**
   * Ends those of a device that `fits` lets through: our own doing, at once. What they are ended for is committed by
   * then, so that a CONNECT which reads the credentials now is right, and one that read them before reads again.
   */
  end(deviceId: number, fits: (session: Session) => boolean = () => true): void {
    this.#ends += 1;
    for (const session of [...(this.#byDevice.get(deviceId) ?? [])]) {
      if (!fits(session)) continue;
      session.cause ??= 'gateway';
      session.isEnded = true;
      session.connection.stream.destroy();
    }
  }
}
