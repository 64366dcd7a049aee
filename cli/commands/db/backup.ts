/**
 * `lockgate db backup`: downloads a backup from the gateway that runs on the data folder, or copies the store if no
 * gateway runs. The backup is written to a temporary file, which is renamed when it is complete and on the disk.
 */
import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, statSync, writeSync } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { moveSecretFile } from '../../../gateway/data-folder/secret-file.js';
import { SUM_HEADER } from '../../../gateway/http/operator/routes/backup-route.js';
import {
  BlockSummer,
  type BlockSums,
  dropSums,
  sumOfSums,
  sumsFileOf,
  writeSums,
} from '../../../gateway/store/file-sums.js';
import {
  describeBackup,
  type LockedStore,
  lockStore,
  removeBackup,
  storeFileOf,
} from '../../../gateway/store/store-at-rest.js';
import { systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { formatDate } from '../../../proto/wire/ping-json.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { print, printJson, printNote } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { dataFolder } from './check.js';

/** The flags of `lockgate db backup`. */
export interface BackupFlags extends ConnectionFlags {
  readonly out: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

/** What a backup does not contain, in addition to the key. */
const ALSO_NOT_INCLUDED = 'the operator’s token, TLS certificates';

/** Writes the backup to `--out`. @throws LockgateError `input-out`, `no-room`, or the gateway's error */
export async function backUp(flags: BackupFlags): Promise<void> {
  const out = path.resolve(flags.out);
  if (!existsSync(path.dirname(out)))
    throw new LockgateError('input-out', `the folder ${path.dirname(out)} of ${flags.out} does not exist`);
  if (existsSync(out) && !statSync(out).isFile())
    throw new LockgateError('input-out', `${flags.out} is not a file: expected a file or a new name`);
  if (existsSync(out) && flags.force !== true)
    throw new LockgateError('input-out', `${flags.out} exists already; --force overwrites it`);
  const startedAtMs = systemClock.now();
  const tempFile = `${out}.part`;
  const { from, sums, schema, keyId } = await writeBackup(tempFile, out, flags).catch((error: unknown) => {
    cleanUp(tempFile);
    throw toUserError(error, flags.out);
  });
  const startedAt = formatDate(startedAtMs);
  if (flags.json)
    return printJson({
      file: out,
      bytes: sums.bytes,
      schema,
      from,
      began_at: startedAt,
      key_id: keyId,
      not_included: ['key', 'operator-token', 'tls'],
    });
  print(`${flags.out} contains everything acknowledged before ${startedAt}: ${sums.bytes.toLocaleString('en')} bytes.`);
  const key = keyId === null ? 'The key' : `The key (${keyId})`;
  printNote(`${key} is not included: back it up separately. Without it the backup can’t be used.`);
  printNote(`Also not included: ${ALSO_NOT_INCLUDED}. Next: lockgate db check ${flags.out}`);
}

/** Writes `tempFile`, then renames it to `out`. */
async function writeBackup(tempFile: string, out: string, flags: BackupFlags) {
  const written = await writeTempFile(tempFile, flags);
  const described = describeBackup(tempFile);
  writeSums(tempFile, written.sums);
  // Before the rename: after an interruption there must be no checksums of another file.
  dropSums(out);
  renameSync(tempFile, out);
  moveSecretFile(sumsFileOf(tempFile), sumsFileOf(out));
  return { ...written, ...described };
}

function cleanUp(tempFile: string): void {
  try {
    removeBackup(tempFile);
    dropSums(tempFile);
  } catch {
    // The error of the backup matters more than a leftover file.
  }
}

/** Converts errors of the backup's disk to errors with a sentence for the user. */
function toUserError(error: unknown, out: string): unknown {
  // writeSums throws a LockgateError whose cause is the disk's error.
  const { code } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new LockgateError('no-room', `${out} can’t be written: its disk is full`, { cause: error });
  const why = WRITE_REFUSALS[code ?? ''];
  if (why === undefined) return error;
  return new LockgateError('input-out', `${out} can’t be written: ${why}`, { cause: error });
}

const WRITE_REFUSALS: Readonly<Record<string, string>> = {
  EACCES: 'you have no permission to write there',
  EPERM: 'you have no permission to write there',
  EROFS: 'its disk is read-only',
  ENOENT: 'there is no such folder',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  ENAMETOOLONG: 'its name is too long',
};

/** Writes the backup to `tempFile`: from the gateway, or from the data folder if no gateway runs on it. */
async function writeTempFile(tempFile: string, flags: BackupFlags): Promise<{ from: string; sums: BlockSums }> {
  const store = lockFolder(flags);
  try {
    if (store === null) return { from: 'gateway', sums: await download(tempFile, flags) };
    return { from: 'folder', sums: await copyFolder(tempFile, store) };
  } finally {
    store?.release();
  }
}

/** Locks the data folder. Returns null if a gateway runs on it or is named by a flag. */
function lockFolder(flags: BackupFlags): LockedStore | null {
  if (flags.gateway !== undefined || process.env.LOCKGATE_GATEWAY !== undefined) return null;
  const folder = dataFolder(flags);
  if (!existsSync(storeFileOf(folder)))
    throw new LockgateError('input-data', `${folder} contains no store: name another folder or a gateway`);
  return lockStore(folder);
}

async function copyFolder(tempFile: string, store: LockedStore): Promise<BlockSums> {
  let text = 'Copying';
  const progress = new ProgressLine(() => text);
  const onProgress = (done: number, total: number): void => {
    text = `Copying: ${percent(done, total)} of ${total.toLocaleString('en')} pages`;
  };
  try {
    return await store.copyTo(tempFile, onProgress);
  } finally {
    progress.end();
  }
}

async function download(tempFile: string, flags: BackupFlags): Promise<BlockSums> {
  const client = new GatewayClient(flags);
  let text = 'The gateway is copying its store';
  const progress = new ProgressLine(() => text);
  const handle = openSync(tempFile, 'w', 0o600);
  try {
    // The mode given to `openSync` has no effect on a file that an interrupted backup left behind.
    chmodSync(tempFile, 0o600);
    const interrupted = untilInterrupted();
    const answer = await client.download('/backup', interrupted.signal);
    const total = Number(answer.headers['content-length']);
    const blockSums = new BlockSummer();
    let bytes = 0;
    // A broken connection is not thrown: the checksum below detects it and gives a better message.
    await pipeline(answer, async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        blockSums.add(chunk);
        writeAll(handle, chunk);
        bytes += chunk.length;
        text = `Receiving: ${percent(bytes, total)} of ${total.toLocaleString('en')} bytes`;
      }
    }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    });
    const sums = blockSums.finish();
    if (sumOfSums(sums) !== answer.headers[SUM_HEADER])
      throw new LockgateError('gateway-answer', `the backup is incomplete: ${bytes} of ${total} bytes arrived`);
    fsyncSync(handle);
    return sums;
  } finally {
    progress.end();
    closeSync(handle);
  }
}

/** Writes until all bytes are written: a call of `writeSync` may write only some. */
function writeAll(handle: number, chunk: Buffer): void {
  for (let offset = 0; offset < chunk.length; ) offset += writeSync(handle, chunk, offset);
}

function percent(done: number, total: number): string {
  return `${Math.floor((100 * done) / Math.max(total, 1))} %`;
}
