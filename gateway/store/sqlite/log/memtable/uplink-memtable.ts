/**
 * The newest uplinks by their names and locks: those that the tables by name and by lock do not have yet. The log is
 * written in the order of arrival, but is asked by lock too; a table in that order has a page of its own for every
 * lock, and to write each uplink into its lock's page would cost more than all the rest. So uplinks are put there
 * later, in runs that are sorted, many of a lock at once, and until then they are known by this.
 *
 * There are two runs: the one that is being put into the tables, and the one that grows. The thread that writes has one
 * of these, which decides; the store, where it reads, has a copy that follows.
 */
import type { RunSize } from '../../../contract/store-options.js';
import { UPLINK_WORD, wordsOf } from '../packed-commit.js';
import { IdList } from './id-list.js';
import { KeyList } from './key-list.js';

/**
 * With 1,000 locks, 50 uplinks of each go into their pages together. The most is what memory and the start after a
 * crash have to bear: two runs of it.
 */
export const RUN_SIZE: RunSize = { least: 50_000, perCredential: 20, most: 200_000 };

/** Uplinks that came one after the other. */
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

  /** What a transaction that failed had added. */
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

/** Where the runs stand, as the writer tells the copy. */
export interface MemtableMark {
  /** The tables by name and by lock have every uplink up to this id. */
  readonly indexedId: number;
  /** The last uplink of the run that is being put into them; 0 where there is none. */
  readonly runEndId: number;
}

export class UplinkMemtable {
  /** Every uplink up to this id is in the tables. Some of the run after it may be too. */
  indexedId: number;
  /** The run that is being put into the tables. */
  flushing: UplinkRun | undefined;
  growing = new UplinkRun();
  readonly #highestIdGiven: number;

  /** `givenId`: the last id that was given when this was made, be its uplink deleted since. */
  constructor(indexedId: number, givenId: number) {
    this.indexedId = indexedId;
    this.#highestIdGiven = givenId;
  }

  /** The newest uplink that is known here. The file may have newer ones, of a commit that is not answered yet. */
  get lastId(): number {
    return Math.max(this.#highestIdGiven, this.indexedId, this.flushing?.lastId ?? 0, this.growing.lastId);
  }

  get count(): number {
    return this.growing.count + (this.flushing?.count ?? 0);
  }

  get mark(): MemtableMark {
    return { indexedId: this.indexedId, runEndId: this.flushing?.lastId ?? 0 };
  }

  /** Adds the uplinks of a commit that is stored; those without an id were in the log before. */
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

  /** The run that grows is put into the tables from now on. */
  startFlush(): UplinkRun {
    const run = this.growing;
    this.flushing = run;
    this.growing = new UplinkRun();
    return run;
  }

  /** All of the run is in the tables. */
  finishFlush(): void {
    this.indexedId = this.flushing?.lastId ?? this.indexedId;
    this.flushing = undefined;
  }

  /** Does what the writer's has done. */
  follow({ indexedId, runEndId }: MemtableMark): void {
    for (;;) {
      if (this.flushing !== undefined && this.flushing.lastId <= indexedId) this.finishFlush();
      const isEnded = this.growing.count > 0 && this.growing.lastId <= Math.max(indexedId, runEndId);
      if (this.flushing !== undefined || !isEnded) return;
      this.startFlush();
    }
  }

  /** The ids under one name. */
  find(credentialId: number, boot: number, sequence: number): number[] {
    const found = this.growing.keys.get(credentialId)?.find(boot, sequence) ?? [];
    const before = this.flushing?.keys.get(credentialId)?.find(boot, sequence) ?? [];
    return before.length === 0 ? found : [...before, ...found];
  }

  /** The ids of a device after one id, growing. */
  idsOf(deviceId: number, afterId: number): number[] {
    const [old, young] = [this.flushing, this.growing].map((run) => run?.devices.get(deviceId)?.after(afterId) ?? []);
    return [...(old as number[]), ...(young as number[])];
  }

  /** The ids of a credential's uplinks, the newest name first. */
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
