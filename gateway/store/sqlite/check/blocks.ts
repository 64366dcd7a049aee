/** Compares every byte of a closed file with the checksums from its last close (file-sums.ts). */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { BLOCK_BYTES, readSums, sumFile, sumsFileOf } from '../../file-sums.js';
import { isAtRest } from '../closed-file.js';
import type { CheckContext, CheckOutcome } from './context.js';

/**
 * Compares the blocks of `file` with their checksums, if the file is closed. A block belongs to no known table or row,
 * so both are null in the reports of damage.
 */
export function checkBlocks(file: string, { damage, progress }: Omit<CheckContext, 'db'>): CheckOutcome {
  if (!isAtRest(file)) return { count: 0, note: 'left out: it is in use, or was not closed' };
  const sums = readSums(file);
  if (sums === null) return { count: 0, note: `left out: there is no ${sumsFileOf(file)}` };
  if (sums === 'damaged') {
    damage(null, null, `${sumsFileOf(file)} is damaged: it does not match its own checksum`);
    return { count: 0 };
  }
  const actual = sumFile(file, (bytes) => progress(Math.ceil(bytes / BLOCK_BYTES)));
  if (actual.bytes !== sums.bytes) damage(null, null, `it has ${actual.bytes} bytes; expected ${sums.bytes}`);
  sums.sums.forEach((sum, index) => {
    // Blocks that are missing at the end are reported above, by the file's size.
    if (actual.sums[index] === sum || actual.sums[index] === undefined) return;
    const firstByte = index * BLOCK_BYTES;
    damage(null, null, `bytes ${firstByte} to ${firstByte + BLOCK_BYTES - 1} have changed since it was closed`);
  });
  return { count: actual.sums.length, note: acceptedNote(file) };
}

/**
 * A note that damage was accepted earlier; null if none was. The present checksums then match the damaged file, and the
 * old ones were renamed.
 */
function acceptedNote(file: string): string | null {
  const oldSums = readdirSync(path.dirname(file)).filter((name) =>
    name.startsWith(`${path.basename(file)}.sums.failed.`),
  );
  return oldSums.length === 0 ? null : `damage was accepted earlier: ${oldSums.join(', ')}`;
}
