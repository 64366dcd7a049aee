/**
 * Lets a command such as `trace why` read a trace twice. A file is read again from the disk; the standard input is
 * first copied to a temporary file (a spool), which is removed at the end.
 */
import { createWriteStream, rmSync } from 'node:fs';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { makeTemporaryFolder } from '../../../gateway/temporary-folder.js';
import { LockgateError } from '../../../proto/errors.js';
import { readTraceFile, type TraceVisitor } from './trace-file.js';

/** A trace that can be read more than once. */
export interface SpooledTrace {
  /** The file on the disk: the user’s, or the temporary copy of the standard input. */
  readonly path: string;
  /** Reads the trace from its start to its end. @throws LockgateError as {@link readTraceFile} */
  read(visitor: TraceVisitor): Promise<void>;
}

/** The first two bytes of gzipped data (RFC 1952). */
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/** Calls `work` with the trace, and removes the temporary file afterwards. `-` is the standard input. */
export async function withSpooledTrace<T>(file: string, work: (trace: SpooledTrace) => Promise<T>): Promise<T> {
  if (file !== '-') return await work({ path: file, read: (visitor) => readTraceFile(file, visitor) });
  const folder = makeTemporaryFolder('trace');
  try {
    const copy = await copyInput(folder);
    return await work({
      path: copy,
      read: (visitor) => readTraceFile(copy, visitor).catch((error) => rethrow(error, copy)),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Copies the bytes of the standard input, gzipped or not, and returns the copy's path. The name of a gzipped copy ends
 * in `.gz`.
 */
async function copyInput(folder: string): Promise<string> {
  const input = process.stdin[Symbol.asyncIterator]() as AsyncIterator<Buffer | string>;
  let firstBytes = Buffer.alloc(0);
  let isEnd = false;
  while (firstBytes.length < GZIP_MAGIC.length && !isEnd) {
    const { value, done = false } = await input.next();
    isEnd = done;
    if (!done) firstBytes = Buffer.concat([firstBytes, Buffer.from(value)]);
  }
  const isGzipped = firstBytes.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC);
  const copy = path.join(folder, isGzipped ? 'input.jsonl.gz' : 'input.jsonl');
  const chunks = new PassThrough();
  const written = pipeline(chunks, createWriteStream(copy, { mode: 0o600 }));
  chunks.write(firstBytes);
  while (!isEnd) {
    const { value, done = false } = await input.next();
    isEnd = done;
    if (!done && !chunks.write(value)) await new Promise((resolve) => chunks.once('drain', resolve));
  }
  chunks.end();
  await written;
  return copy;
}

/** Throws the error again; its message names the standard input instead of the temporary copy. */
function rethrow(error: unknown, copy: string): never {
  if (!(error instanceof LockgateError)) throw error;
  throw new LockgateError(error.code, error.message.replaceAll(copy, 'standard input'));
}
