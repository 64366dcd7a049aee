/**
 * Completes what a recording lacks, event by event in order of time:
 *
 * - Connections. A lock whose connects and disconnects were not recorded is connected from an uplink until its
 *   close-connection ping, or until 150 s after its last uplink (a search for a fix takes 120 s). That end has the
 *   cause `gateway`, which no rule blames on the lock.
 * - Numbers of uplinks. They are two apart, with `dropped` for the numbers between, so that no rule takes two of these
 *   uplinks for neighbours, and none is missed.
 */
import { Seconds } from '../../../../proto/clock.js';
import type { TraceConnect, TraceDisconnect } from '../../../../proto/trace/trace.js';
import { traceEventLine } from '../../../../proto/trace/writer.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { RecordedEvent } from '../../../recordings/recording.js';
import type { RecordedLocks } from './recorded-locks.js';

const IDLE_MS = Seconds(150);
const INVENTED_BOOT = 1;

/** What the completer needs to know of an event whose line is already written. */
export interface StoredEvent {
  readonly atMs: number;
  readonly mac: Mac;
  readonly role: 'uplink' | 'close' | 'other';
  readonly isNumbered: boolean;
  readonly line: string;
}

/** The event with its line in the trace. Numbers that the recording lacks come later. */
export function storedEvent({ event, raw, isNumbered }: RecordedEvent): StoredEvent {
  const isOfLock = event.event !== 'command' && event.source === 'lock';
  const isUplink = isOfLock && (event.event === 'ping' || event.event === 'ack');
  const isClose = isUplink && event.event === 'ping' && event.uplink.body.kind === 'close_connection';
  const role = isClose ? 'close' : isUplink ? 'uplink' : 'other';
  return { atMs: event.atMs, mac: event.mac, role, isNumbered, line: traceEventLine(event, raw) };
}

/** See the head of this file. */
export class TraceCompleter {
  readonly #locks: RecordedLocks;
  readonly #write: (line: string) => void;
  /** When connections that the completer began end, the earliest first. */
  readonly #ends = new Map<Mac, number>();
  readonly #numbers = new Map<Mac, number>();
  #numbered = 0;

  constructor(locks: RecordedLocks, write: (line: string) => void) {
    this.#locks = locks;
    this.#write = write;
  }

  /** How many uplinks got numbers. */
  get numberedUplinks(): number {
    return this.#numbered;
  }

  event(stored: StoredEvent): void {
    const { atMs, mac, role } = stored;
    this.#endUntil(atMs);
    const isInferred = role !== 'other' && !this.#locks.hasConnections(mac);
    if (isInferred && !this.#ends.has(mac)) this.#writeEvent({ event: 'connect', mac, source: 'lock', atMs });
    this.#write(stored.isNumbered ? stored.line : this.#withNumbers(stored));
    if (!isInferred) return;
    // Set anew, so that the map stays in the order of the ends.
    this.#ends.delete(mac);
    if (role === 'close') this.#writeEvent({ event: 'disconnect', mac, source: 'lock', atMs, cause: 'closed' });
    else this.#ends.set(mac, atMs + IDLE_MS);
  }

  /** No more events come: ends the connections that the completer began. */
  end(): void {
    this.#endUntil(Number.POSITIVE_INFINITY);
  }

  #endUntil(atMs: number): void {
    for (const [mac, endMs] of this.#ends) {
      if (endMs > atMs) return;
      this.#ends.delete(mac);
      this.#writeEvent({ event: 'disconnect', mac, source: 'lock', atMs: endMs, cause: 'gateway' });
    }
  }

  #writeEvent(event: TraceConnect | TraceDisconnect): void {
    this.#write(traceEventLine(event));
  }

  #withNumbers({ mac, line }: StoredEvent): string {
    const count = (this.#numbers.get(mac) ?? 0) + 1;
    this.#numbers.set(mac, count);
    this.#numbered += 1;
    const { ping, ...members } = JSON.parse(line) as { ping: object };
    const numbered = { ...ping, boot: INVENTED_BOOT, sequence: 2 * count, dropped: count };
    return JSON.stringify({ ...members, ping: numbered });
  }
}
