/**
 * Entries of one lock's log in a few buffers, for the way from the scan thread to the gateway's thread. Messages
 * between threads copy objects one by one, which would cost the gateway's thread as much as reading the rows itself;
 * buffers change hands without a copy. Pure.
 */
import type { Mac } from '../../../../proto/wire/mac.js';
import type { LogEntry } from '../../contract/log/log-entry.js';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';

/** Members of an uplink that differ between uplinks of a lock and are numbers, in their order in `numbers`. */
const NUMBERS = ['id', 'credentialId', 'boot', 'sequence', 'kind', 'receivedAtMs'] as const;
/** After them: source, buffered and damaged as bits, and the lengths of the digest and of the bytes. */
const WORDS = NUMBERS.length + 3;
const [IS_PHONE, IS_BUFFERED, IS_DAMAGED] = [1, 2, 4];

type LogEvent = Extract<LogEntry, { type: 'lock-event' }>;
/** What all uplinks of a lock have in common. */
type LockOfLog = Pick<StoredUplink, 'deviceId' | 'merchantId' | 'mac' | 'simulated'>;

/** Log entries, packed. */
export interface PackedLog {
  /** For each entry, whether it is an uplink (1) or another event (0). */
  readonly order: Uint8Array;
  /** Undefined if there are no uplinks. */
  readonly lock: LockOfLog | undefined;
  /** {@link WORDS} numbers of each uplink. */
  readonly numbers: Float64Array;
  /** The digest and the bytes of each uplink, one after the other. */
  readonly content: Uint8Array;
  readonly events: readonly LogEvent[];
}

/** Packs entries of one lock. */
export function packLog(entries: readonly LogEntry[]): PackedLog {
  const uplinks = entries.flatMap((entry) => (entry.type === 'uplink' ? [entry.uplink] : []));
  const numbers = new Float64Array(WORDS * uplinks.length);
  const content = new Uint8Array(uplinks.reduce((sum, { digest, bytes }) => sum + digest.length + bytes.length, 0));
  let [word, end] = [0, 0];
  for (const uplink of uplinks) {
    const { source, buffered, isDamaged, digest, bytes } = uplink;
    for (const name of NUMBERS) numbers[word++] = uplink[name];
    const flags = (source === 'phone' ? IS_PHONE : 0) | (buffered ? IS_BUFFERED : 0) | (isDamaged ? IS_DAMAGED : 0);
    numbers[word++] = flags;
    numbers[word++] = digest.length;
    numbers[word++] = bytes.length;
    content.set(digest, end);
    content.set(bytes, end + digest.length);
    end += digest.length + bytes.length;
  }
  const [first] = uplinks;
  const lock = first && pick(first);
  const order = Uint8Array.from(entries, ({ type }) => (type === 'uplink' ? 1 : 0));
  return { order, lock, numbers, content, events: entries.filter((entry) => entry.type === 'lock-event') };
}

function pick({ deviceId, merchantId, mac, simulated }: StoredUplink): LockOfLog {
  return { deviceId, merchantId, mac, simulated };
}

/** The buffers of packed entries that change hands with a message. */
export function buffersOf({ order, numbers, content }: PackedLog): ArrayBuffer[] {
  return [order, numbers, content].map(({ buffer }) => buffer as ArrayBuffer);
}

/** For a part of a log without uplinks, of which these members are never read. */
const NO_LOCK: LockOfLog = { deviceId: 0, merchantId: 0, mac: '' as Mac, simulated: false };

/** Unpacks entries. Their bytes are views of the packed ones. */
export function unpackLog({ order, lock, numbers, content, events }: PackedLog): LogEntry[] {
  const { deviceId, merchantId, mac, simulated } = lock ?? NO_LOCK;
  let [word, end, event] = [0, content.byteOffset, 0];
  const nextUplink = (): StoredUplink => {
    // 0 to 5 are NUMBERS in their order, 6 the bits, 7 and 8 the lengths.
    const at = (index: number): number => numbers[word + index] as number;
    const digest = Buffer.from(content.buffer, end, at(7));
    const bytes = Buffer.from(content.buffer, end + at(7), at(8));
    const flags = at(6);
    // V8 takes some 1.5 µs for each member that follows a spread (`...`), so this literal has none.
    const uplink: StoredUplink = {
      id: at(0),
      deviceId,
      merchantId,
      mac,
      simulated,
      credentialId: at(1),
      source: (flags & IS_PHONE) === 0 ? 'lock' : 'phone',
      boot: at(2),
      sequence: at(3),
      kind: at(4),
      digest,
      bytes,
      receivedAtMs: at(5),
      buffered: (flags & IS_BUFFERED) !== 0,
      isDamaged: (flags & IS_DAMAGED) !== 0,
    };
    word += WORDS;
    end += digest.length + bytes.length;
    return uplink;
  };
  return Array.from(order, (isUplink): LogEntry => {
    if (isUplink === 1) return { type: 'uplink', uplink: nextUplink() };
    event += 1;
    return events[event - 1] as LogEvent;
  });
}
