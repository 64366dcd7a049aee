/**
 * Checks a store's write-ahead log (WAL), which has the commits that are not in the file yet. SQLite reads the WAL up
 * to the first frame whose chained checksum is wrong and silently ignores all later frames: one flipped bit loses its
 * commit and every commit after it. So this check reads on after a break in the chain.
 *
 * A break may be the normal end of the WAL: a commit that a crash interrupted was never acknowledged, and older frames
 * of an earlier round, with another salt, follow. But no commit starts before the previous commit is on the disk. So if
 * a complete commit of the same round and a part of another commit follow the break, the frame at the break was once on
 * the disk, and is damaged. So is a frame at the break whose checksum continues the chain and whose salt is wrong.
 *
 * https://www.sqlite.org/fileformat2.html#the_write_ahead_log
 */
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { isWalLost } from '../folder/wal-presence.js';
import type { CheckContext, CheckOutcome } from './context.js';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/* Offsets in the WAL's header: the page size, and the salt, which is new in each round. */
const PAGE_SIZE_OFFSET = 8;
const SALT_OFFSET = 16;
const SALT_BYTES = 8;
/**
 * Offsets of checksums. The file header's covers the bytes before it; a frame's covers the frame's first two words and
 * its page.
 */
const HEADER_SUM_OFFSET = 24;
const FRAME_SUM_OFFSET = 16;
const FRAME_SUMMED_BYTES = 8;
/** The offset of a number that is not 0 only in the last frame of a commit (the file's size in pages). */
const COMMIT_OFFSET = 4;
/** The first word of the file shows in which byte order checksums read the words. */
const LITTLE_ENDIAN = 0x377f0682;
const BIG_ENDIAN = 0x377f0683;
/**
 * How often the WAL is read if it seems damaged. A frame may be read while it is written, so damage counts only if two
 * readings, one directly after the other, agree.
 */
const MAX_READINGS = 3;

/** The two words of a chained checksum. */
type Chain = readonly [number, number];

/** The result of reading the WAL once. A *round* is what is written from one restart of the WAL to the next. */
interface WalReading {
  /** Identifies the round: the WAL's header, in hex. */
  readonly round: string;
  /** The number of frames that SQLite uses, and of all frames of this round. */
  readonly usedFrames: number;
  readonly frames: number;
  readonly damage: string | null;
}

/** Counts the frames of this round, and reports damage. */
export function checkWal(file: string, { damage, progress }: Omit<CheckContext, 'db'>): CheckOutcome {
  const wal = `${file}-wal`;
  if (isWalLost(file)) {
    damage(null, null, 'it is missing; it had the latest commits before the gateway was killed');
    return { count: 0 };
  }
  if (!existsSync(wal)) return { count: 0, note: 'there is none: it was closed' };
  const handle = openSync(wal, 'r');
  try {
    if (fstatSync(handle).size < HEADER_BYTES) return { count: 0, note: 'it is empty: it was closed' };
    let reading = readWal(handle, progress);
    for (let count = 1; reading.damage !== null && count < MAX_READINGS; count += 1) {
      const nextReading = readWal(handle, progress);
      const isSame = nextReading.damage === reading.damage && nextReading.round === reading.round;
      reading = nextReading;
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

function noteOf({ frames, usedFrames, damage }: WalReading): string {
  const note = 'in use, or left by a killed process; its commits are valid';
  if (damage !== null || frames === usedFrames) return note;
  return `${note}; the last ${frames - usedFrames} frames are not a complete commit, as after a crash`;
}

function readWal(handle: number, progress: (done: number) => void): WalReading {
  const header = readHeader(handle);
  const round = header.toString('hex');
  const noFrames = { round, usedFrames: 0, frames: 0, damage: null };
  if (header.every((byte) => byte === 0)) return noFrames;
  const magic = header.readUInt32BE(0);
  const isLittle = magic === LITTLE_ENDIAN;
  const sum = sumWords(header.subarray(0, HEADER_SUM_OFFSET), [0, 0], isLittle);
  if ((!isLittle && magic !== BIG_ENDIAN) || !isSum(header, HEADER_SUM_OFFSET, sum))
    return { ...noFrames, damage: 'its header is damaged: all its commits are lost' };
  const { size } = fstatSync(handle);
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_OFFSET));
  const walk = new FrameWalk(header.subarray(SALT_OFFSET, SALT_OFFSET + SALT_BYTES), sum, isLittle);
  for (let offset = HEADER_BYTES; offset + frame.length <= size; offset += frame.length) {
    readSync(handle, frame, 0, frame.length, offset);
    walk.take(frame);
    progress(walk.frames);
  }
  const { usedFrames, frames } = walk;
  // If a new round started meanwhile, it overwrote the frames, and the reading is not valid.
  const isOverwritten = !readHeader(handle).equals(header);
  return { round, usedFrames, frames, damage: isOverwritten ? null : walk.damage };
}

function readHeader(handle: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  readSync(handle, header, 0, HEADER_BYTES, 0);
  return header;
}

/** Follows the frames of one round. Frames are numbered from 1. */
class FrameWalk {
  /** The number of frames of this round. */
  frames = 0;
  /** The number of frames up to the last commit before a break of the chain: those that SQLite uses. */
  usedFrames = 0;
  readonly #salt: Buffer;
  readonly #isLittle: boolean;
  /** The checksum that the next frame's checksum continues from. */
  #chain: Chain;
  #index = 0;
  /** The first frame whose checksum is wrong. */
  #breakFrame: number | undefined;
  /** The last frame of the first commit that ends after the break. */
  #commitFrame: number | undefined;
  /** Whether the break is damage: a part of another commit follows that commit, or only the frame's salt is wrong. */
  #isDamageProven = false;

  constructor(salt: Buffer, chain: Chain, isLittle: boolean) {
    this.#salt = salt;
    this.#chain = chain;
    this.#isLittle = isLittle;
  }

  get damage(): string | null {
    if (!this.#isDamageProven) return null;
    const lost = this.frames - this.usedFrames;
    return `frame ${this.#breakFrame} is not what was written: ${lost} frames, from there to the end, are lost`;
  }

  /** Takes the next frame. */
  take(frame: Buffer): void {
    this.#index += 1;
    const page = frame.subarray(FRAME_HEADER_BYTES);
    const headSum = sumWords(frame.subarray(0, FRAME_SUMMED_BYTES), this.#chain, this.#isLittle);
    const isOfRound = frame.subarray(FRAME_SUMMED_BYTES, FRAME_SUMMED_BYTES + SALT_BYTES).equals(this.#salt);
    const isSummed = isSum(frame, FRAME_SUM_OFFSET, sumWords(page, headSum, this.#isLittle));
    const isChained = isOfRound && isSummed;
    // A frame of an earlier round has another chain before it; so this one was written in this round.
    if (isSummed && !isOfRound && this.#breakFrame === undefined) this.#isDamageProven = true;
    if (!isChained) this.#breakFrame ??= this.#index;
    // The next frame's checksum continues from the stored checksum, right or wrong.
    this.#chain = [frame.readUInt32BE(FRAME_SUM_OFFSET), frame.readUInt32BE(FRAME_SUM_OFFSET + 4)];
    if (!isOfRound) return;
    this.frames = this.#index;
    const isCommit = frame.readUInt32BE(COMMIT_OFFSET) !== 0;
    if (this.#breakFrame === undefined) {
      if (isCommit) this.usedFrames = this.#index;
    } else if (this.#commitFrame !== undefined) this.#isDamageProven ||= isChained;
    else if (isCommit) this.#commitFrame = this.#index;
  }
}

/** Whether the checksum at this offset is the given one. */
function isSum(bytes: Buffer, offset: number, [first, second]: Chain): boolean {
  return bytes.readUInt32BE(offset) === first && bytes.readUInt32BE(offset + 4) === second;
}

/** Computes SQLite's checksum over pairs of words, continuing from the given one. */
function sumWords(bytes: Buffer, before: Chain, isLittle: boolean): Chain {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let [first, second] = before;
  for (let offset = 0; offset < bytes.length; offset += 8) {
    first = (first + words.getUint32(offset, isLittle) + second) >>> 0;
    second = (second + words.getUint32(offset + 4, isLittle) + first) >>> 0;
  }
  return [first, second];
}
