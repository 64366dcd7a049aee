/**
 * Bytes that mean nothing: between the cells of a page, in pages that are free. SQLite's own check doesn't look there.
 * Stores are written with `secure_delete`, so what was freed is zero; what a page that was split leaves behind is not,
 * and says nothing. So what is told is a stretch that is all zero but for one bit, well inside it: nobody writes that.
 * At its edges the last byte of what was left there may look so: ten pages did of a sound store of a million pings.
 *
 * In a store that is in use too: a page that is met half-written is whole a moment later.
 *
 * https://www.sqlite.org/fileformat2.html#b_tree_pages
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { readSums } from '../../file-sums.js';
import { isAtRest } from '../closed-file.js';
import type { CheckContext, CheckOutcome } from './context.js';

const FILE_HEADER_BYTES = 100;
const PAGE_SIZE_AT = 16;
const FIRST_TRUNK_AT = 32;
/** For later versions of the format: zero. */
const SPARE_FROM = 72;
const SPARE_TO = 92;
/** Bytes of a page's own header, by its type; other pages are none of a tree. */
const HEADER_BYTES: Readonly<Record<number, number>> = { 2: 12, 5: 12, 10: 8, 13: 8 };
const FREEBLOCK_HEAD = 4;
const POINTER_BYTES = 2;
const LARGEST_PAGE = 65_536;
/** Bytes at both ends of a stretch that may be what is left of something. */
const EDGE_BYTES = 16;

/** A page of the file as it lies on the disk. */
interface Pages {
  readonly size: number;
  readonly count: number;
  readonly read: (page: number) => Buffer;
}

/** Checks the unused bytes of every page. */
export function checkUnused(file: string, { damage, progress }: Omit<CheckContext, 'db'>): CheckOutcome {
  // Sums see more, and are never wrong.
  if (isAtRest(file) && readSums(file) !== null) return { count: 0, note: 'left out: every byte has a checksum' };
  const handle = openSync(file, 'r');
  try {
    const pages = openPages(handle);
    if (pages === null) return { count: 0, note: 'left out: its header doesn’t say how large a page is' };
    const free = freePages(pages);
    for (let page = 1; page <= pages.count; page += 1) {
      const isOdd = (): boolean => {
        const bytes = pages.read(page);
        return (free.has(page) ? [bytes] : unusedOf(bytes, page)).some(hasOneBit);
      };
      if (isOdd() && isOdd()) damage(null, null, `unused bytes of page ${page} are not as they were left`);
      if (page % 1000 === 0) progress(page);
    }
    return { count: pages.count };
  } finally {
    closeSync(handle);
  }
}

function openPages(handle: number): Pages | null {
  const header = Buffer.alloc(FILE_HEADER_BYTES);
  readSync(handle, header, 0, FILE_HEADER_BYTES, 0);
  const stored = header.readUInt16BE(PAGE_SIZE_AT);
  const size = stored === 1 ? LARGEST_PAGE : stored;
  if (size < 512 || (size & (size - 1)) !== 0) return null;
  const bytes = Buffer.alloc(size);
  const read = (page: number): Buffer => {
    readSync(handle, bytes, 0, size, (page - 1) * size);
    return bytes;
  };
  return { size, count: Math.floor(fstatSync(handle).size / size), read };
}

/** The leaves of the list of free pages; its trunks say which they are. */
function freePages({ size, count, read }: Pages): Set<number> {
  const free = new Set<number>();
  const trunks = new Set<number>();
  let trunk = count > 0 ? read(1).readUInt32BE(FIRST_TRUNK_AT) : 0;
  while (trunk > 0 && trunk <= count && !trunks.has(trunk)) {
    trunks.add(trunk);
    const bytes = read(trunk);
    const leaves = Math.min(bytes.readUInt32BE(4), size / 4 - 2);
    for (let index = 0; index < leaves; index += 1) free.add(bytes.readUInt32BE(8 + 4 * index));
    trunk = bytes.readUInt32BE(0);
  }
  return free;
}

/** What of a tree's page holds nothing: the gap before its cells, and the blocks that were freed among them. */
function unusedOf(bytes: Buffer, page: number): Buffer[] {
  const from = page === 1 ? FILE_HEADER_BYTES : 0;
  const stretches = page === 1 ? [bytes.subarray(SPARE_FROM, SPARE_TO)] : [];
  const headerBytes = HEADER_BYTES[bytes.readUInt8(from)];
  if (headerBytes === undefined) return stretches;
  const pointersEnd = from + headerBytes + POINTER_BYTES * bytes.readUInt16BE(from + 3);
  const cells = bytes.readUInt16BE(from + 5) || bytes.length;
  // The pointer to a cell that went last may still stand there.
  stretches.push(bytes.subarray(pointersEnd + POINTER_BYTES, cells));
  let block = bytes.readUInt16BE(from + 1);
  for (let last = 0; block > last && block + FREEBLOCK_HEAD <= bytes.length; ) {
    stretches.push(bytes.subarray(block + FREEBLOCK_HEAD, block + bytes.readUInt16BE(block + 2)));
    last = block;
    block = bytes.readUInt16BE(block);
  }
  return stretches;
}

/** A single bit, and not at an edge. */
function hasOneBit(bytes: Buffer): boolean {
  let bits = 0;
  for (const [at, byte] of bytes.entries()) {
    if (byte === 0) continue;
    bits += 1;
    const isInside = at >= EDGE_BYTES && at < bytes.length - EDGE_BYTES;
    if (bits > 1 || !isInside || (byte & (byte - 1)) !== 0) return false;
  }
  return bits === 1;
}
