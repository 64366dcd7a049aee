/** What the importer knows of the locks of a recording once all of it is read: for the trace's header. */
import type { TraceHeader, TraceLock } from '../../../../proto/trace/trace.js';
import { UNNAMED_LOCK } from '../../../../proto/trace/trace.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { PowerSettings } from '../../../../proto/wire/ping.js';
import type { RecordedEvent } from '../../../recordings/recording.js';

interface RecordedLock {
  /** Whether the recording has connects or disconnects of the lock. */
  hasConnections: boolean;
  firstMs: number;
  isConnectFirst: boolean;
  firstUplinkMs: number;
  power: PowerSettings | null;
}

/** See the head of this file. */
export class RecordedLocks {
  readonly #locks = new Map<Mac, RecordedLock>();

  get count(): number {
    return this.#locks.size;
  }

  /** How many locks have no connects and disconnects in the recording. */
  get countWithoutConnections(): number {
    return [...this.#locks.values()].filter(({ hasConnections }) => !hasConnections).length;
  }

  note({ event }: RecordedEvent): void {
    const lock = this.#of(event.mac);
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
   * The header. A lock whose first event is not a connect was connected before. Its settings are those of its first
   * uplink.
   */
  header(note: string): TraceHeader {
    const locks = new Map<Mac, TraceLock>();
    for (const [mac, lock] of this.#locks) {
      const connected = lock.hasConnections && !lock.isConnectFirst;
      locks.set(mac, { ...UNNAMED_LOCK, power: lock.power ?? UNNAMED_LOCK.power, connected });
    }
    return { note, locks };
  }

  #of(mac: Mac): RecordedLock {
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
