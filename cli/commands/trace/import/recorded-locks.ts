/** Collects from all events of a recording what the trace's header needs to know about each lock. */
import type { TraceHeader, TraceLock } from '../../../../proto/trace/trace.js';
import { UNNAMED_LOCK } from '../../../../proto/trace/trace.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { PowerSettings } from '../../../../proto/wire/ping.js';
import type { RecordedEvent } from '../../../recordings/recording.js';

/** What the recording says about one lock. */
interface RecordedLock {
  /** Whether the recording has connects or disconnects of the lock. */
  hasConnections: boolean;
  /** The time of the lock's first event, ms since the epoch, and whether that event is a connect. */
  firstMs: number;
  isConnectFirst: boolean;
  /**
   * The time of the lock's first uplink (a message of the lock), and the power settings in it; null without an uplink.
   */
  firstUplinkMs: number;
  power: PowerSettings | null;
}

/** The locks of a recording. */
export class RecordedLocks {
  readonly #locks = new Map<Mac, RecordedLock>();

  get count(): number {
    return this.#locks.size;
  }

  /** How many locks have no connects and disconnects in the recording. */
  get countWithoutConnections(): number {
    return [...this.#locks.values()].filter(({ hasConnections }) => !hasConnections).length;
  }

  /** Takes one event into account; events may come in any order. */
  note({ event }: RecordedEvent): void {
    const lock = this.#lockOf(event.mac);
    if (event.event === 'command' || event.source === 'phone') return;
    const isConnect = event.event === 'connect';
    if (isConnect || event.event === 'disconnect') lock.hasConnections = true;
    if (event.atMs < lock.firstMs) {
      lock.firstMs = event.atMs;
      lock.isConnectFirst = isConnect;
    }
    if ((event.event === 'ping' || event.event === 'ack') && event.atMs < lock.firstUplinkMs) {
      lock.firstUplinkMs = event.atMs;
      lock.power = event.uplink.power;
    }
  }

  hasConnections(mac: Mac): boolean {
    return this.#locks.get(mac)?.hasConnections ?? false;
  }

  /**
   * The header. A lock whose first event is not a connect counts as connected before. Its power settings are those of
   * its first uplink.
   */
  header(note: string): TraceHeader {
    const locks = new Map<Mac, TraceLock>();
    for (const [mac, lock] of this.#locks) {
      const connected = lock.hasConnections && !lock.isConnectFirst;
      locks.set(mac, { ...UNNAMED_LOCK, power: lock.power ?? UNNAMED_LOCK.power, connected });
    }
    return { note, locks };
  }

  #lockOf(mac: Mac): RecordedLock {
    let lock = this.#locks.get(mac);
    if (lock === undefined) {
      lock = {
        hasConnections: false,
        firstMs: Number.POSITIVE_INFINITY,
        isConnectFirst: false,
        firstUplinkMs: Number.POSITIVE_INFINITY,
        power: null,
      };
      this.#locks.set(mac, lock);
    }
    return lock;
  }
}
