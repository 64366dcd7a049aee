/**
 * Checks a store before it is opened (quality.md §2): the file against the checksums from its last close, and the
 * write-ahead log (WAL) that a killed gateway left. Damaged files are never overwritten: the start is refused or, if an
 * operator accepts the damage, the evidence files are renamed.
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

/** Bytes per read. The checksum of a chunk, computed during the next read, blocks the event loop for a millisecond. */
const CHUNK_BYTES = 2 * 1024 * 1024;
/** Maximum number of damaged blocks that the sentence lists. */
const MAX_LISTED_BLOCKS = 5;

/** The damage of a store that was to be opened. */
export interface StoreDamage {
  /** A sentence for each finding. */
  readonly what: readonly string[];
  /** The files that prove the damage. */
  readonly evidence: readonly EvidenceFile[];
}

/** An evidence file. It is renamed, or copied if it `stays`, since the store still needs it. */
interface EvidenceFile {
  readonly file: string;
  readonly stays: boolean;
}

/** Looks for damage; null if there is none. Changes nothing. */
export async function findStoreDamage(file: string): Promise<StoreDamage | null> {
  const findings = [...findWalDamage(file), ...(await findBlockDamage(file))];
  if (findings.length === 0) return null;
  const evidence = withoutDuplicates(findings.map((finding) => finding.evidence));
  return { what: findings.map(({ what }) => what), evidence };
}

function withoutDuplicates(evidence: readonly EvidenceFile[]): EvidenceFile[] {
  return [...new Map(evidence.map((each) => [each.file, each])).values()];
}

/** Refuses a damaged store. @throws LockgateError `store-damaged` with the damage and the remedies */
export function refuseDamage(file: string, { what }: StoreDamage): never {
  const folder = path.dirname(file);
  throw new LockgateError(
    'store-damaged',
    `the store is damaged and was not changed: ${what.join('; ')}. “lockgate db check” has more; restore a backup, ` +
      `or, to continue with the damaged store, “lockgate db accept --data ${folder}”`,
  );
}

/**
 * Renames the evidence files and returns their new names. After an interruption the next start finds the damage again.
 * With a WAL, its index (`-shm`) is deleted, which SQLite makes again from whatever WAL it finds.
 */
export function moveEvidence({ evidence }: StoreDamage): string[] {
  return evidence.map(({ file, stays }) => {
    const moved = evidenceName(file);
    if (stays) copyFileSync(file, moved);
    else renameSync(file, moved);
    if (file.endsWith('-wal')) rmSync(file.replace(/-wal$/, '-shm'), { force: true });
    return moved;
  });
}

/**
 * Undoes {@link moveEvidence}, so that the next start finds the damage. A copied file is replaced by its copy, since
 * SQLite may have changed it. No connection to the store may be open.
 */
export function restoreEvidence({ evidence }: StoreDamage, movedTo: readonly string[]): void {
  for (const [index, { file }] of evidence.entries()) {
    const moved = movedTo[index];
    if (moved !== undefined) renameSync(moved, file);
    if (file.endsWith('-wal')) rmSync(file.replace(/-wal$/, '-shm'), { force: true });
  }
}

/** A damaged place: a sentence, and the file that proves it. */
type Finding = { readonly what: string; readonly evidence: EvidenceFile };

function findWalDamage(file: string): Finding[] {
  const wal = `${file}-wal`;
  if (isWalLost(file)) {
    const what = `${wal} is missing; it had the latest commits before the gateway was killed`;
    return [{ what, evidence: { file: runningFileOf(file), stays: false } }];
  }
  if (isAtRest(file)) return [];
  const evidence = { file: wal, stays: false };
  if (existsSync(sumsFileOf(file)))
    return [{ what: `${file} was closed cleanly, but there is a newer ${wal}`, evidence }];
  if (isWalForeign(file)) return [{ what: `${wal} is another store’s`, evidence }];
  const findings: Finding[] = [];
  checkWal(file, {
    damage: (_table, _row, what) => findings.push({ what: `${wal}: ${what}`, evidence: { file: wal, stays: true } }),
    progress: () => undefined,
  });
  return findings;
}

async function findBlockDamage(file: string): Promise<Finding[]> {
  const sums = readSums(file);
  if (sums === null) return [];
  const evidence = { file: sumsFileOf(file), stays: false };
  if (sums === 'damaged') return [{ what: `${sumsFileOf(file)} does not match its own checksum`, evidence }];
  const { size } = statSync(file);
  if (size !== sums.bytes) return [{ what: `${file} has ${size} bytes; expected ${sums.bytes}`, evidence }];
  const badBlocks = findDiffering(sums, await sumAsync(file));
  if (badBlocks.length === 0) return [];
  const listed = badBlocks
    .slice(0, MAX_LISTED_BLOCKS)
    .map((index) => `${index * BLOCK_BYTES} to ${(index + 1) * BLOCK_BYTES - 1}`);
  const more = badBlocks.length > listed.length ? ` and ${badBlocks.length - listed.length} more blocks` : '';
  return [{ what: `bytes ${listed.join(', ')}${more} of ${file} have changed since it was closed`, evidence }];
}

/** The indexes of the blocks whose checksums differ. */
function findDiffering(expected: BlockSums, actual: BlockSums): number[] {
  const indexes = [...expected.sums.keys()];
  return indexes.filter((index) => expected.sums[index] !== actual.sums[index]);
}

/** Computes the checksums of a file without blocking the event loop for long. */
async function sumAsync(file: string): Promise<BlockSums> {
  const summer = new BlockSummer();
  const handle = await open(file, 'r');
  try {
    // Two buffers take turns: one is read into while the other is summed.
    let [chunk, next] = [Buffer.allocUnsafe(CHUNK_BYTES), Buffer.allocUnsafe(CHUNK_BYTES)];
    let reading = handle.read(chunk, 0, CHUNK_BYTES, null);
    for (;;) {
      const { bytesRead } = await reading;
      if (bytesRead === 0) return summer.finish();
      reading = handle.read(next, 0, CHUNK_BYTES, null);
      summer.add(chunk.subarray(0, bytesRead));
      [chunk, next] = [next, chunk];
    }
  } finally {
    await handle.close();
  }
}
