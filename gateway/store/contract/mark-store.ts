/**
 * What the store keeps of locks that were reflashed (protocol.md §1): the marks that part their uplinks into lives. The
 * promises of store.ts hold. Times are ms since the epoch, by the clock of locks.
 */

export interface NewMark {
  readonly deviceId: number;
  /** From this time on its uplinks are of a new life. */
  readonly markMs: number;
  /** JSON of what is known of the lock with the mark; null where nothing is. */
  readonly state: string | null;
}

export interface MarkStore {
  /** The marks of every lock that has some, by device id, the earliest first. */
  readAll(): Promise<ReadonlyMap<number, readonly number[]>>;
  /** A lock's marks, the earliest first. */
  read(deviceId: number): Promise<readonly number[]>;
  /** Adds a mark and the state that follows from it, in one commit. A mark that the lock has already stays as it is. */
  add(mark: NewMark): Promise<void>;
}
