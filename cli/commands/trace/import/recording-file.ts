/**
 * Reads the bytes of a recording: a file, or `-` for the standard input. Gzipped input is recognised by its first
 * bytes.
 */
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { LockgateError } from '../../../../proto/errors.js';

const CHUNK_BYTES = 256 * 1024;
/** The first two bytes of gzipped data (RFC 1952). */
const GZIP_MAGIC = [0x1f, 0x8b] as const;

/** The name of a file in errors and reports. */
export function displayName(file: string): string {
  return file === '-' ? 'standard input' : file;
}

/** The file's bytes, unzipped. @throws LockgateError `input-file` if it can't be read or unzipped */
export async function* readRecording(file: string): AsyncGenerator<Uint8Array> {
  const source = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: CHUNK_BYTES });
  try {
    yield* unzipped(source as AsyncIterable<Buffer>);
  } catch (error) {
    throw fileError(displayName(file), error);
  } finally {
    if (source !== process.stdin) source.destroy();
  }
}

/** Unzips the bytes if they start as gzip does. */
async function* unzipped(source: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]();
  let first = await chunks.next();
  // A pipe may deliver single bytes; two are needed to recognise gzip.
  while (first.done !== true && first.value.length < GZIP_MAGIC.length) {
    const more = await chunks.next();
    if (more.done === true) break;
    first = { done: false, value: Buffer.concat([first.value, more.value]) };
  }
  if (first.done === true) return;
  const isGzipped = GZIP_MAGIC.every((byte, index) => first.value[index] === byte);
  const allBytes = prepend(first.value, chunks);
  if (!isGzipped) yield* allBytes;
  else yield* gunzip(allBytes);
}

/** The first chunk, and then the remaining ones. */
async function* prepend(first: Buffer, chunks: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
}

async function* gunzip(bytes: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  const stream = createGunzip({ chunkSize: CHUNK_BYTES });
  const source = Readable.from(bytes, { objectMode: false });
  source.on('error', (error) => stream.destroy(error));
  for await (const chunk of source.pipe(stream)) yield chunk as Buffer;
}

function fileError(name: string, error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return new LockgateError('input-file', `there is no file ${name}`);
  if (code === 'EISDIR') return new LockgateError('input-file', `${name} is a folder: expected a recording`);
  if (code === 'EACCES' || code === 'EPERM') return new LockgateError('input-file', `no permission to read ${name}`);
  if (code === 'Z_BUF_ERROR')
    return new LockgateError('input-file', `${name}: the gzipped file is truncated: expected its remaining bytes`);
  if (code?.startsWith('Z_'))
    return new LockgateError('input-file', `${name} can’t be unzipped (${message}): expected a complete gzip file`);
  return error;
}
