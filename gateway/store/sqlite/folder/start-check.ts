/**
 * Checks a store before anything in it is trusted (quality.md §2): against the checksums from when it was closed, and
 * the WAL that a kill left. What fails is never overwritten: the start is refused or, where an operator accepts the
 * damage, the files of evidence are renamed.
 */
import { copyFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { LockgateError } from '../../../../proto/errors.js';
import { BLOCK_BYTES, BlockSummer, type BlockSums, readSums, sumsFileOf } from '../../file-sums.js';
import { checkWal } from '../check/wal.js';
import { isAtRest } from '../closed-file.js';
import { evidenceName } from './folder-access.js';
import { isWalForeign, isWalLost, runningFileOf } from './wal-presence.js';

/** Bytes that are read at once, while those before are summed: that blocks the event loop for a millisecond. */
const PIECE_BYTES = 2 * 1024 * 1024;
/** Damaged blocks that are listed one by one. */
const BLOCKS_LISTED = 5;

/** What is wrong with a store that is about to be opened. */
export interface StoreDamage {
  /** Sentences. */
  readonly what: readonly string[];
  /** Files that are evidence of it. */
  readonly evidence: readonly EvidenceFile[];
}

/** A file of evidence. It is renamed; one that `stays` is copied, since the store still needs it. */
interface EvidenceFile {
  readonly file: string;
  readonly stays: boolean;
}

/** Looks for damage; null where there is none. It changes nothing. */
export async function findStoreDamage(file: string): Promise<StoreDamage | null> {
  const found = [...findWalDamage(file), ...(await findBlockDamage(file))];
  if (found.length === 0) return null;
  return { what: found.map(({ what }) => what), evidence: distinct(found.map(({ evidence }) => evidence)) };
}

function distinct(evidence: readonly EvidenceFile[]): EvidenceFile[] {
  return [...new Map(evidence.map((each) => [each.file, each])).values()];
}

/** @throws LockgateError `store-damaged` with what was found, and what to do */
export function refuseDamage(file: string, { what }: StoreDamage): never {
  const folder = path.dirname(file);
  throw new LockgateError(
    'store-damaged',
    `the store is damaged and was left as it is: ${what.join('; ')}. “lockgate db check” has more; restore a backup, ` +
      `or, to go on with what is there, “lockgate db accept --data ${folder}”`,
  );
}

/** Renames the files of evidence. Where that is interrupted, the next start finds the damage again. */
export function moveEvidence({ evidence }: StoreDamage): string[] {
  return evidence.map(({ file, stays }) => {
    const moved = evidenceName(file);
    if (stays) copyFileSync(file, moved);
    else renameSync(file, moved);
    if (file.endsWith('-wal')) rmSync(file.replace(/-wal$/, '-shm'), { force: true });
    return moved;
  });
}

/** Undoes that, so that the next start finds the damage. No connection to the store may be open. */
export function restoreEvidence({ evidence }: StoreDamage, movedTo: readonly string[]): void {
  for (const [index, { file }] of evidence.entries()) {
    const moved = movedTo[index];
    if (moved !== undefined) renameSync(moved, file);
    if (file.endsWith('-wal')) rmSync(file.replace(/-wal$/, '-shm'), { force: true });
  }
}

type Found = { readonly what: string; readonly evidence: EvidenceFile };

function findWalDamage(file: string): Found[] {
  const wal = `${file}-wal`;
  if (isWalLost(file)) {
    const what = `${wal} is missing, and it had what was stored before the gateway was killed`;
    return [{ what, evidence: { file: runningFileOf(file), stays: false } }];
  }
  if (isAtRest(file)) return [];
  const evidence = { file: wal, stays: false };
  if (existsSync(sumsFileOf(file)))
    return [{ what: `${file} was closed in order, and is no more: ${wal} is new`, evidence }];
  if (isWalForeign(file)) return [{ what: `${wal} is another store’s`, evidence }];
  const found: Found[] = [];
  checkWal(file, {
    damage: (_table, _row, what) => found.push({ what: `${wal}: ${what}`, evidence: { file: wal, stays: true } }),
    progress: () => undefined,
  });
  return found;
}

async function findBlockDamage(file: string): Promise<Found[]> {
  const sums = readSums(file);
  if (sums === null) return [];
  const evidence = { file: sumsFileOf(file), stays: false };
  if (sums === 'damaged') return [{ what: `${sumsFileOf(file)} does not fit its own checksum`, evidence }];
  const { size } = statSync(file);
  if (size !== sums.bytes) return [{ what: `${file} has ${size} bytes; expected ${sums.bytes}`, evidence }];
  const bad = differing(sums, await sumWhole(file));
  if (bad.length === 0) return [];
  const listed = bad
    .slice(0, BLOCKS_LISTED)
    .map((index) => `${index * BLOCK_BYTES} to ${(index + 1) * BLOCK_BYTES - 1}`);
  const more = bad.length > listed.length ? ` and ${bad.length - listed.length} more blocks` : '';
  return [{ what: `bytes ${listed.join(', ')}${more} of ${file} are not what they were when it was closed`, evidence }];
}

function differing(expected: BlockSums, found: BlockSums): number[] {
  const indexes = [...expected.sums.keys()];
  return indexes.filter((index) => expected.sums[index] !== found.sums[index]);
}

/** Sums a file, without blocking the event loop. */
async function sumWhole(file: string): Promise<BlockSums> {
  const summer = new BlockSummer();
  const handle = await open(file, 'r');
  try {
    let [piece, next] = [Buffer.allocUnsafe(PIECE_BYTES), Buffer.allocUnsafe(PIECE_BYTES)];
    let reading = handle.read(piece, 0, PIECE_BYTES, null);
    for (;;) {
      const { bytesRead } = await reading;
      if (bytesRead === 0) return summer.finish();
      reading = handle.read(next, 0, PIECE_BYTES, null);
      summer.add(piece.subarray(0, bytesRead));
      [piece, next] = [next, piece];
    }
  } finally {
    await handle.close();
  }
}
