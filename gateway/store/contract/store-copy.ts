/** A copy of a whole store, for a backup. */

/** A copy that is on the disk. */
export interface StoreCopy {
  readonly file: string;
  readonly bytes: number;
  /** A checksum of the copy's whole content, for the receiver. */
  readonly sum: string;
  /** Deletes the copy, so that another copy can be made. */
  remove(): void;
}
