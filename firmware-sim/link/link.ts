/**
 * A lock's connection to the gateway. It carries messages, not bytes: mqtt-link.ts encodes them, memory-link.ts need
 * not.
 *
 * A link connects, breaks and connects again as often as its lock asks. It never retries by itself, since the power
 * model decides when to try again (protocol.md §2), and it reports nothing more about a connection that it has dropped.
 */
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';

/** Why a connection failed or ended. `code` is the CONNACK's return code, if there was one. */
export interface LinkTrouble {
  readonly message: string;
  readonly code?: number;
}

/** What a link reports to its lock. */
export interface LinkEvents {
  /** The connection is established and commands can arrive. */
  connected(): void;
  /** The attempt that `connect` started has failed. */
  failed(trouble: LinkTrouble): void;
  /** The connection has ended: closed by the lock (null), or broken. */
  disconnected(trouble: LinkTrouble | null): void;
  /** The gateway has taken responsibility for the uplink (PUBACK). */
  acknowledged(uplink: Uplink): void;
  command(downlink: Downlink): void;
  /** Something arrived that is not a command. */
  unreadable(message: string): void;
}

export interface Link {
  /** Starts a connection; `connected` or `failed` follows. */
  connect(): void;
  /** Sends one uplink; `acknowledged` follows, unless the connection ends first. */
  publish(uplink: Uplink): void;
  /** Closes the connection properly; `ended` follows. */
  disconnect(): void;
  /** Drops the connection silently; nothing follows. */
  drop(): void;
  /**
   * Breaks the connection as a network does: at once or, where it carries bytes, after so many more of them. What is
   * published from now on arrives in part or not at all; `ended` follows.
   */
  cut(afterBytes: number): void;
  /**
   * Kills the connection while the other side goes on believing in it, until the next one takes it over or its
   * keepalive expires. Nothing follows.
   */
  abandon(): void;
  /** Ends the link for good, within a second, whatever its state; nothing follows. */
  close(): Promise<void>;
}

/** Makes the link of a lock. */
export type OpenLink = (mac: Mac, events: LinkEvents) => Link;
