/**
 * A store's write-ahead log: what was committed and is not in the file yet. SQLite reads it as far as its chain of
 * checksums goes and ignores the rest without a word: one flipped bit loses every commit after it. So the chain is
 * followed here as SQLite does, and beyond.
 *
 * A break in the chain may be the end of the log: what a crash cut off was never acknowledged, and after it come frames
 * of an earlier round, which have another salt. But no commit starts before the one before it is on the disk. So where
 * a whole commit of this round follows the break, and a part of another one follows that, the frame at the break was on
 * the disk once, and is damaged.
 *
 * https://www.sqlite.org/fileformat2.html#the_write_ahead_log
 */
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { isWalLost } from '../folder/wal-presence.js';
import type { CheckContext, CheckOutcome } from './context.js';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_SIZE_AT = 8;
const SALT_AT = 16;
const SALT_BYTES = 8;
/** Of both headers, the sum is over what comes before it; of a frame's, over its first two words and its page. */
const HEADER_SUM_AT = 24;
const FRAME_SUM_AT = 16;
const FRAME_SUMMED = 8;
/** Of a frame that ends a commit, how many pages the file has after it; 0 of any other. */
const COMMIT_AT = 4;
/** The first word: sums are over words of this byte order. */
const LITTLE_ENDIAN = 0x377f0682;
const BIG_ENDIAN = 0x377f0683;
/** A frame may be read while it is written; only damage that two looks find at the same place is real. */
const LOOKS = 3;

/** The two words of a chained checksum. */
type Chain = readonly [number, number];

/** The result of reading it once. */
interface WalReading {
  /** The round: the header, the same before and after. */
  readonly round: string;
  /** Frames that SQLite uses, and all frames of this round. */
  readonly taken: number;
  readonly frames: number;
  readonly damage: string | null;
}

/** Counts the frames of this round, and reports damage. */
export function checkWal(file: string, { damage, progress }: Omit<CheckContext, 'db'>): CheckOutcome {
  const wal = `${file}-wal`;
  if (isWalLost(file)) {
    damage(null, null, 'it is missing, and it had what was stored before the gateway was killed');
    return { count: 0 };
  }
  if (!existsSync(wal)) return { count: 0, note: 'there is none: it was closed' };
  const handle = openSync(wal, 'r');
  try {
    if (fstatSync(handle).size < HEADER_BYTES) return { count: 0, note: 'it is empty: it was closed' };
    let reading = readWal(handle, progress);
    for (let look = 1; reading.damage !== null && look < LOOKS; look += 1) {
      const again = readWal(handle, progress);
      const isSame = again.damage === reading.damage && again.round === reading.round;
      reading = again;
      if (isSame) {
        damage(null, null, reading.damage as string);
        break;
      }
    }
    return { count: reading.frames, note: noteOf(reading) };
  } finally {
    closeSync(handle);
  }
}

function noteOf({ frames, taken, damage }: WalReading): string {
  const note = 'in use, or left by a process that was killed; what is in it counts';
  if (damage !== null || frames === taken) return note;
  return `${note}; the last ${frames - taken} frames are no whole commit, as a crash leaves them`;
}

function readWal(handle: number, progress: (done: number) => void): WalReading {
  const header = readHeader(handle);
  const round = header.toString('hex');
  const none = { round, taken: 0, frames: 0, damage: null };
  if (header.every((byte) => byte === 0)) return none;
  const magic = header.readUInt32BE(0);
  const isLittle = magic === LITTLE_ENDIAN;
  const sum = sumWords(header.subarray(0, HEADER_SUM_AT), [0, 0], isLittle);
  if ((!isLittle && magic !== BIG_ENDIAN) || !isSum(header, HEADER_SUM_AT, sum))
    return { ...none, damage: 'its header is damaged: nothing of it is read, and what was committed in it is lost' };
  const { size } = fstatSync(handle);
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_AT));
  const walk = new FrameWalk(header.subarray(SALT_AT, SALT_AT + SALT_BYTES), sum, isLittle);
  for (let at = HEADER_BYTES; at + frame.length <= size; at += frame.length) {
    readSync(handle, frame, 0, frame.length, at);
    walk.take(frame);
    progress(walk.frames);
  }
  const { taken, frames } = walk;
  // A round that started meanwhile overwrote what was read.
  const isOver = !readHeader(handle).equals(header);
  return { round, taken, frames, damage: isOver ? null : walk.damage };
}

function readHeader(handle: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  readSync(handle, header, 0, HEADER_BYTES, 0);
  return header;
}

/** Follows the frames of one round. */
class FrameWalk {
  frames = 0;
  /** Up to the last commit that the chain reaches. */
  taken = 0;
  readonly #salt: Buffer;
  readonly #isLittle: boolean;
  /** What the next frame's sum goes on from. */
  #chain: Chain;
  #index = 0;
  #brokenAt: number | undefined;
  /** The first commit that ends after the break. */
  #commitAt: number | undefined;
  #isProven = false;

  constructor(salt: Buffer, chain: Chain, isLittle: boolean) {
    this.#salt = salt;
    this.#chain = chain;
    this.#isLittle = isLittle;
  }

  get damage(): string | null {
    if (!this.#isProven) return null;
    const lost = this.frames - this.taken;
    return `frame ${this.#brokenAt} is not what was written: it and what is behind it (${lost} frames) are lost`;
  }

  take(frame: Buffer): void {
    this.#index += 1;
    const page = frame.subarray(FRAME_HEADER_BYTES);
    const head = sumWords(frame.subarray(0, FRAME_SUMMED), this.#chain, this.#isLittle);
    const isOfRound = frame.subarray(FRAME_SUMMED, FRAME_SUMMED + SALT_BYTES).equals(this.#salt);
    const isChained = isOfRound && isSum(frame, FRAME_SUM_AT, sumWords(page, head, this.#isLittle));
    if (!isChained) this.#brokenAt ??= this.#index;
    // The next frame continues from the stored sum, right or wrong.
    this.#chain = [frame.readUInt32BE(FRAME_SUM_AT), frame.readUInt32BE(FRAME_SUM_AT + 4)];
    if (!isOfRound) return;
    this.frames = this.#index;
    const isCommit = frame.readUInt32BE(COMMIT_AT) !== 0;
    if (this.#brokenAt === undefined) {
      if (isCommit) this.taken = this.#index;
    } else if (this.#commitAt !== undefined) this.#isProven ||= isChained;
    else if (isCommit) this.#commitAt = this.#index;
  }
}

function isSum(bytes: Buffer, at: number, [first, second]: Chain): boolean {
  return bytes.readUInt32BE(at) === first && bytes.readUInt32BE(at + 4) === second;
}

/** SQLite's checksum over whole pairs of words. */
function sumWords(bytes: Buffer, [from, to]: Chain, isLittle: boolean): Chain {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let [first, second] = [from, to];
  for (let at = 0; at < bytes.length; at += 8) {
    first = (first + words.getUint32(at, isLittle) + second) >>> 0;
    second = (second + words.getUint32(at + 4, isLittle) + first) >>> 0;
  }
  return [first, second];
}
