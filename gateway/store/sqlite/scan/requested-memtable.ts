/**
 * What the store's memory knows of one lock's newest uplinks (log/memtable/), as of one request to a scan thread, which
 * has no memtable of its own.
 */
import type { UplinkMemtable } from '../log/memtable/uplink-memtable.js';

/** The members of a request that a {@link RequestedMemtable} takes over. */
export interface NewestUplinks {
  /** The index of the log by lock is complete up to this id. */
  readonly indexedId: number;
  /** The lock's uplinks after `indexedId`, ascending. */
  readonly newerIds: readonly number[];
  /** The id of the newest uplink that is committed. */
  readonly lastId: number;
}

export class RequestedMemtable implements Pick<UplinkMemtable, 'idsOf' | 'indexedId' | 'lastId'> {
  #newest: NewestUplinks = { indexedId: 0, newerIds: [], lastId: 0 };

  /** Each request replaces what the one before has brought. */
  take({ indexedId, newerIds, lastId }: NewestUplinks): void {
    this.#newest = { indexedId, newerIds, lastId };
  }

  get indexedId(): number {
    return this.#newest.indexedId;
  }

  get lastId(): number {
    return this.#newest.lastId;
  }

  /** The ids after `afterId` of the lock that the request is about. */
  idsOf(_deviceId: number, afterId: number): number[] {
    return this.#newest.newerIds.filter((id) => id > afterId);
  }
}
