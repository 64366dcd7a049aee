/**
 * Checks the unused bytes of a file, between the cells of a page and in free pages, which SQLite's integrity check does
 * not cover. Stores are written with `secure_delete`, so freed bytes are zero; but a page split leaves other bytes
 * behind. So damage is reported only for a range that is zero except for a single bit, and only if the bit is not near
 * an edge of the range: at an edge, the last byte of old content may look the same, as in ten pages of an undamaged
 * store with a million pings.
 *
 * The store may be in use: a page that seems damaged is read twice, since it may have been read while it was written.
 *
 * https://www.sqlite.org/fileformat2.html#b_tree_pages
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { readSums } from '../../file-sums.js';
import { isAtRest } from '../closed-file.js';
import type { CheckContext, CheckOutcome } from './context.js';

const FILE_HEADER_BYTES = 100;
/* Offsets in the file header: the page size, and the first page of the list of free pages ("trunk page"). */
const PAGE_SIZE_OFFSET = 16;
const FIRST_TRUNK_OFFSET = 32;
/** Reserved bytes of the file header, which are zero. */
const RESERVED_START = 72;
const RESERVED_END = 92;
/**
 * The size of a tree page's header, by page type: inner pages of an index (2) and of a table (5), leaf pages of an
 * index (10) and of a table (13). Pages of other types are not tree pages.
 */
const HEADER_BYTES: Readonly<Record<number, number>> = { 2: 12, 5: 12, 10: 8, 13: 8 };
const FREEBLOCK_HEADER_BYTES = 4;
const POINTER_BYTES = 2;
const MIN_PAGE_BYTES = 512;
const MAX_PAGE_BYTES = 65_536;
/** Progress is reported once per this many pages. */
const PAGES_PER_REPORT = 1000;
/** As many zeros as the largest page has bytes. */
const ZEROS = Buffer.alloc(MAX_PAGE_BYTES);
/** Bytes at both ends of an unused range that may be remains of old content. */
const EDGE_BYTES = 16;

/** The pages of the file on the disk. `read` returns a shared buffer. */
interface Pages {
  readonly size: number;
  readonly count: number;
  readonly read: (page: number) => Buffer;
}

/** Checks the unused bytes of every page. */
export function checkUnused(file: string, { damage, progress }: Omit<CheckContext, 'db'>): CheckOutcome {
  // Block checksums find more, without false reports.
  if (isAtRest(file) && readSums(file) !== null) return { count: 0, note: 'left out: every byte has a checksum' };
  const handle = openSync(file, 'r');
  try {
    const pages = openPages(handle);
    if (pages === null) return { count: 0, note: 'left out: its header has no valid page size' };
    const free = findFreePages(pages);
    for (let page = 1; page <= pages.count; page += 1) {
      const seemsDamaged = (): boolean => {
        const bytes = pages.read(page);
        return (free.has(page) ? [bytes] : unusedOf(bytes, page)).some(hasSingleBit);
      };
      if (seemsDamaged() && seemsDamaged()) damage(null, null, `unused bytes of page ${page} have changed`);
      if (page % PAGES_PER_REPORT === 0) progress(page);
    }
    return { count: pages.count };
  } finally {
    closeSync(handle);
  }
}

/** Returns the pages of an open file; null if its header has no valid page size. */
function openPages(handle: number): Pages | null {
  const header = Buffer.alloc(FILE_HEADER_BYTES);
  readSync(handle, header, 0, FILE_HEADER_BYTES, 0);
  // 1 means the largest size, which does not fit 16 bits.
  const storedSize = header.readUInt16BE(PAGE_SIZE_OFFSET);
  const size = storedSize === 1 ? MAX_PAGE_BYTES : storedSize;
  // A power of two has no bit in common with the number below it.
  const isPowerOfTwo = (size & (size - 1)) === 0;
  if (size < MIN_PAGE_BYTES || !isPowerOfTwo) return null;
  const bytes = Buffer.alloc(size);
  const read = (page: number): Buffer => {
    readSync(handle, bytes, 0, size, (page - 1) * size);
    return bytes;
  };
  return { size, count: Math.floor(fstatSync(handle).size / size), read };
}

/** Returns the free pages, except for the trunk pages that list them. */
function findFreePages({ size, count, read }: Pages): Set<number> {
  const free = new Set<number>();
  const trunks = new Set<number>();
  let trunk = count > 0 ? read(1).readUInt32BE(FIRST_TRUNK_OFFSET) : 0;
  while (trunk > 0 && trunk <= count && !trunks.has(trunk)) {
    trunks.add(trunk);
    // Words of 4 bytes: the next trunk page, the number of pages that it lists, and these pages.
    const bytes = read(trunk);
    const listed = Math.min(bytes.readUInt32BE(4), size / 4 - 2);
    for (let index = 0; index < listed; index += 1) free.add(bytes.readUInt32BE(8 + 4 * index));
    trunk = bytes.readUInt32BE(0);
  }
  return free;
}

/** Returns the unused ranges of a tree page: the gap before its cells, and the freed blocks between its cells. */
function unusedOf(bytes: Buffer, page: number): Buffer[] {
  const start = page === 1 ? FILE_HEADER_BYTES : 0;
  const ranges = page === 1 ? [bytes.subarray(RESERVED_START, RESERVED_END)] : [];
  const headerBytes = HEADER_BYTES[bytes.readUInt8(start)];
  if (headerBytes === undefined) return ranges;
  // The header has the first freed block at offset 1, the number of cells at 3, and their start at 5 (0 is 65,536).
  const pointersEnd = start + headerBytes + POINTER_BYTES * bytes.readUInt16BE(start + 3);
  const cellsStart = bytes.readUInt16BE(start + 5) || bytes.length;
  // Skips one pointer: the pointer to the last deleted cell may still be there.
  ranges.push(bytes.subarray(pointersEnd + POINTER_BYTES, cellsStart));
  let block = bytes.readUInt16BE(start + 1);
  // Freed blocks are listed in ascending order; a list that goes back is damaged, and the integrity check reports it.
  for (let last = 0; block > last && block + FREEBLOCK_HEADER_BYTES <= bytes.length; ) {
    ranges.push(bytes.subarray(block + FREEBLOCK_HEADER_BYTES, block + bytes.readUInt16BE(block + 2)));
    last = block;
    block = bytes.readUInt16BE(block);
  }
  return ranges;
}

/** Whether all bytes are zero except for a single bit that is not near an edge. */
function hasSingleBit(bytes: Buffer): boolean {
  // Almost all unused bytes are zero, and a native comparison takes a fraction of the loop's time.
  if (bytes.equals(ZEROS.subarray(0, bytes.length))) return false;
  let nonZeroBytes = 0;
  for (const [index, byte] of bytes.entries()) {
    if (byte === 0) continue;
    nonZeroBytes += 1;
    const isInside = index >= EDGE_BYTES && index < bytes.length - EDGE_BYTES;
    // A power of two: subtracting 1 clears its only bit and sets all lower ones.
    const isSingleBit = (byte & (byte - 1)) === 0;
    if (nonZeroBytes > 1 || !isInside || !isSingleBit) return false;
  }
  return nonZeroBytes === 1;
}
