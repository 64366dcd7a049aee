/**
 * Counts what locks use, connection by connection, into the month under way.
 *
 * A connection is counted from its first byte, though whose it is turns out with its CONNECT. Nothing here is asked on
 * the way of a ping: the socket counts its bytes itself and a message is one addition, and both are read once a second,
 * at the connection's end, and at the end of a month. Each byte belongs to the month in which the socket moved it.
 *
 * Phones use a network of their own and are not counted. Simulated locks are counted as such.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../../proto/clock.js';
import type { Sender } from '../ingest/ingest.js';
import type { UsageDelta } from '../store/contract/usage-store.js';
import { addCounts, isNothing, NO_USAGE, type UsageCounts } from './counts.js';
import { type Month, monthEndMs, monthOf } from './month.js';
import { RawBytes } from './raw-bytes.js';

/** The messages of one connection, counted by whoever moves them. */
export interface MessageCounts {
  messagesUp: number;
  messagesDown: number;
}

/** A connection that is counted. */
interface Metered {
  readonly bytes: RawBytes;
  readonly messages: MessageCounts;
  /** 1 once its CONNECT is accepted. */
  connections: 0 | 1;
  /** What has been booked of it. */
  booked: UsageCounts;
  /** Undefined until its CONNECT is accepted. */
  sender: Sender | undefined;
  /** What it moved in months before the one in which its CONNECT was accepted. */
  earlier: { readonly month: Month; readonly counts: UsageCounts }[];
}

export class Meter {
  readonly #clock: Clock;
  #month: Month;
  #monthEndMs: number;
  readonly #open = new Set<Metered>();
  readonly #meteredOf = new WeakMap<Socket, Metered>();
  #booked: UsageDelta[] = [];

  /** `clock` decides which month it is. A month that is over does not come back, whatever somebody sets it to. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#month = monthOf(clock.now());
    this.#monthEndMs = monthEndMs(this.#month);
  }

  /** The month that is counted into. */
  get month(): Month {
    this.keepMonth();
    return this.#month;
  }

  /** When that month ends, ms since the epoch. */
  get monthEndMs(): number {
    return this.#monthEndMs;
  }

  /** A connection began: not one byte of it has been read. Over TLS, `raw` is the socket under it. */
  opened(raw: Socket): void {
    this.keepMonth();
    const metered: Metered = {
      bytes: new RawBytes(raw, () => this.#ended(metered)),
      messages: { messagesUp: 0, messagesDown: 0 },
      connections: 0,
      booked: NO_USAGE,
      sender: undefined,
      earlier: [],
    };
    this.#meteredOf.set(raw, metered);
    this.#open.add(metered);
  }

  #ended(metered: Metered): void {
    this.keepMonth();
    this.#book(metered);
    this.#open.delete(metered);
  }

  /** Its CONNECT was accepted: it is this sender's from its first byte. The answer's counts are to be counted up. */
  accepted(raw: Socket, sender: Sender): MessageCounts {
    this.keepMonth();
    const metered = this.#meteredOf.get(raw);
    if (metered === undefined) throw new Error('a connection was accepted that was never opened');
    if (sender.source === 'phone') {
      this.#open.delete(metered);
      return metered.messages;
    }
    metered.sender = sender;
    metered.connections = 1;
    for (const { month, counts } of metered.earlier) this.#add(sender, month, counts);
    // One that has closed meanwhile won't be read again.
    if (!this.#open.has(metered)) this.#book(metered);
    return metered.messages;
  }

  /** All that was counted since it was last taken, up to this moment. */
  take(): UsageDelta[] {
    this.keepMonth();
    this.#bookAll();
    const deltas = this.#booked;
    this.#booked = [];
    return deltas;
  }

  /** Takes back what could not be stored: one piece for each lock and month, however long the store fails. */
  putBack(deltas: readonly UsageDelta[]): void {
    const merged = new Map<string, UsageDelta>();
    for (const delta of [...deltas, ...this.#booked]) {
      const key = `${delta.month} ${delta.mac} ${delta.merchantId} ${delta.simulated}`;
      merged.set(key, { ...delta, ...addCounts(merged.get(key) ?? NO_USAGE, delta) });
    }
    this.#booked = [...merged.values()];
  }

  /** Ends the month where it is over: what was moved until now was moved in it. */
  keepMonth(): void {
    const nowMs = this.#clock.now();
    if (nowMs < this.#monthEndMs) return;
    this.#bookAll();
    this.#month = monthOf(nowMs);
    this.#monthEndMs = monthEndMs(this.#month);
  }

  #bookAll(): void {
    for (const metered of this.#open) this.#book(metered);
  }

  /** Books what the connection moved since it was last read, into the month under way. */
  #book(metered: Metered): void {
    const { bytes, messages, connections, booked, sender } = metered;
    // What a stranger moved is booked when it turns out who he is, or when the month ends before that.
    if (sender === undefined && this.#clock.now() < this.#monthEndMs) return;
    const { messagesUp, messagesDown } = messages;
    const moved = { messagesUp, messagesDown, connections, bytesUp: bytes.up, bytesDown: bytes.down };
    const counts = {
      messagesUp: messagesUp - booked.messagesUp,
      messagesDown: messagesDown - booked.messagesDown,
      connections: connections - booked.connections,
      bytesUp: moved.bytesUp - booked.bytesUp,
      bytesDown: moved.bytesDown - booked.bytesDown,
    };
    if (isNothing(counts)) return;
    metered.booked = moved;
    if (sender === undefined) metered.earlier.push({ month: this.#month, counts });
    else this.#add(sender, this.#month, counts);
  }

  #add({ mac, merchantId, simulated }: Sender, month: Month, counts: UsageCounts): void {
    this.#booked.push({ month, mac, merchantId, simulated, ...counts });
  }
}
