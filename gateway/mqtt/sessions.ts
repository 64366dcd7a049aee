/**
 * The authenticated connections of this moment: whose they are, how to end them. A lock has at most one of its own, and
 * phones that act for it have theirs beside it.
 */
import type { DisconnectCause } from '../../proto/power-judge-event.js';
import type { Sender } from '../ingest.js';
import type { MessageCounts } from '../usage/meter.js';
import type { Connection } from './listener.js';

/** An authenticated connection. */
export interface Session {
  readonly sender: Sender;
  readonly clientId: string;
  readonly connection: Connection;
  /** Its messages so far, for the bill. */
  readonly messages: MessageCounts;
  /** Its CONNACK is out. */
  isReady: boolean;
  /** Why it ends, once that is known; the first to say so counts. */
  cause: DisconnectCause | undefined;
  /** It has subscribed to `down`: what is sent now is heard. */
  isListening: boolean;
  /**
   * Sends one message down at QoS 1, to this client only. Resolves when it has been handed to the socket, or when that
   * is no longer possible; what a lock makes of it comes back as an uplink.
   */
  readonly send: (payload: Buffer) => Promise<void>;
}

export class Sessions {
  readonly #byDevice = new Map<number, Set<Session>>();
  #count = 0;

  /** How many there are. */
  get count(): number {
    return this.#count;
  }

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
    if (known.size === 0) this.#byDevice.delete(deviceId);
    this.#count -= 1;
  }

  *all(): Iterable<Session> {
    for (const sessions of this.#byDevice.values()) yield* sessions;
  }

  /** The lock's own; undefined while it isn't connected. */
  ofLock(deviceId: number): Session | undefined {
    for (const session of this.#byDevice.get(deviceId) ?? []) if (session.sender.source === 'lock') return session;
    return undefined;
  }

  /** Those of a device under one client id: one, but for the moment of a takeover. */
  ofClient(deviceId: number, clientId: string): Session[] {
    return [...(this.#byDevice.get(deviceId) ?? [])].filter((session) => session.clientId === clientId);
  }

  /** Ends those of a device that `fits` lets through: our own doing, at once. */
  end(deviceId: number, fits: (session: Session) => boolean = () => true): void {
    for (const session of [...(this.#byDevice.get(deviceId) ?? [])]) {
      if (!fits(session)) continue;
      session.cause ??= 'gateway';
      session.connection.stream.destroy();
    }
  }
}
