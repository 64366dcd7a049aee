/** A copy of a whole store, for a backup. */

/** A copy that is on the disk. */
export interface StoreCopy {
  /** The path of the copy. */
  readonly file: string;
  readonly bytes: number;
  /** A checksum of the copy's whole content, in hex, for the receiver (`sumOfSums` in ../file-sums.ts). */
  readonly sum: string;
  /** Deletes the copy, so that another copy can be made. */
  remove(): void;
}
