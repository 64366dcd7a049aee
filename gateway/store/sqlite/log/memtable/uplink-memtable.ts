/**
 * The newest uplinks by key and by lock: those that the two indexes do not have yet. The log is written in the order of
 * arrival, but is read by lock too. An index in that order has a page for every lock, and to write each uplink into its
 * lock's page at once would cost more than all the rest. So uplinks are flushed into the indexes later, in sorted runs,
 * many of a lock together, and are found here until then.
 *
 * There are two runs: one that is flushed, and one that grows. The writing thread has the memtable that decides; the
 * reading side of the store has a copy that follows it.
 */
import type { RunSize } from '../../../contract/store-options.js';
import { UPLINK_WORD, wordsOf } from '../packed-commit.js';
import { IdList } from './id-list.js';
import { KeyList } from './key-list.js';

/**
 * With 1,000 locks, 50 uplinks of each get into their pages together. Two runs of the largest size have to fit in
 * memory, and to be loaded after a crash.
 */
export const RUN_SIZE: RunSize = { least: 50_000, perCredential: 20, most: 200_000 };

/** Uplinks that followed one another. */
export class UplinkRun {
  readonly keys = new Map<number, KeyList>();
  readonly devices = new Map<number, IdList>();
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

  isFull({ least, perCredential, most }: RunSize): boolean {
    return this.count >= least && (this.count >= most || this.count >= this.keys.size * perCredential);
  }

  /** Drops what a failed transaction had added. */
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

/** How far the flush is, as the writer reports it to the copy. */
export interface MemtableMark {
  /** The indexes have every uplink up to this id. */
  readonly indexedId: number;
  /** The last uplink of the run that is flushed; 0 where there is none. */
  readonly runEndId: number;
}

export class UplinkMemtable {
  /** The indexes have every uplink up to this id, and maybe some of the run after it. */
  indexedId: number;
  /** The run that is flushed into the indexes. */
  flushing: UplinkRun | undefined;
  growing = new UplinkRun();
  readonly #highestIdGiven: number;

  /** `givenId`: the highest id that an uplink was ever given, deleted ones included. */
  constructor(indexedId: number, givenId: number) {
    this.indexedId = indexedId;
    this.#highestIdGiven = givenId;
  }

  /** The newest uplink here. The file may have newer ones, of a commit that is not answered yet. */
  get lastId(): number {
    return Math.max(this.#highestIdGiven, this.indexedId, this.flushing?.lastId ?? 0, this.growing.lastId);
  }

  get count(): number {
    return this.growing.count + (this.flushing?.count ?? 0);
  }

  get mark(): MemtableMark {
    return { indexedId: this.indexedId, runEndId: this.flushing?.lastId ?? 0 };
  }

  /** Adds the uplinks of a stored commit; those without an id are repeats. */
  addPacked(doubles: Float64Array): void {
    for (let at = 0; at < doubles.length; at += wordsOf(doubles[at + UPLINK_WORD.length] as number)) {
      const id = doubles[at + UPLINK_WORD.id] as number;
      if (id === 0) continue;
      this.growing.add(
        doubles[at + UPLINK_WORD.deviceId] as number,
        doubles[at + UPLINK_WORD.credentialId] as number,
        doubles[at + UPLINK_WORD.boot] as number,
        doubles[at + UPLINK_WORD.sequence] as number,
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

  /** The indexes have all of the run. */
  finishFlush(): void {
    this.indexedId = this.flushing?.lastId ?? this.indexedId;
    this.flushing = undefined;
  }

  /** Follows the writer's memtable. */
  follow({ indexedId, runEndId }: MemtableMark): void {
    for (;;) {
      if (this.flushing !== undefined && this.flushing.lastId <= indexedId) this.finishFlush();
      const isEnded = this.growing.count > 0 && this.growing.lastId <= Math.max(indexedId, runEndId);
      if (this.flushing !== undefined || !isEnded) return;
      this.startFlush();
    }
  }

  /** The ids with one key. */
  find(credentialId: number, boot: number, sequence: number): number[] {
    const found = this.growing.keys.get(credentialId)?.find(boot, sequence) ?? [];
    const before = this.flushing?.keys.get(credentialId)?.find(boot, sequence) ?? [];
    return before.length === 0 ? found : [...before, ...found];
  }

  /** The ids of a device after one id, in ascending order. */
  idsOf(deviceId: number, afterId: number): number[] {
    const [old, young] = [this.flushing, this.growing].map((run) => run?.devices.get(deviceId)?.after(afterId) ?? []);
    return [...(old as number[]), ...(young as number[])];
  }

  /** The ids of a credential's uplinks, the highest key first. */
  *newestKeysOf(credentialId: number): Generator<number> {
    const lists = [this.flushing, this.growing].map((run) => run?.keys.get(credentialId) ?? new KeyList());
    const [old, young] = lists as [KeyList, KeyList];
    let [oldAt, youngAt] = [old.length - 1, young.length - 1];
    while (oldAt >= 0 || youngAt >= 0) {
      const order = (): number =>
        old.bootAt(oldAt) - young.bootAt(youngAt) || old.sequenceAt(oldAt) - young.sequenceAt(youngAt);
      const isOldNext = youngAt < 0 || (oldAt >= 0 && order() > 0);
      yield isOldNext ? old.idAt(oldAt--) : young.idAt(youngAt--);
    }
  }
}
