/** What the log gives back. */
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';

/** An uplink as the log has it, with its lock. */
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
   * Its row does not fit its checksum: a disk changed it. Its content is neither to be sent nor to be believed; what
   * else is here, its name included, may be wrong too.
   */
  readonly isDamaged: boolean;
}
