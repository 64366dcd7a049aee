/**
 * Collects which locks change while streams are open, and makes batches of changes from them. An event of the gateway
 * costs one entry in a set; the locks are read later, at most {@link CHANGES_PER_SLICE} in a turn of the event loop, so
 * that pings are never delayed for long.
 */
import type { Clock, Timer } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { GatewayEventMap, GatewayEvents } from '../events.js';
import type { LockDeparted } from '../lock-events.js';
import type { Store } from '../store/contract/store.js';
import type { Delta } from './audience.js';
import { ChangeLog } from './change-log.js';
import { LiveBatch, LiveDelivery } from './live-batch.js';
import { LiveReads, type LiveReadsParts } from './live-reads.js';
import { FLUSH_DELAY, WaitingChanges } from './waiting-changes.js';

/** How many changed locks are read and rendered in one turn, while pings wait: for two audiences some 1 ms. */
const CHANGES_PER_SLICE = 25;
/** How many slices streams get in one write: some 150 KB. A write to 20 streams takes as long as a slice. */
const SLICES_PER_DELIVERY = 8;

export interface CollectorParts extends Omit<LiveReadsParts, 'store'> {
  readonly store: Pick<Store, 'readDevices' | 'findDevices' | 'findDeviceId'>;
  readonly events: Pick<GatewayEvents, 'on' | 'off'>;
  /** Measures intervals: real time. */
  readonly clock: Clock;
}

/** What the collector hands over. */
export interface CollectorOutput {
  /** Called with each batch when it is made, in the turn in which its locks were read: renders it. */
  readonly render: (batch: LiveBatch) => void;
  /** Called with batches that were rendered, all in order. */
  readonly deliver: (delivery: LiveDelivery) => void;
}

type ListenedName = 'locks-changed' | 'locks-added' | 'lock-departed' | 'command';

export class ChangeCollector {
  /** What streams read besides the batches: snapshots, and the changes that a client missed. */
  readonly reads: LiveReads;
  readonly #parts: CollectorParts;
  readonly #output: CollectorOutput;
  /** Batches that were made and not delivered yet. */
  #batches: LiveBatch[] = [];
  readonly #log = new ChangeLog();
  readonly #waiting: WaitingChanges;
  /** Locks that were added since the last flush; their device ids are still to be looked up. */
  readonly #added = new Set<Mac>();
  /** Locks that were moved to another merchant or taken out of service since the last flush. */
  readonly #departed: LockDeparted[] = [];
  /** The ids of the merchants that have had streams; undefined if a stream has all locks. */
  #merchants: Set<number> | undefined = new Set();
  #timer: Timer | undefined;
  #isFlushing = false;
  #isStopped = false;
  readonly #listeners: { readonly [Name in ListenedName]: (event: GatewayEventMap[Name][0]) => void } = {
    'locks-changed': ({ locks, isEdit = false }) => {
      for (const { deviceId } of locks) this.#waiting.note(deviceId, isEdit);
      this.#schedule();
    },
    'locks-added': ({ macs }) => {
      for (const mac of macs) this.#added.add(mac);
      this.#schedule();
    },
    'lock-departed': (departure) => {
      this.#departed.push(departure);
      this.#schedule();
    },
    command: ({ record }) => {
      this.#waiting.note(record.deviceId, true);
      this.#schedule();
    },
  };

  /** Starts listening. */
  constructor(parts: CollectorParts, output: CollectorOutput) {
    this.#parts = parts;
    this.#output = output;
    this.#waiting = new WaitingChanges(parts.states);
    this.reads = new LiveReads(parts, this.#log, ({ id, merchantId }, runNowMs) => {
      this.#waiting.noteShown(id, merchantId, runNowMs);
    });
    // TypeScript does not see that each listener takes the event of its own name.
    for (const name of Object.keys(this.#listeners) as ListenedName[])
      parts.events.on(name, this.#listeners[name] as never);
  }

  /** Collects the changes of this merchant's locks too; of all locks if undefined. */
  include(merchantId: number | undefined): void {
    if (merchantId === undefined) this.#merchants = undefined;
    else this.#merchants?.add(merchantId);
  }

  /** Stops listening. */
  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.reads.stop();
    for (const name of Object.keys(this.#listeners) as ListenedName[])
      this.#parts.events.off(name, this.#listeners[name] as never);
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isFlushing || this.#isStopped) return;
    this.#timer = this.#parts.clock.after(FLUSH_DELAY, () => {
      this.#timer = undefined;
      this.#isFlushing = true;
      // If the store can't be read, the changes stay in the sets, and the next flush reads them.
      void this.#flush()
        .catch(() => undefined)
        .then(() => {
          this.#isFlushing = false;
          if (!this.#isStopped) this.#deliver();
          if (this.#waiting.size + this.#added.size + this.#departed.length > 0) this.#schedule();
        });
    });
  }

  async #flush(): Promise<void> {
    this.#flushDepartures();
    for (const mac of this.#added) {
      const deviceId = await this.#parts.store.findDeviceId(mac);
      this.#added.delete(mac);
      if (deviceId !== null) this.#waiting.note(deviceId, true);
    }
    const isWanted = (merchantId: number): boolean => this.#merchants?.has(merchantId) !== false;
    const due = this.#waiting.take(this.#parts.clock.now(), this.#parts.runClock.now(), isWanted);
    for (let start = 0; start < due.length; start += CHANGES_PER_SLICE) {
      await this.#parts.turns.next();
      if (this.#isStopped) return;
      await this.#flushSlice(due.slice(start, start + CHANGES_PER_SLICE));
      if (this.#batches.length >= SLICES_PER_DELIVERY) this.#deliver();
    }
  }

  #addBatch(deltas: readonly Delta[]): void {
    const batch = new LiveBatch(deltas);
    this.#output.render(batch);
    this.#batches.push(batch);
  }

  #deliver(): void {
    const batches = this.#batches;
    this.#batches = [];
    if (batches.length > 0) this.#output.deliver(new LiveDelivery(batches));
  }

  #flushDepartures(): void {
    const departed = this.#departed.splice(0);
    if (departed.length === 0) return;
    const deltas = departed.map(({ deviceId, mac, merchantId }) => {
      this.#waiting.forget(deviceId);
      return this.#log.noteDeparture(deviceId, mac, merchantId);
    });
    this.#addBatch(deltas);
  }

  async #flushSlice(deviceIds: readonly number[]): Promise<void> {
    // Deleted before the read, so that a lock that changes during the read is read again.
    for (const deviceId of deviceIds) this.#waiting.remove(deviceId);
    const locks = await this.reads.locksOf(deviceIds).catch((error: unknown) => {
      for (const deviceId of deviceIds) this.#waiting.note(deviceId, true);
      throw error;
    });
    const [nowMs, runNowMs] = [this.#parts.clock.now(), this.#parts.runClock.now()];
    const deltas: Delta[] = [];
    for (const deviceId of deviceIds) {
      const lock = locks.get(deviceId);
      if (lock === undefined) continue;
      const { merchantId } = lock.device;
      this.#waiting.noteSent(deviceId, merchantId, nowMs, runNowMs);
      if (this.#merchants?.has(merchantId) === false) continue;
      deltas.push({ ...this.#log.noteChange(deviceId, merchantId), lock });
    }
    if (deltas.length > 0) this.#addBatch(deltas);
  }
}
