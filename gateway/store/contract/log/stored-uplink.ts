/** An uplink (a message from a lock) as the store returns it from the log, the table of all uplinks. */
import { decodeUplink } from '../../../../proto/wire/codec.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { Source } from '../../../../proto/wire/ping.js';
import { lifeOf } from '../../../../proto/wire/uplink-life.js';

/** A stored uplink, with its lock; or another event for merchants, which has JSON as bytes. */
export interface StoredUplink {
  readonly id: number;
  readonly deviceId: number;
  readonly merchantId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
  readonly credentialId: number;
  /** Whether the lock or a phone sent it, by the kind of its credential. */
  readonly source: Source;
  /** A counter of the lock's boots, and one of its uplinks since the boot: with the credential, the uplink's key. */
  readonly boot: number;
  readonly sequence: number;
  /** Its kind: index into `UPLINK_KINDS`, or of another event (webhooks/merchant-event.ts). */
  readonly kind: number;
  /** The first 8 bytes of the SHA-256 of `bytes`. */
  readonly digest: Buffer;
  readonly bytes: Buffer;
  readonly receivedAtMs: number;
  /** It arrived over 60 s after the lock made it. */
  readonly buffered: boolean;
  /**
   * The lock's uplink before this one, if another gateway stored that one in its own slot, a part of the log
   * (log-position.ts). A URL gets this uplink only after all events of that slot up to that one, so that the lock's
   * events stay in order.
   */
  readonly afterId?: number | undefined;
  /**
   * Its row does not match its checksum: the disk changed it. The content must be neither sent nor judged; any other
   * member, even the key, may be wrong too.
   */
  readonly isDamaged: boolean;
}

/**
 * Returns the number of the lock's life to which a stored uplink belongs: each reflash mark starts a new life
 * (mark-store.ts). If the uplink's bytes are damaged, its time of receipt decides.
 */
export function storedLife({ bytes, receivedAtMs }: StoredUplink, marks: readonly number[]): number {
  const decoded = decodeUplink(bytes);
  return lifeOf(marks, decoded.ok ? decoded.value.timeMs : Number.NaN, receivedAtMs);
}
