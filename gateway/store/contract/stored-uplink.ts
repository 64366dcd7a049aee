/** What the log returns. */
import { decodeUplink } from '../../../proto/wire/codec.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import { lifeOf } from '../../../proto/wire/uplink-life.js';

/** A stored uplink, with its lock. */
export interface StoredUplink {
  readonly id: number;
  readonly deviceId: number;
  readonly merchantId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
  readonly credentialId: number;
  /** By the kind of its credential. */
  readonly source: Source;
  readonly boot: number;
  readonly sequence: number;
  readonly digest: Buffer;
  readonly bytes: Buffer;
  readonly receivedAtMs: number;
  readonly buffered: boolean;
  /**
   * Its row does not fit its checksum: a disk changed it. Its content must be neither sent nor judged; the other
   * members, its key included, may be wrong too.
   */
  readonly isDamaged: boolean;
}

/** Which life a stored uplink belongs to; where its bytes are damaged, by the time of its receipt. */
export function storedLife({ bytes, receivedAtMs }: StoredUplink, marks: readonly number[]): number {
  const decoded = decodeUplink(bytes);
  return lifeOf(marks, decoded.ok ? decoded.value.timeMs : Number.NaN, receivedAtMs);
}
