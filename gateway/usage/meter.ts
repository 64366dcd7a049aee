/**
 * Counts the traffic of locks, connection by connection, in memory; usage.ts stores the counts (interfaces.md §5).
 *
 * A connection is counted from its first byte, although its lock is known only after its CONNECT. A ping costs one
 * addition: the socket counts its own bytes, and the counters are read once a second (of a quiet connection only the
 * received bytes), when the connection closes, and at the end of a month. Each byte belongs to the month in which the
 * socket moved it.
 *
 * Phones use another network and are not counted. Simulated locks are counted as such.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../../proto/clock.js';
import type { Sender } from '../ingest/ingest.js';
import type { UsageDelta } from '../store/contract/usage-store.js';
import { addCounts, isZero, type UsageCounts, ZERO_USAGE } from './counts.js';
import { type Month, monthEndMs, monthOf } from './month.js';
import { RawBytes } from './raw-bytes.js';

/** The messages of one connection. The MQTT code that receives and sends them increments these. */
export interface MessageCounts {
  messagesUp: number;
  messagesDown: number;
}

/** A connection whose traffic is counted. */
interface MeteredConnection {
  readonly bytes: RawBytes;
  readonly messages: MessageCounts;
  /** 1 once its CONNECT is accepted. */
  connections: 0 | 1;
  /**
   * The part of its counts that `#deltas` has already. Updated in place: every connection is read each second or so,
   * and a new object each time would outlive the young generation, so that full garbage collections become frequent.
   */
  readonly recorded: { -readonly [Count in keyof UsageCounts]: number };
  /** Undefined until its CONNECT is accepted. */
  sender: Sender | undefined;
  /** Its counts in the months before the one in which its CONNECT was accepted. */
  earlier: { readonly month: Month; readonly counts: UsageCounts }[];
}

/** The meter of all connections. It counts in memory only. */
export class Meter {
  readonly #clock: Clock;
  #month: Month;
  #monthEndMs: number;
  readonly #openConnections = new Set<MeteredConnection>();
  readonly #connectionOf = new WeakMap<Socket, MeteredConnection>();
  /** Counts that were read from connections and not taken yet ({@link take}). */
  #deltas: UsageDelta[] = [];

  /** `clock` determines the month. A month that has ended never returns, even if the clock is set back. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#month = monthOf(clock.now());
    this.#monthEndMs = monthEndMs(this.#month);
  }

  /** The current month. */
  get month(): Month {
    this.turnMonth();
    return this.#month;
  }

  /** When the current month ends, ms since the epoch. */
  get monthEndMs(): number {
    return this.#monthEndMs;
  }

  /**
   * Starts to count a new connection, before its first byte is counted. With TLS, `raw` is the TCP socket under it.
   *
   * @param headerBytes how many of the received bytes were a balancer's header, which nobody is billed for
   */
  opened(raw: Socket, headerBytes = 0): void {
    this.turnMonth();
    const connection: MeteredConnection = {
      bytes: new RawBytes(raw, headerBytes, () => this.#onClosed(connection)),
      messages: { messagesUp: 0, messagesDown: 0 },
      connections: 0,
      recorded: { ...ZERO_USAGE },
      sender: undefined,
      earlier: [],
    };
    this.#connectionOf.set(raw, connection);
    this.#openConnections.add(connection);
  }

  #onClosed(connection: MeteredConnection): void {
    this.turnMonth();
    this.#record(connection);
    this.#openConnections.delete(connection);
  }

  /**
   * Attributes a connection to the sender of its accepted CONNECT, from the first byte.
   *
   * @returns the connection's message counts, for the caller to increment
   */
  accepted(raw: Socket, sender: Sender): MessageCounts {
    this.turnMonth();
    const connection = this.#connectionOf.get(raw);
    if (connection === undefined) throw new Error('a connection was accepted that was never opened');
    if (sender.source === 'phone') {
      this.#openConnections.delete(connection);
      return connection.messages;
    }
    connection.sender = sender;
    connection.connections = 1;
    for (const { month, counts } of connection.earlier) this.#add(sender, month, counts);
    // A connection that has closed meanwhile is not read again.
    if (!this.#openConnections.has(connection)) this.#record(connection);
    return connection.messages;
  }

  /**
   * Returns and removes all counts since the last call. `'active'` leaves out connections without a message since then:
   * the few bytes of their keep-alives are read with the next `'all'`. So whoever asks for usage does not cause the
   * sockets of ten thousand idle locks to be read.
   */
  take(connections: 'all' | 'active' = 'all'): UsageDelta[] {
    this.turnMonth();
    // Most connections are quiet in most seconds. Reading all counters of ten thousand took 10 ms.
    const mayHaveCounts = connections === 'all' ? (each: MeteredConnection) => !each.bytes.isQuiet : hasMessages;
    for (const connection of this.#openConnections)
      if (hasMessages(connection) || mayHaveCounts(connection)) this.#record(connection);
    const deltas = this.#deltas;
    this.#deltas = [];
    return deltas;
  }

  /** Takes back counts that could not be stored, merged to one delta for each lock and month, which bounds memory. */
  putBack(deltas: readonly UsageDelta[]): void {
    const merged = new Map<string, UsageDelta>();
    for (const delta of [...deltas, ...this.#deltas]) {
      const key = `${delta.month} ${delta.mac} ${delta.merchantId} ${delta.simulated}`;
      merged.set(key, { ...delta, ...addCounts(merged.get(key) ?? ZERO_USAGE, delta) });
    }
    this.#deltas = [...merged.values()];
  }

  /** Starts the next month if the current one has ended. All traffic up to now is recorded in the old one. */
  turnMonth(): void {
    const nowMs = this.#clock.now();
    if (nowMs < this.#monthEndMs) return;
    for (const connection of this.#openConnections) this.#record(connection);
    this.#month = monthOf(nowMs);
    this.#monthEndMs = monthEndMs(this.#month);
  }

  /** Records the connection's traffic since it was last read, in the current month. */
  #record(connection: MeteredConnection): void {
    const { bytes, messages, connections, recorded, sender } = connection;
    // Traffic before the CONNECT is recorded when the CONNECT is accepted, or at the month's end if that is earlier.
    if (sender === undefined && this.#clock.now() < this.#monthEndMs) return;
    bytes.read();
    const { messagesUp, messagesDown } = messages;
    const { up: bytesUp, down: bytesDown } = bytes;
    const counts = {
      messagesUp: messagesUp - recorded.messagesUp,
      messagesDown: messagesDown - recorded.messagesDown,
      connections: connections - recorded.connections,
      bytesUp: bytesUp - recorded.bytesUp,
      bytesDown: bytesDown - recorded.bytesDown,
    };
    if (isZero(counts)) return;
    recorded.messagesUp = messagesUp;
    recorded.messagesDown = messagesDown;
    recorded.connections = connections;
    recorded.bytesUp = bytesUp;
    recorded.bytesDown = bytesDown;
    if (sender === undefined) connection.earlier.push({ month: this.#month, counts });
    else this.#add(sender, this.#month, counts);
  }

  #add({ mac, merchantId, simulated }: Sender, month: Month, counts: UsageCounts): void {
    this.#deltas.push({ month, mac, merchantId, simulated, ...counts });
  }
}

/** Whether a message passed, or the CONNECT was accepted, since the connection was last read. */
function hasMessages({ messages, recorded, connections }: MeteredConnection): boolean {
  return (
    messages.messagesUp !== recorded.messagesUp ||
    messages.messagesDown !== recorded.messagesDown ||
    connections !== recorded.connections
  );
}
