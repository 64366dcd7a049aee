/**
 * A commit as it is sent to the log thread: its uplinks as one block of memory, which is transferred without a copy,
 * and the rest as objects. To send each uplink as an object would cost the event loop more than packing it, and the
 * other thread more than the write itself.
 *
 * An uplink is {@link UPLINK_WORDS} doubles and its bytes, padded to whole doubles. The same block, with the id that
 * the writer assigns, is what an uplink's sum is taken over (uplink-sum.ts).
 */
import type { CommandChange } from '../../contract/command-record.js';
import type { Commit, Incoming, IncomingUplink, Judged } from '../../contract/store.js';

/** The index of each member among an uplink's doubles. */
export const UPLINK_WORD = {
  id: 0,
  deviceId: 1,
  merchantId: 2,
  credentialId: 3,
  boot: 4,
  sequence: 5,
  receivedAtMs: 6,
  /** Twice the kind, plus 1 where it was buffered. */
  kindAndBuffered: 7,
  /** Of the bytes that follow. */
  length: 8,
  /** 8 raw bytes. The writer computes them: a SHA-256 would be a good part of a ping's cost on the event loop. */
  digest: 9,
} as const;

/** Doubles before the bytes of an uplink. */
export const UPLINK_WORDS = 10;
/** Bytes of a double. */
export const WORD = 8;

/** An item that is no uplink, and how many uplinks of the commit come before it. */
export interface PackedExtras {
  readonly after: number;
  readonly item: Exclude<Incoming, IncomingUplink>;
}

/** A commit, packed. */
export interface PackedCommit {
  /** How many uplinks there are. */
  readonly count: number;
  readonly uplinks: ArrayBuffer;
  /** In order. */
  readonly extras: readonly PackedExtras[];
  readonly judged: readonly Judged[];
  readonly states: ReadonlyMap<number, string>;
  readonly commands: readonly CommandChange[];
}

/** The members of an uplink that are packed. */
export type PackedUplink = Omit<IncomingUplink, 'type' | 'digest' | 'bytes'> & { readonly bytes: Uint8Array };

/** The doubles that an uplink with a payload of so many bytes takes. */
export function wordsOf(length: number): number {
  return UPLINK_WORDS + Math.ceil(length / WORD);
}

/** Packs a commit. @throws TypeError where a member is no number */
export function packCommit({ incoming, judged, states, commands = [] }: Commit): PackedCommit {
  let [words, count] = [0, 0];
  for (const item of incoming) if (item.type === 'uplink') words += wordsOf(item.bytes.length);
  const doubles = new Float64Array(words);
  const bytes = new Uint8Array(doubles.buffer);
  const extras: PackedExtras[] = [];
  let at = 0;
  for (const item of incoming) {
    if (item.type === 'uplink') {
      packUplink(item, doubles, bytes, at);
      at += wordsOf(item.bytes.length);
      count += 1;
    } else extras.push({ after: count, item });
  }
  return { count, uplinks: doubles.buffer, extras, judged, states, commands };
}

/** Packs an uplink from the double `at` on; its id and its digest stay 0. */
export function packUplink(uplink: PackedUplink, doubles: Float64Array, bytes: Uint8Array, at: number): void {
  doubles[at + UPLINK_WORD.deviceId] = uplink.deviceId;
  doubles[at + UPLINK_WORD.merchantId] = uplink.merchantId;
  doubles[at + UPLINK_WORD.credentialId] = uplink.credentialId;
  doubles[at + UPLINK_WORD.boot] = uplink.boot;
  doubles[at + UPLINK_WORD.sequence] = uplink.sequence;
  doubles[at + UPLINK_WORD.receivedAtMs] = uplink.receivedAtMs;
  doubles[at + UPLINK_WORD.kindAndBuffered] = uplink.kind * 2 + (uplink.buffered ? 1 : 0);
  doubles[at + UPLINK_WORD.length] = uplink.bytes.length;
  bytes.set(uplink.bytes, (at + UPLINK_WORDS) * WORD);
}
