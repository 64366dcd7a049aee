/**
 * Reflash marks (protocol.md §1). A mark is the time at which a lock's flash memory was wiped; it starts a new "life"
 * of the lock, in which its counters start again. As in store.ts, a method that writes resolves after the write is on
 * the disk. Times are ms since the epoch, by the clock of the locks: wall-clock time, except in a sped-up simulation.
 */

export interface NewMark {
  readonly deviceId: number;
  /** Uplinks from this time on belong to a new life. */
  readonly markMs: number;
  /** JSON of the lock's state after the mark; null if the lock has no state. */
  readonly state: string | null;
}

export interface MarkStore {
  /** Returns the marks of these locks, or of all, by device id, earliest first. Locks without marks are left out. */
  readAll(deviceIds?: readonly number[]): Promise<ReadonlyMap<number, readonly number[]>>;
  /** Returns a lock's marks, earliest first. */
  read(deviceId: number): Promise<readonly number[]>;
  /** Adds a mark and stores the new state, in one commit. An existing mark is not changed. */
  add(mark: NewMark): Promise<void>;
}
