/**
 * The interface of a link: a simulated lock's way to the gateway, over one connection after another. It carries
 * messages: mqtt-link.ts encodes them to bytes, memory-link.ts passes them on within the process.
 *
 * A lock may connect again after a connection has broken. A link never retries by itself, since the power model decides
 * when to try again (protocol.md §2). A link reports nothing more about a connection that it has dropped.
 */
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';

/** Why an attempt to connect failed or a connection broke. `code` is the CONNACK's return code, if there was one. */
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
  /** The lock has closed the connection (null), or the connection broke. */
  disconnected(trouble: LinkTrouble | null): void;
  /** The gateway has acknowledged the uplink (PUBACK). */
  acknowledged(uplink: Uplink): void;
  command(downlink: Downlink): void;
  /** A message arrived that is not a command. */
  unreadable(message: string): void;
}

/** See the top of this file. */
export interface Link {
  /** Starts a connection; `connected` or `failed` follows. */
  connect(): void;
  /** Sends one uplink; `acknowledged` follows, unless the connection closes first. */
  publish(uplink: Uplink): void;
  /** Closes the connection properly; `disconnected` follows. */
  disconnect(): void;
  /** Drops the connection silently; no event follows. */
  drop(): void;
  /**
   * Breaks the connection as a network does: at once or, if the link carries bytes, after that many more bytes. Uplinks
   * published from now on arrive in part or not at all. `disconnected` follows.
   */
  breakConnection(afterBytes: number): void;
  /**
   * Stops using the connection, while the gateway still considers it open until the lock's next connection takes it
   * over or its keepalive expires. No event follows.
   */
  abandon(): void;
  /** Closes the link permanently, in any state, within a second. No event follows. */
  close(): Promise<void>;
}

/** Makes the link of a lock. */
export type OpenLink = (mac: Mac, events: LinkEvents) => Link;
