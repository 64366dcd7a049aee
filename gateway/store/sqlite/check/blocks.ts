/** Compares every byte of a closed file with the checksums from its last close (file-sums.ts). */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { BLOCK_BYTES, readSums, sumFile, sumsFileOf } from '../../file-sums.js';
import { isAtRest } from '../closed-file.js';
import type { CheckContext, CheckOutcome } from './context.js';

/** Compares the blocks of `file` with their checksums, if the file is closed. */
export function checkBlocks(file: string, { damage, progress }: Omit<CheckContext, 'db'>): CheckOutcome {
  if (!isAtRest(file)) return { count: 0, note: 'left out: it is in use, or was not closed' };
  const sums = readSums(file);
  if (sums === null) return { count: 0, note: `left out: there is no ${sumsFileOf(file)}` };
  if (sums === 'damaged') {
    damage(null, null, `${sumsFileOf(file)} is damaged: it does not match its own checksum`);
    return { count: 0 };
  }
  const found = sumFile(file, (bytes) => progress(Math.ceil(bytes / BLOCK_BYTES)));
  if (found.bytes !== sums.bytes) damage(null, null, `it has ${found.bytes} bytes; expected ${sums.bytes}`);
  sums.sums.forEach((sum, index) => {
    if (found.sums[index] === sum || found.sums[index] === undefined) return;
    const from = index * BLOCK_BYTES;
    damage(null, null, `bytes ${from} to ${from + BLOCK_BYTES - 1} have changed since it was closed`);
  });
  return { count: found.sums.length, note: acceptedNote(file) };
}

/** After accepted damage the new checksums match the damaged file; the renamed old checksums show that. */
function acceptedNote(file: string): string | null {
  const failed = readdirSync(path.dirname(file)).filter((name) =>
    name.startsWith(`${path.basename(file)}.sums.failed.`),
  );
  return failed.length === 0 ? null : `damage was accepted earlier: ${failed.join(', ')}`;
}
