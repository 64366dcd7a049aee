/** A whole store, copied: what a backup is made of. */

/** A copy that is on the disk. */
export interface StoreCopy {
  readonly file: string;
  readonly bytes: number;
  /** One checksum of all of it, for whoever it is sent to. */
  readonly sum: string;
  /** Takes it away; the next one may be made then. */
  remove(): void;
}
