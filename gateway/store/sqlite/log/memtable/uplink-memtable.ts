/**
 * The newest uplinks by key (credential, boot, sequence) and by lock: those that are not in the two indexes yet. The
 * log is written in the order of arrival, but is also read by key and by lock. Writing each uplink into its lock's page
 * of an index at once would be the largest cost of all. So uplinks are flushed into the indexes later, in sorted runs
 * with many uplinks of each lock, and are found here until then.
 *
 * There are two runs: one is being flushed, the other grows. The thread that writes the log has the authoritative
 * memtable; the reading side of the store has a copy, which is updated after each commit.
 */
import type { RunSize } from '../../../contract/store-options.js';
import { UPLINK_WORD, wordsOf } from '../../../log/packed-commit.js';
import { HintList } from './hint-list.js';
import { IdList } from './id-list.js';
import { KeyList } from './key-list.js';

/**
 * The default size of a run. With 1,000 locks, 50 uplinks of each are written into their pages together. The maximum is
 * limited since two runs must fit in memory and are loaded after a crash.
 */
export const DEFAULT_RUN_SIZE: RunSize = { minUplinks: 50_000, uplinksPerCredential: 20, maxUplinks: 200_000 };

/** Consecutive uplinks of the log. */
export class UplinkRun {
  /** Keys by credential id. */
  readonly keys = new Map<number, KeyList>();
  /** Uplink ids by device id. */
  readonly devices = new Map<number, IdList>();
  /** Only in the thread that writes the log, and only of uplinks that it appended itself. */
  readonly hints = new HintList();
  count = 0;
  lastId = 0;

  add(deviceId: number, credentialId: number, boot: number, sequence: number, id: number): void {
    let keys = this.keys.get(credentialId);
    if (keys === undefined) {
      keys = new KeyList();
      this.keys.set(credentialId, keys);
    }
    keys.add(boot, sequence, id);
    let ids = this.devices.get(deviceId);
    if (ids === undefined) {
      ids = new IdList();
      this.devices.set(deviceId, ids);
    }
    ids.add(id);
    this.count += 1;
    this.lastId = id;
  }

  /** Whether the run is to be flushed ({@link RunSize}). */
  isFull({ minUplinks, uplinksPerCredential, maxUplinks }: RunSize): boolean {
    return (
      this.count >= minUplinks && (this.count >= maxUplinks || this.count >= this.keys.size * uplinksPerCredential)
    );
  }

  /** Removes the uplinks of a failed transaction: `id` and higher ids. */
  dropFrom(id: number): void {
    for (const keys of this.keys.values()) keys.dropFrom(id);
    this.count = 0;
    this.lastId = 0;
    for (const ids of this.devices.values()) {
      ids.dropFrom(id);
      this.count += ids.length;
      this.lastId = Math.max(this.lastId, ids.last);
    }
  }
}

/** The progress of the flush, which the writer sends to the copy. */
export interface MemtableMark {
  /** The indexes have every uplink up to this id. */
  readonly indexedId: number;
  /** The last uplink of the run that is being flushed; 0 if there is none. */
  readonly runEndId: number;
}

/** The uplinks that are not in the indexes yet. */
export class UplinkMemtable {
  /** The indexes have every uplink up to this id, and maybe some of the run that is being flushed. */
  indexedId: number;
  /** The run that is being flushed into the indexes. */
  flushing: UplinkRun | undefined;
  /** The run to which new uplinks are added. */
  growing = new UplinkRun();
  readonly #highestAssignedId: number;

  /** `highestAssignedId`: the highest id that was ever assigned to an uplink, even a deleted one. */
  constructor(indexedId: number, highestAssignedId: number) {
    this.indexedId = indexedId;
    this.#highestAssignedId = highestAssignedId;
  }

  /**
   * The highest id of an uplink, deleted or not, that this memtable knows of. The database may have higher ids: the
   * copy learns of a commit only when the writer reports it.
   */
  get lastId(): number {
    return Math.max(this.#highestAssignedId, this.indexedId, this.flushing?.lastId ?? 0, this.growing.lastId);
  }

  get count(): number {
    return this.growing.count + (this.flushing?.count ?? 0);
  }

  get mark(): MemtableMark {
    return { indexedId: this.indexedId, runEndId: this.flushing?.lastId ?? 0 };
  }

  /**
   * Adds the uplinks of a stored commit, packed one after the other as packed-commit.ts says, except for repeats, which
   * have no id.
   */
  addPacked(doubles: Float64Array): void {
    for (let start = 0; start < doubles.length; start += wordsOf(doubles[start + UPLINK_WORD.length] as number)) {
      const id = doubles[start + UPLINK_WORD.id] as number;
      if (id === 0) continue;
      this.growing.add(
        doubles[start + UPLINK_WORD.deviceId] as number,
        doubles[start + UPLINK_WORD.credentialId] as number,
        doubles[start + UPLINK_WORD.boot] as number,
        doubles[start + UPLINK_WORD.sequence] as number,
        id,
      );
    }
  }

  /** Starts to flush the growing run. */
  startFlush(): UplinkRun {
    const run = this.growing;
    this.flushing = run;
    this.growing = new UplinkRun();
    return run;
  }

  /** Drops the flushed run, which the indexes now have completely. */
  finishFlush(): void {
    this.indexedId = this.flushing?.lastId ?? this.indexedId;
    this.flushing = undefined;
  }

  /** Updates this copy to the state of the writer's memtable. */
  follow({ indexedId, runEndId }: MemtableMark): void {
    for (;;) {
      if (this.flushing !== undefined && this.flushing.lastId <= indexedId) this.finishFlush();
      // The writer no longer adds to a run that ends at `runEndId` or earlier, so a copy that ends there is complete.
      const isComplete = this.growing.count > 0 && this.growing.lastId <= Math.max(indexedId, runEndId);
      if (this.flushing !== undefined || !isComplete) return;
      this.startFlush();
    }
  }

  /** Returns the ids with one key. */
  find(credentialId: number, boot: number, sequence: number): number[] {
    const newerIds = this.growing.keys.get(credentialId)?.find(boot, sequence) ?? [];
    const olderIds = this.flushing?.keys.get(credentialId)?.find(boot, sequence) ?? [];
    return olderIds.length === 0 ? newerIds : [...olderIds, ...newerIds];
  }

  /** Returns the ids of a device's uplinks after `afterId`, in ascending order. */
  idsOf(deviceId: number, afterId: number): number[] {
    return [this.flushing, this.growing].flatMap((run) => run?.devices.get(deviceId)?.after(afterId) ?? []);
  }

  /** Yields the ids of all uplinks of a credential, the highest key (boot, then sequence) first. */
  *idsByDescendingKey(credentialId: number): Generator<number> {
    const flushing = this.flushing?.keys.get(credentialId) ?? new KeyList();
    const growing = this.growing.keys.get(credentialId) ?? new KeyList();
    let [flushingIndex, growingIndex] = [flushing.length - 1, growing.length - 1];
    while (flushingIndex >= 0 || growingIndex >= 0) {
      const compareKeys = (): number =>
        flushing.bootAt(flushingIndex) - growing.bootAt(growingIndex) ||
        flushing.sequenceAt(flushingIndex) - growing.sequenceAt(growingIndex);
      const isFlushingNext = growingIndex < 0 || (flushingIndex >= 0 && compareKeys() > 0);
      yield isFlushingNext ? flushing.idAt(flushingIndex--) : growing.idAt(growingIndex--);
    }
  }
}
