/**
 * The newest uplinks of the log in memory, as its writer packed them (../../log/packed-commit.ts). Each webhook URL
 * reads the events of nearly every commit just after it, a few at a time. From the file such a read costs ten times as
 * much as from here, because SQLite drops a connection's cached pages after each commit of another connection.
 *
 * Holds what the backend's commits have returned, and nothing else. It is empty at the start and after
 * {@link RecentUplinks.clear}, which must follow each change of stored uplinks: erasing a lock, deleting by age.
 */
import { HEADER_WORDS, UPLINK_WORD, WORD_BYTES, wordsOf } from '../../log/packed-commit.js';
import type { OwnRow } from './uplink-origins.js';

/** Maximum number of words (8 bytes each) in memory: 4 MB, some 25,000 pings. A larger commit is held alone. */
const MAX_WORDS = 2 ** 19;

/** The uplinks of one commit that were stored; their ids are consecutive. */
interface Block {
  readonly firstId: number;
  readonly lastId: number;
  readonly doubles: Float64Array;
}

export class RecentUplinks {
  /** Blocks with consecutive ids, oldest first. */
  #blocks: Block[] = [];
  #words = 0;
  readonly #maxWords: number;

  /** @param maxWords the limit of the memory, words of 8 bytes; a test passes a small one */
  constructor(maxWords = MAX_WORDS) {
    this.#maxWords = maxWords;
  }

  /** Adds the uplinks of a stored commit, except for repeats, which have no id. */
  add(doubles: Float64Array): void {
    let [firstId, lastId] = [0, 0];
    for (let start = 0; start < doubles.length; start = startAfter(doubles, start)) {
      const id = doubles[start + UPLINK_WORD.id] as number;
      if (id === 0) continue;
      if (firstId === 0) firstId = id;
      lastId = id;
    }
    if (firstId === 0) return;
    // After a gap, older uplinks would be missing between what is held.
    if (firstId !== (this.#blocks.at(-1)?.lastId ?? 0) + 1) this.clear();
    this.#blocks.push({ firstId, lastId, doubles });
    this.#words += doubles.length;
    let surplus = 0;
    while (this.#words > this.#maxWords && surplus < this.#blocks.length - 1) {
      this.#words -= this.#blocks[surplus]?.doubles.length ?? 0;
      surplus += 1;
    }
    if (surplus > 0) this.#blocks.splice(0, surplus);
  }

  /** Forgets all uplinks. */
  clear(): void {
    this.#blocks = [];
    this.#words = 0;
  }

  /**
   * Returns the merchant's uplinks after the id `afterId` whose kind is from `minKind` to `maxKind`, oldest first, at
   * most `limit`. Undefined if some uplink after `afterId` may be in the file only.
   */
  select(
    merchantId: number,
    afterId: number,
    limit: number,
    kinds: { readonly minKind: number; readonly maxKind: number },
  ): OwnRow[] | undefined {
    const [oldest] = this.#blocks;
    if (oldest === undefined || afterId < oldest.firstId - 1) return undefined;
    const uplinks: OwnRow[] = [];
    for (let index = this.#indexAfter(afterId); index < this.#blocks.length; index++) {
      const { doubles } = this.#blocks[index] as Block;
      for (let start = 0; start < doubles.length; start = startAfter(doubles, start)) {
        if (doubles[start + UPLINK_WORD.merchantId] !== merchantId) continue;
        if ((doubles[start + UPLINK_WORD.id] as number) <= afterId) continue;
        const kind = (doubles[start + UPLINK_WORD.kindAndBuffered] as number) >> 1;
        if (kind < kinds.minKind || kind > kinds.maxKind) continue;
        uplinks.push(unpack(doubles, start));
        if (uplinks.length === limit) return uplinks;
      }
    }
    return uplinks;
  }

  /** The index of the first block that has an id above `afterId`. */
  #indexAfter(afterId: number): number {
    let [low, high] = [0, this.#blocks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#blocks[middle] as Block).lastId > afterId) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** The word at which the next uplink starts. */
function startAfter(doubles: Float64Array, start: number): number {
  return start + wordsOf(doubles[start + UPLINK_WORD.length] as number);
}

/** The uplink that is packed from the word `start` on. Its bytes are copies, so that it does not hold the block. */
function unpack(doubles: Float64Array, start: number): OwnRow {
  const word = (name: keyof typeof UPLINK_WORD): number => doubles[start + UPLINK_WORD[name]] as number;
  const copy = (firstWord: number, length: number): Buffer => {
    return Buffer.from(Buffer.from(doubles.buffer, (start + firstWord) * WORD_BYTES, length));
  };
  return {
    id: word('id'),
    device_id: word('deviceId'),
    merchant_id: word('merchantId'),
    credential_id: word('credentialId'),
    boot: word('boot'),
    sequence: word('sequence'),
    digest: copy(UPLINK_WORD.digest, WORD_BYTES),
    bytes: copy(HEADER_WORDS, word('length')),
    received_at_ms: word('receivedAtMs'),
    // Twice the kind, plus 1 if the uplink was buffered (packed-commit.ts).
    buffered: word('kindAndBuffered') & 1,
    uplink_kind: word('kindAndBuffered') >> 1,
    // Not needed: bytes that never left the memory can't be damaged.
    sum: null,
  };
}
