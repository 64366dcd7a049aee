/**
 * Block checksums of a file that is not open: a closed store, or a backup (quality.md §2, bit rot). The checksums of
 * rows don't cover what an engine stores around the rows: headers, trees, unused bytes of a page. Block checksums cover
 * every bit. They are stored next to the file `NAME` in `NAME.sums`, which the next start deletes before it writes to
 * `NAME`.
 *
 * A `.sums` file has two lines: JSON, and the CRC-32 of the JSON line in hex, so that damage to the checksums is not
 * mistaken for damage to the file.
 */
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { deleteSecretFile, writeSecretFile } from '../data-folder/secret-file.js';

/** The size of a block in bytes. Each block has one checksum. */
export const BLOCK_BYTES = 64 * 1024;

const SUM_BYTES = 4;
const BLOCKS_PER_READ = 16;

/** The checksums of a file. */
export interface BlockSums {
  /** The file's size in bytes. */
  readonly bytes: number;
  /** CRC-32 of each block of {@link BLOCK_BYTES}, in order. */
  readonly sums: Uint32Array;
}

/** Returns the path of the `.sums` file of `file`. */
export function sumsFileOf(file: string): string {
  return `${file}.sums`;
}

/** Computes the checksums of a stream, given in chunks of any size. */
export class BlockSummer {
  /** The number of bytes so far. */
  #bytes = 0;
  /** The checksum of the current block so far. */
  #current = 0;
  readonly #sums: number[] = [];

  add(chunk: Uint8Array): void {
    let offset = 0;
    while (offset < chunk.length) {
      const blockRemainder = BLOCK_BYTES - (this.#bytes % BLOCK_BYTES);
      const blockPart = chunk.subarray(offset, offset + blockRemainder);
      this.#current = crc32(blockPart, this.#current);
      this.#bytes += blockPart.length;
      offset += blockPart.length;
      if (this.#bytes % BLOCK_BYTES === 0) this.#finishBlock();
    }
  }

  finish(): BlockSums {
    if (this.#bytes % BLOCK_BYTES !== 0) this.#finishBlock();
    return { bytes: this.#bytes, sums: Uint32Array.from(this.#sums) };
  }

  #finishBlock(): void {
    this.#sums.push(this.#current);
    this.#current = 0;
  }
}

/** Reads a file and computes its checksums; calls `onRead` with the number of bytes read so far. */
export function sumFile(file: string, onRead: (bytes: number) => void = () => undefined): BlockSums {
  const summer = new BlockSummer();
  const handle = openSync(file, 'r');
  try {
    const buffer = Buffer.allocUnsafe(BLOCKS_PER_READ * BLOCK_BYTES);
    let totalBytes = 0;
    for (let bytesRead = readSync(handle, buffer); bytesRead > 0; bytesRead = readSync(handle, buffer)) {
      summer.add(buffer.subarray(0, bytesRead));
      totalBytes += bytesRead;
      onRead(totalBytes);
    }
  } finally {
    closeSync(handle);
  }
  return summer.finish();
}

/** Returns one checksum over all block checksums, to compare what was sent with what arrived. */
export function sumOfSums({ sums }: BlockSums): string {
  return hex(crc32(bytesOf(sums)));
}

/** Writes the `.sums` file of `file`, durably (mode 600). */
export function writeSums(file: string, { bytes, sums }: BlockSums): void {
  // `lockgate_sums` is the version of the format.
  const members = { lockgate_sums: 1, bytes, block_bytes: BLOCK_BYTES, crc32: bytesOf(sums).toString('base64') };
  const line = JSON.stringify(members);
  writeSecretFile(sumsFileOf(file), `${line}\n${hex(crc32(line))}`);
}

/** Deletes the `.sums` file of `file`, durably. Must be called before `file` is written to. */
export function dropSums(file: string): void {
  if (existsSync(sumsFileOf(file))) deleteSecretFile(sumsFileOf(file));
}

/** Reads the checksums of a file; null if there are none, `damaged` if the `.sums` file fails its own checksum. */
export function readSums(file: string): BlockSums | 'damaged' | null {
  if (!existsSync(sumsFileOf(file))) return null;
  const [line = '', sum] = readFileSync(sumsFileOf(file), 'utf8').split('\n');
  if (hex(crc32(line)) !== sum) return 'damaged';
  const { bytes, crc32: sumsBase64 } = JSON.parse(line) as { bytes: number; crc32: string };
  const sumsBytes = Buffer.from(sumsBase64, 'base64');
  const sums = Uint32Array.from({ length: sumsBytes.length / SUM_BYTES }, (_, index) =>
    sumsBytes.readUInt32LE(index * SUM_BYTES),
  );
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
