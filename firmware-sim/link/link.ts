/**
 * A lock's line to the other side. It carries messages, not bytes: mqtt-link.ts encodes them, memory-link.ts need not.
 *
 * A link connects, breaks and connects again as often as its lock asks. It never retries by itself, since when to try
 * again is the power model's business (protocol.md §2), and it says nothing more of a connection that it has dropped.
 */
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';

/** Why a connection did not come about or ended. `code` is the CONNACK's return code where there was one. */
export interface LinkTrouble {
  readonly message: string;
  readonly code?: number;
}

/** What a link tells its lock. */
export interface LinkEvents {
  /** The connection stands and commands can come. */
  connected(): void;
  /** The try that `connect` began came to nothing. */
  failed(trouble: LinkTrouble): void;
  /** The connection ended: as asked (null), or by itself. */
  ended(trouble: LinkTrouble | null): void;
  /** The uplink is the other side's now (PUBACK). */
  acknowledged(uplink: Uplink): void;
  command(downlink: Downlink): void;
  /** Something came down that is no command. */
  unreadable(message: string): void;
}

export interface Link {
  /** Begins a connection; `connected` or `failed` follows. */
  connect(): void;
  /** Sends one uplink; `acknowledged` follows, unless the connection ends first. */
  publish(uplink: Uplink): void;
  /** Ends the connection in good order; `ended` follows. */
  disconnect(): void;
  /** Lets the connection die without a word to either side: nothing follows. */
  drop(): void;
  /**
   * Breaks the connection as a network does: at once, or when so many more bytes are on their way where it carries
   * bytes. What is published from now on arrives in part or not at all; `ended` follows.
   */
  cut(afterBytes: number): void;
  /**
   * The connection dies without a word to the other side, which goes on believing in it until the next one takes it
   * over, or its keepalive runs out. Nothing follows.
   */
  abandon(): void;
  /** Ends for good, within a second, whatever the state; nothing follows. */
  close(): Promise<void>;
}

/** Makes a lock's link. */
export type OpenLink = (mac: Mac, events: LinkEvents) => Link;
