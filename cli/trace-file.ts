/**
 * Lines of a trace file, one call for each: streamed, so that a file may be larger than memory, with a bound on what
 * one line may take. A name that ends in `.gz` is gzipped (protocol.md §4); `-` is the standard input.
 */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { LockgateError } from '../proto/errors.js';
import type { TraceEvent, TraceHeader } from '../proto/trace.js';
import { TraceReader } from '../proto/trace-reader.js';

/** The longest line that is read. One with an uplink of 1,024 bytes has some 3,000. */
const LINE_BYTES = 1024 * 1024;

/** How much is read at a time. */
const CHUNK_BYTES = 1024 * 1024;

const NEWLINE = 10;

/** What is done with the lines of a trace. */
export interface TraceVisitor {
  /** Once, before all else. */
  header(header: TraceHeader): void;
  /** In order; `line` counts from 1, the header's included. */
  event(event: TraceEvent, line: number): void;
  /** An empty line. */
  empty?(line: number): void;
}

/**
 * Reads a whole trace.
 *
 * @throws LockgateError `input-trace` for a line that can't be read (the message names file, line and what was
 * expected), `input-file` for a file that can't
 */
export async function readTraceFile(file: string, visitor: TraceVisitor): Promise<void> {
  const reader = new TraceReader();
  let hasHeader = false;
  await readLines(file, (text) => {
    const event = reader.read(text);
    if (!event.ok) throw badLine(file, event.error.line, event.error.message);
    if (event.value !== null) visitor.event(event.value, reader.line);
    else if (hasHeader) visitor.empty?.(reader.line);
    else if (reader.header !== null) {
      hasHeader = true;
      visitor.header(reader.header);
    }
  });
  const end = reader.end();
  if (!end.ok) throw badLine(file, end.error.line, end.error.message);
}

function badLine(file: string, line: number, message: string): LockgateError {
  return new LockgateError('input-trace', `${nameOf(file)}:${line}: ${message}`);
}

function nameOf(file: string): string {
  return file === '-' ? 'standard input' : file;
}

/** Calls `visit` for each line, without its end of line. */
async function readLines(file: string, visit: (text: string) => void): Promise<void> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  let lines = 0;
  const count = (text: string): void => {
    lines += 1;
    visit(text);
  };
  for await (const chunk of chunksOf(file)) {
    const end = chunk.lastIndexOf(NEWLINE);
    const firstEnd = end === -1 ? chunk.length : chunk.indexOf(NEWLINE);
    if (restBytes + firstEnd > LINE_BYTES) throw tooLong(file, lines + 1);
    if (end !== -1) {
      rest.push(chunk.subarray(0, end));
      splitLines(rest.length === 1 ? (rest[0] as Buffer) : Buffer.concat(rest), count, () => tooLong(file, lines + 1));
      rest = [];
      restBytes = 0;
    }
    const left = chunk.subarray(end + 1);
    if (left.length > 0) rest.push(left);
    restBytes += left.length;
  }
  if (restBytes > LINE_BYTES) throw tooLong(file, lines + 1);
  if (restBytes > 0) count(withoutReturn(Buffer.concat(rest).toString('utf8')));
}

/** One decoding for many lines is much cheaper than one for each; what is cut out of it is not copied. */
function splitLines(bytes: Buffer, visit: (text: string) => void, tooLongHere: () => LockgateError): void {
  const text = bytes.toString('utf8');
  let start = 0;
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
    // Characters, which are no more than the bytes.
    if (end - start > LINE_BYTES) throw tooLongHere();
    visit(withoutReturn(text.slice(start, end)));
    start = end + 1;
  }
  if (text.length - start > LINE_BYTES) throw tooLongHere();
  visit(withoutReturn(text.slice(start)));
}

/** What an editor on Windows ends its lines with. */
function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

function tooLong(file: string, line: number): LockgateError {
  const most = LINE_BYTES.toLocaleString('en-US');
  return badLine(file, line, `the line is longer than ${most} bytes: expected one event in a line`);
}

async function* chunksOf(file: string): AsyncGenerator<Buffer> {
  const source = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: CHUNK_BYTES });
  let stream: Readable = source;
  if (file.endsWith('.gz')) {
    const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
    source.on('error', (error: Error) => gunzip.destroy(error));
    stream = source.pipe(gunzip);
  }
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (error) {
    throw fileProblem(file, error as NodeJS.ErrnoException);
  } finally {
    if (source !== process.stdin) source.destroy();
  }
}

function fileProblem(file: string, error: NodeJS.ErrnoException): unknown {
  const { code } = error;
  if (code === 'ENOENT') return new LockgateError('input-file', `there is no file ${file}`);
  if (code === 'EISDIR') return new LockgateError('input-file', `${file} is a folder: expected a trace`);
  if (code === 'EACCES' || code === 'EPERM') return new LockgateError('input-file', `${file} may not be read`);
  if (code?.startsWith('Z_')) {
    const message = `${file} can't be unzipped (${error.message}): expected gzip, because its name ends in .gz`;
    return new LockgateError('input-file', message);
  }
  return error;
}
