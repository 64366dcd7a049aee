/**
 * A commit in the form that is sent to the log thread: its uplinks as one block of memory, which is transferred without
 * a copy, and everything else as objects. Sending each uplink as an object would cost the event loop more than packing
 * it, and the log thread more than writing it.
 *
 * A packed uplink consists of {@link HEADER_WORDS} doubles ("words") and its bytes, padded to whole words. Its checksum
 * is computed over the same memory, after the writer has set the id (uplink-sum.ts).
 */
import type { CommandChange } from '../contract/command-record.js';
import type { Commit, Incoming, IncomingUplink, Judged } from '../contract/log/commit.js';
import type { CommitResult } from '../contract/log/commit-result.js';
import type { NewMerchantEvent } from '../contract/webhooks/merchant-event.js';

/** The index of each member among an uplink's header words. */
export const UPLINK_WORD = {
  id: 0,
  deviceId: 1,
  merchantId: 2,
  credentialId: 3,
  boot: 4,
  sequence: 5,
  receivedAtMs: 6,
  /** Twice the kind, plus 1 if the uplink was buffered. */
  kindAndBuffered: 7,
  /** The number of bytes that follow. */
  length: 8,
  /**
   * The first 8 bytes of the SHA-256 of the uplink's bytes, stored as raw bytes instead of a double. The writer
   * computes it, because SHA-256 would be a large part of a ping's cost on the event loop.
   */
  digest: 9,
} as const;

/** The number of words before the bytes of an uplink. */
export const HEADER_WORDS = 10;
/** The size of a word. */
export const WORD_BYTES = 8;

/** An item other than an uplink. `after` is the number of the commit's uplinks before it. */
export interface PackedExtra {
  readonly after: number;
  readonly item: Exclude<Incoming, IncomingUplink>;
}

/** A packed commit. */
export interface PackedCommit {
  /** The number of uplinks. */
  readonly count: number;
  readonly uplinks: ArrayBuffer;
  /** In order. */
  readonly extras: readonly PackedExtra[];
  readonly judged: readonly Judged[];
  /** JSON of each changed lock's state, by device id. */
  readonly states: ReadonlyMap<number, string>;
  readonly commands: readonly CommandChange[];
  readonly merchantEvents: readonly NewMerchantEvent[];
  /**
   * `uplinks` and the merchants' events that the writer stored with them (merchant-event.ts), packed as uplinks are, in
   * the order of the log. Set by the writer; undefined if there were no such events.
   */
  appended?: ArrayBuffer;
  /** What was not stored. Set by the writer; undefined if everything was stored. */
  result?: CommitResult | undefined;
}

/** The members of an uplink that are packed. */
export type PackedUplink = Omit<IncomingUplink, 'type' | 'digest' | 'bytes'> & { readonly bytes: Uint8Array };

/** Returns the number of words of an uplink with `length` bytes. */
export function wordsOf(length: number): number {
  return HEADER_WORDS + Math.ceil(length / WORD_BYTES);
}

/** Packs a commit. */
export function packCommit(commit: Commit): PackedCommit {
  const { incoming, judged, states, commands = [], merchantEvents = [] } = commit;
  let [words, count] = [0, 0];
  for (const item of incoming) if (item.type === 'uplink') words += wordsOf(item.bytes.length);
  const doubles = new Float64Array(words);
  const bytes = new Uint8Array(doubles.buffer);
  const extras: PackedExtra[] = [];
  let start = 0;
  for (const item of incoming) {
    if (item.type === 'uplink') {
      packUplink(item, doubles, bytes, start);
      start += wordsOf(item.bytes.length);
      count += 1;
    } else extras.push({ after: count, item });
  }
  return { count, uplinks: doubles.buffer, extras, judged, states, commands, merchantEvents };
}

/** Packs an uplink from the word `start` on; its id and its digest stay 0. */
export function packUplink(uplink: PackedUplink, doubles: Float64Array, bytes: Uint8Array, start: number): void {
  doubles[start + UPLINK_WORD.deviceId] = uplink.deviceId;
  doubles[start + UPLINK_WORD.merchantId] = uplink.merchantId;
  doubles[start + UPLINK_WORD.credentialId] = uplink.credentialId;
  doubles[start + UPLINK_WORD.boot] = uplink.boot;
  doubles[start + UPLINK_WORD.sequence] = uplink.sequence;
  doubles[start + UPLINK_WORD.receivedAtMs] = uplink.receivedAtMs;
  doubles[start + UPLINK_WORD.kindAndBuffered] = uplink.kind * 2 + (uplink.buffered ? 1 : 0);
  doubles[start + UPLINK_WORD.length] = uplink.bytes.length;
  bytes.set(uplink.bytes, (start + HEADER_WORDS) * WORD_BYTES);
}
