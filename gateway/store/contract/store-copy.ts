/** A copy of a whole store, for a backup. */

/** A copy that is on the disk. */
export interface StoreCopy {
  readonly file: string;
  readonly bytes: number;
  /** One checksum of all of it, for the receiver. */
  readonly sum: string;
  /** Removes the copy, so that another one can be made. */
  remove(): void;
}
