/**
 * What is held against a store before anything of it is believed (quality.md §2): the checksums that were made when it
 * was closed, and the log that a kill left. What fails is never written over: the start is refused, or, where an
 * operator goes on knowingly, what proves it is put aside.
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

/** Bytes that are read at once, while those before are summed: the event loop stands still for a millisecond. */
const PIECE_BYTES = 2 * 1024 * 1024;
/** Blocks that are named one by one. */
const BLOCKS_TOLD = 5;

/** What is wrong with a store that is about to be opened. */
export interface StoreDamage {
  /** Sentences. */
  readonly what: readonly string[];
  /** Files that prove it. */
  readonly evidence: readonly EvidenceFile[];
}

/** A file to be put aside: a copy of it, where something of it may be of use yet. */
interface EvidenceFile {
  readonly file: string;
  readonly stays: boolean;
}

/** Looks; null where nothing is wrong. It changes nothing. */
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

/** Puts what proves the damage aside, durably enough: where that is cut off, the damage is found once more. */
export function moveEvidence({ evidence }: StoreDamage): string[] {
  return evidence.map(({ file, stays }) => {
    const aside = evidenceName(file);
    if (stays) copyFileSync(file, aside);
    else renameSync(file, aside);
    if (file.endsWith('-wal')) rmSync(file.replace(/-wal$/, '-shm'), { force: true });
    return aside;
  });
}

/** Puts it back, so that the next start finds the damage. To be called with no connection to the store open. */
export function restoreEvidence({ evidence }: StoreDamage, kept: readonly string[]): void {
  for (const [index, { file }] of evidence.entries()) {
    const aside = kept[index];
    if (aside !== undefined) renameSync(aside, file);
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
  const told = bad.slice(0, BLOCKS_TOLD).map((index) => `${index * BLOCK_BYTES} to ${(index + 1) * BLOCK_BYTES - 1}`);
  const more = bad.length > told.length ? ` and ${bad.length - told.length} more blocks` : '';
  return [{ what: `bytes ${told.join(', ')}${more} of ${file} are not what they were when it was closed`, evidence }];
}

function differing(expected: BlockSums, found: BlockSums): number[] {
  const indexes = [...expected.sums.keys()];
  return indexes.filter((index) => expected.sums[index] !== found.sums[index]);
}

/** Sums a file up, and lets the process do other things meanwhile. */
async function sumWhole(file: string): Promise<BlockSums> {
  const summer = new BlockSummer();
  const handle = await open(file, 'r');
  try {
    let [piece, next] = [Buffer.allocUnsafe(PIECE_BYTES), Buffer.allocUnsafe(PIECE_BYTES)];
    let reading = handle.read(piece, 0, PIECE_BYTES, null);
    for (;;) {
      const { bytesRead } = await reading;
      if (bytesRead === 0) return summer.end();
      reading = handle.read(next, 0, PIECE_BYTES, null);
      summer.add(piece.subarray(0, bytesRead));
      [piece, next] = [next, piece];
    }
  } finally {
    await handle.close();
  }
}
