/**
 * Reflash marks (protocol.md §1): they split a lock's uplinks into lives. The promises of store.ts hold. Times are ms
 * since the epoch, by the clock of locks.
 */

export interface NewMark {
  readonly deviceId: number;
  /** From this time on its uplinks belong to a new life. */
  readonly markMs: number;
  /** JSON of the lock's state with the mark; null where it has none. */
  readonly state: string | null;
}

export interface MarkStore {
  /** The marks of every lock that has any, by device id, the earliest first. */
  readAll(): Promise<ReadonlyMap<number, readonly number[]>>;
  /** A lock's marks, the earliest first. */
  read(deviceId: number): Promise<readonly number[]>;
  /** Adds a mark and the state that follows from it, in one commit. An existing mark stays as it is. */
  add(mark: NewMark): Promise<void>;
}
