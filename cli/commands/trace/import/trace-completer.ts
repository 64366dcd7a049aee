/**
 * Adds to a trace what its recording lacks, event by event in order of time:
 *
 * - Connections. A lock whose connects and disconnects were not recorded counts as connected from an uplink until its
 *   close-connection ping, or until 150 s after its last uplink (a search for a GPS fix takes 120 s). A connection that
 *   ends this way has the cause `gateway`, for which no rule blames the lock.
 * - Numbers of uplinks. Invented sequence numbers are two apart, and `dropped` counts the numbers between. So no rule
 *   assumes that two of these uplinks follow each other directly, and no rule reports a missing uplink.
 */
import { Seconds } from '../../../../proto/clock.js';
import type { TraceConnect, TraceDisconnect } from '../../../../proto/trace/trace.js';
import { traceEventLine } from '../../../../proto/trace/writer.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { RecordedEvent } from '../../../recordings/recording.js';
import type { RecordedLocks } from './recorded-locks.js';

/** An inferred connection ends this long after the lock's last uplink. */
const IDLE_MS = Seconds(150);
/** The boot number of uplinks that had no numbers. */
const INVENTED_BOOT = 1;

/** An event as the sorter stores it: its line in the trace, and what the completer needs to know about it. */
export interface StoredEvent {
  readonly atMs: number;
  readonly mac: Mac;
  /** `close` is a close-connection ping, `uplink` any other uplink of a lock. */
  readonly role: 'uplink' | 'close' | 'other';
  /** Whether it is a ping whose boot and sequence the recording does not have. */
  readonly lacksUplinkNumbers: boolean;
  readonly line: string;
}

/** Converts an event. Missing numbers are added later, when the events are in order. */
export function storedEvent({ event, raw, lacksUplinkNumbers = false }: RecordedEvent): StoredEvent {
  const isOfLock = event.event !== 'command' && event.source === 'lock';
  const isUplink = isOfLock && (event.event === 'ping' || event.event === 'ack');
  const isClose = isUplink && event.event === 'ping' && event.uplink.body.kind === 'close_connection';
  const role = isClose ? 'close' : isUplink ? 'uplink' : 'other';
  return { atMs: event.atMs, mac: event.mac, role, lacksUplinkNumbers, line: traceEventLine(event, raw) };
}

/** Writes the events of a trace, with inferred connections and invented numbers. */
export class TraceCompleter {
  readonly #locks: RecordedLocks;
  readonly #write: (line: string) => void;
  /** When inferred connections end, by lock, the earliest first. */
  readonly #ends = new Map<Mac, number>();
  /** How many uplinks of each lock got invented numbers. */
  readonly #inventedByLock = new Map<Mac, number>();
  #numberedUplinks = 0;

  constructor(locks: RecordedLocks, write: (line: string) => void) {
    this.#locks = locks;
    this.#write = write;
  }

  /** How many uplinks got numbers. */
  get numberedUplinks(): number {
    return this.#numberedUplinks;
  }

  /** Writes an event and the connects and disconnects that are due before it. */
  event(stored: StoredEvent): void {
    const { atMs, mac, role } = stored;
    this.#endUntil(atMs);
    const isInferred = role !== 'other' && !this.#locks.hasConnections(mac);
    if (isInferred && !this.#ends.has(mac)) this.#writeEvent({ event: 'connect', mac, source: 'lock', atMs });
    this.#write(stored.lacksUplinkNumbers ? this.#withNumbers(stored) : stored.line);
    if (!isInferred) return;
    // Deleted and added again, because a map keeps the order of insertion, which is then the order of the ends.
    this.#ends.delete(mac);
    if (role === 'close') this.#writeEvent({ event: 'disconnect', mac, source: 'lock', atMs, cause: 'closed' });
    else this.#ends.set(mac, atMs + IDLE_MS);
  }

  /** Call after the last event: ends the inferred connections. */
  end(): void {
    this.#endUntil(Number.POSITIVE_INFINITY);
  }

  /** Writes the disconnects of inferred connections that end at or before a time. */
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

  /** The ping's line with the lock's next invented numbers. */
  #withNumbers({ mac, line }: StoredEvent): string {
    const count = (this.#inventedByLock.get(mac) ?? 0) + 1;
    this.#inventedByLock.set(mac, count);
    this.#numberedUplinks += 1;
    const { ping, ...members } = JSON.parse(line) as { ping: object };
    const numbered = { ...ping, boot: INVENTED_BOOT, sequence: 2 * count, dropped: count };
    return JSON.stringify({ ...members, ping: numbered });
  }
}
