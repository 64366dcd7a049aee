/**
 * Knows which locks belong to closed merchants. Such locks can't connect, so their silence needs nobody's attention: no
 * notices are made about them, and they are not counted. Read at the start and after every write that may change it;
 * writes nothing.
 */
import type { Mac } from '../../../proto/wire/mac.js';
import type { Store } from '../../store/contract/store.js';
import type { KnownLock } from '../locks.js';

/** Number of locks that are read in one slice. */
const LOCKS_PER_SLICE = 1_000;

type MerchantLocks = Pick<Store, 'listMerchants' | 'readDevices'>;

export class ClosedLocks {
  readonly #store: MerchantLocks;
  #macs: ReadonlySet<Mac> = new Set();
  #reading: Promise<void> | undefined;
  /** Whether something was written since the reading began. */
  #isOutdated = false;
  #onChange: () => void = () => undefined;

  private constructor(store: MerchantLocks) {
    this.#store = store;
  }

  /** Rejects if the store can't be read. */
  static async read(store: MerchantLocks): Promise<ClosedLocks> {
    const closed = new ClosedLocks(store);
    closed.#macs = await closed.#readMacs();
    return closed;
  }

  /** Sets what is called when other locks belong to closed merchants. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  has(mac: Mac): boolean {
    return this.#macs.has(mac);
  }

  /** The locks of open merchants. */
  *openOnly<Lock extends Pick<KnownLock, 'mac'>>(locks: Iterable<Lock>): Iterable<Lock> {
    for (const lock of locks) if (!this.#macs.has(lock.mac)) yield lock;
  }

  /**
   * Must be called after each write of these locks; without MACs, after a write that may change any lock or merchant.
   * No lock is moved to a closed merchant, so other locks don't matter. If the store fails, the next call reads again.
   */
  changed(macs?: readonly Mac[]): void {
    if (macs !== undefined && !macs.some((mac) => this.#macs.has(mac))) return;
    this.#isOutdated = true;
    this.#reading ??= this.#update().finally(() => {
      this.#reading = undefined;
    });
  }

  async #update(): Promise<void> {
    try {
      while (this.#isOutdated) {
        this.#isOutdated = false;
        const before = this.#macs;
        this.#macs = await this.#readMacs();
        // Without closed merchants, before and now, nothing has changed.
        if (this.#macs.size + before.size > 0) this.#onChange();
      }
    } catch {
      // health/store.ts reports a failing store. The last reading stays.
    }
  }

  async #readMacs(): Promise<ReadonlySet<Mac>> {
    const macs = new Set<Mac>();
    for (const { id: merchantId, closedAtMs } of await this.#store.listMerchants()) {
      if (closedAtMs === null) continue;
      for (let afterMac: Mac | undefined; ; ) {
        const slice = await this.#store.readDevices({ merchantId, afterMac, limit: LOCKS_PER_SLICE });
        for (const { mac } of slice) macs.add(mac);
        if (slice.length < LOCKS_PER_SLICE) break;
        afterMac = slice.at(-1)?.mac;
      }
    }
    return macs;
  }
}
