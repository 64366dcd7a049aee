/**
 * The checksums of a whole file at rest: a closed store, or a backup (quality.md §2, bit rot). Sums of rows don't cover
 * what an engine stores around the rows: headers, trees, unused bytes of a page. These cover every bit, block by block.
 * They are in a file `NAME.sums` beside it, which the next start removes before it writes.
 *
 * Two lines: JSON, and the CRC-32 of that line in hex, so that damage to the sums is not taken for damage to the file.
 */
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { dropSecretFile, makeSecretFile } from '../data-folder/secret-file.js';

/** The size of a block, which has one sum, in bytes. */
export const BLOCK_BYTES = 64 * 1024;

const SUM_BYTES = 4;

/** The sums of a file. */
export interface BlockSums {
  /** The file's size in bytes. */
  readonly bytes: number;
  /** CRC-32 of each block of {@link BLOCK_BYTES}, in order. */
  readonly sums: Uint32Array;
}

/** The file that the sums of `file` are in. */
export function sumsFileOf(file: string): string {
  return `${file}.sums`;
}

/** Sums a stream, in pieces of any size. */
export class BlockSummer {
  #bytes = 0;
  #current = 0;
  readonly #sums: number[] = [];

  add(piece: Uint8Array): void {
    let at = 0;
    while (at < piece.length) {
      const room = BLOCK_BYTES - (this.#bytes % BLOCK_BYTES);
      const part = piece.subarray(at, at + room);
      this.#current = crc32(part, this.#current);
      this.#bytes += part.length;
      at += part.length;
      if (this.#bytes % BLOCK_BYTES === 0) this.#endBlock();
    }
  }

  end(): BlockSums {
    if (this.#bytes % BLOCK_BYTES !== 0) this.#endBlock();
    return { bytes: this.#bytes, sums: Uint32Array.from(this.#sums) };
  }

  #endBlock(): void {
    this.#sums.push(this.#current);
    this.#current = 0;
  }
}

/** Reads and sums a file; `onBlock` is called with the bytes read so far. */
export function sumFile(file: string, onBlock: (bytes: number) => void = () => undefined): BlockSums {
  const summer = new BlockSummer();
  const handle = openSync(file, 'r');
  try {
    const block = Buffer.allocUnsafe(BLOCK_BYTES * 16);
    let total = 0;
    for (let read = readSync(handle, block); read > 0; read = readSync(handle, block)) {
      summer.add(block.subarray(0, read));
      total += read;
      onBlock(total);
    }
  } finally {
    closeSync(handle);
  }
  return summer.end();
}

/** One checksum over all sums, to compare what was sent with what arrived. */
export function sumOfSums({ sums }: BlockSums): string {
  return hex(crc32(bytesOf(sums)));
}

/** Writes the sums beside their file, durably (mode 600). */
export function writeSums(file: string, { bytes, sums }: BlockSums): void {
  const members = { lockgate_sums: 1, bytes, block_bytes: BLOCK_BYTES, crc32: bytesOf(sums).toString('base64') };
  const line = JSON.stringify(members);
  makeSecretFile(sumsFileOf(file), `${line}\n${hex(crc32(line))}`);
}

/** Removes the sums, durably: to be called before the file is written to. */
export function dropSums(file: string): void {
  if (existsSync(sumsFileOf(file))) dropSecretFile(sumsFileOf(file));
}

/** The sums of a file; null where there are none, `damaged` where they don't fit their own checksum. */
export function readSums(file: string): BlockSums | 'damaged' | null {
  if (!existsSync(sumsFileOf(file))) return null;
  const [line = '', sum] = readFileSync(sumsFileOf(file), 'utf8').split('\n');
  if (hex(crc32(line)) !== sum) return 'damaged';
  const { bytes, crc32: text } = JSON.parse(line) as { bytes: number; crc32: string };
  const raw = Buffer.from(text, 'base64');
  const sums = Uint32Array.from({ length: raw.length / SUM_BYTES }, (_, index) => raw.readUInt32LE(index * SUM_BYTES));
  return { bytes, sums };
}

function bytesOf(sums: Uint32Array): Buffer {
  const bytes = Buffer.alloc(sums.length * SUM_BYTES);
  for (const [index, sum] of sums.entries()) bytes.writeUInt32LE(sum, index * SUM_BYTES);
  return bytes;
}

function hex(sum: number): string {
  return sum.toString(16).padStart(8, '0');
}
