/**
 * Reads a trace file line by line. A file may be larger than memory; the length of a line is limited. `-` is the
 * standard input. Input is unzipped if its name ends in `.gz` (protocol.md §4) or if it starts with the bytes of gzip.
 */
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { LockgateError } from '../../../proto/errors.js';
import type { TraceNotes } from '../../../proto/trace/notes.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent, TraceHeader } from '../../../proto/trace/trace.js';

/** The maximum length of a line. A line with an uplink (a message of a lock) of 1,024 bytes has some 3,000 bytes. */
const MAX_LINE_BYTES = 1024 * 1024;
/** The maximum length of the header: some 150 bytes per lock, and a simulated fleet has up to 100,000 locks. */
const MAX_HEADER_BYTES = 32 * 1024 * 1024;

/** Bytes that are read or unzipped at once. */
const CHUNK_BYTES = 1024 * 1024;

const NEWLINE = 10;
const CARRIAGE_RETURN = 13;

/** Callbacks for the lines of a trace. */
export interface TraceVisitor {
  /** Called once, before all events. */
  header(header: TraceHeader): void;
  /** Called for each event in order. The header is line 1. `raw` is the uplink's bytes; null if the line has none. */
  event(event: TraceEvent, line: number, raw: Uint8Array | null): void;
  /** Called after each chunk of some thousand lines and at the end of the file. Reading continues when it resolves. */
  pause?(): Promise<void>;
  /** Called for an empty line. */
  empty?(line: number): void;
  /** Called once, before all lines, with the notes about unknown members. They grow while the lines are read. */
  notes?(notes: TraceNotes): void;
}

/** A trace that can't be read up to its end. */
export class UnreadableTrace extends LockgateError {
  /** The line that can't be read, from 1; null if the whole file can't. */
  readonly line: number | null;

  constructor(code: 'input-trace' | 'input-file', message: string, line: number | null) {
    super(code, message);
    this.line = line;
  }
}

/**
 * Reads a trace to its end.
 *
 * @throws LockgateError `input-trace` if a line can't be read (the message names file, line and what was expected),
 * `input-file` if the file can't be read
 */
export async function readTraceFile(file: string, visitor: TraceVisitor): Promise<void> {
  const reader = new TraceReader();
  visitor.notes?.(reader.notes);
  let hasHeader = false;
  await readLines(
    file,
    (bytes, start, end) => {
      const event = reader.readBytes(bytes, start, end);
      if (!event.ok) throw lineError(file, event.error.line, event.error.message);
      // The header and empty lines give no event.
      if (event.value !== null) visitor.event(event.value, reader.line, reader.raw);
      else if (hasHeader) visitor.empty?.(reader.line);
      else if (reader.header !== null) {
        hasHeader = true;
        visitor.header(reader.header);
      }
    },
    async () => await visitor.pause?.(),
  );
  const end = reader.end();
  if (!end.ok) throw lineError(file, end.error.line, end.error.message);
}

/** The error for a line that can't be read. */
function lineError(file: string, line: number, message: string): UnreadableTrace {
  return new UnreadableTrace('input-trace', `${displayName(file)}:${line}: ${message}`, line);
}

function displayName(file: string): string {
  return file === '-' ? 'standard input' : file;
}

type LineVisitor = (bytes: Buffer, start: number, end: number) => void;

/**
 * Calls `visit` for each line: the buffer that has the line, and where it starts and ends without the line break.
 *
 * @param pause called after the lines of each chunk; the next is read when it resolves
 */
async function readLines(file: string, visit: LineVisitor, pause: () => Promise<void>): Promise<void> {
  /** Chunks of a line whose end has not been read yet. */
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let lines = 0;
  for await (const chunk of readChunks(file, () => lines + 1)) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      lines += 1;
      if (pendingBytes + end - start > maxBytesOfLine(lines)) throw lineTooLong(file, lines);
      if (pendingBytes === 0) visitLine(chunk, start, end, visit);
      else {
        const line = Buffer.concat([...pending, chunk.subarray(start, end)]);
        visitLine(line, 0, line.length, visit);
        pending = [];
        pendingBytes = 0;
      }
      start = end + 1;
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
    pendingBytes += chunk.length - start;
    if (pendingBytes > maxBytesOfLine(lines + 1)) throw lineTooLong(file, lines + 1);
    await pause();
  }
  if (pendingBytes > 0) {
    const line = Buffer.concat(pending);
    visitLine(line, 0, line.length, visit);
  }
  await pause();
}

/** Calls `visit` without the carriage return that Windows editors put before the newline. */
function visitLine(bytes: Buffer, start: number, end: number, visit: LineVisitor): void {
  visit(bytes, start, end > start && bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end);
}

function maxBytesOfLine(line: number): number {
  return line === 1 ? MAX_HEADER_BYTES : MAX_LINE_BYTES;
}

function lineTooLong(file: string, line: number): LockgateError {
  const limit = maxBytesOfLine(line).toLocaleString('en-US');
  return lineError(file, line, `the line is longer than ${limit} bytes: expected one event in a line`);
}

/**
 * The file's bytes, unzipped.
 *
 * @param currentLine returns the number of the current line, for the error about a truncated file
 */
async function* readChunks(file: string, currentLine: () => number): AsyncGenerator<Buffer> {
  const source = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: CHUNK_BYTES });
  try {
    const start = await readStart(source);
    const isGzipped = file.endsWith('.gz') || isGzip(start);
    // The first bytes are put back, because they belong to the input. An input of a single byte has ended by now, and a
    // stream that has ended takes nothing back.
    const input = source.readableEnded ? Readable.from([start]) : source;
    if (start.length > 0 && input === source) source.unshift(start);
    const stream = isGzipped ? unzipped(input) : input;
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (error) {
    throw fileError(file, currentLine(), error as NodeJS.ErrnoException);
  } finally {
    if (source !== process.stdin) source.destroy();
  }
}

/** Reads the first bytes: at least two, unless the input is shorter. */
async function readStart(source: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  while (bytes < GZIP_MAGIC.length) {
    const chunk: Buffer | null = source.read();
    if (chunk !== null) {
      chunks.push(chunk);
      bytes += chunk.length;
    } else if (source.readableEnded || !(await isReadable(source))) break;
  }
  return Buffer.concat(chunks);
}

/** Waits until more can be read; false at the end. @throws Error if the source can't be read */
async function isReadable(source: Readable): Promise<boolean> {
  return await new Promise((resolve, reject) => {
    const removeListeners = (): void => {
      source.off('readable', onReadable).off('end', onEnd).off('error', onError);
    };
    const onReadable = (): void => {
      removeListeners();
      resolve(true);
    };
    const onEnd = (): void => {
      removeListeners();
      resolve(false);
    };
    const onError = (error: Error): void => {
      removeListeners();
      reject(error);
    };
    source.on('readable', onReadable).on('end', onEnd).on('error', onError);
  });
}

/** The bytes with which gzip starts (RFC 1952 §2.3.1). No trace starts with them. */
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

function isGzip(start: Buffer): boolean {
  return start.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC);
}

function unzipped(source: Readable): Readable {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  source.on('error', (error: Error) => gunzip.destroy(error));
  return source.pipe(gunzip);
}

/** A sentence for an error of the file system or of zlib; other errors are bugs and are returned unchanged. */
function fileError(file: string, line: number, error: NodeJS.ErrnoException): unknown {
  const { code } = error;
  const name = displayName(file);
  const wholeFile = (message: string): UnreadableTrace => new UnreadableTrace('input-file', message, null);
  if (code === 'ENOENT') return wholeFile(`there is no file ${file}`);
  if (code === 'EISDIR') return wholeFile(`${file} is a folder: expected a trace`);
  if (code === 'EACCES' || code === 'EPERM') return wholeFile(`no permission to read ${file}`);
  // zlib's code for a premature end.
  if (code === 'Z_BUF_ERROR') {
    const message = `${name}:${line}: the gzipped file is truncated (${error.message}): expected its remaining bytes`;
    return new UnreadableTrace('input-file', message, line);
  }
  if (code?.startsWith('Z_')) {
    const why = file.endsWith('.gz') ? 'its name ends in .gz' : 'it starts with the bytes of gzip';
    return wholeFile(`${name} can't be unzipped (${error.message}): expected gzip, because ${why}`);
  }
  return error;
}
