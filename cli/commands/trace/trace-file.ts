/**
 * Reads a trace file line by line: streamed, so that a file may be larger than memory, with a limit on the length of a
 * line. A name that ends in `.gz` is gzipped (protocol.md §4); `-` is the standard input.
 */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { LockgateError } from '../../../proto/errors.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent, TraceHeader } from '../../../proto/trace/trace.js';

/** The longest line. One with an uplink of 1,024 bytes has some 3,000 bytes. */
const LINE_BYTES = 1024 * 1024;
/** The longest header: some 150 bytes per lock, of which a simulated fleet has up to 100,000. */
const HEADER_BYTES = 32 * 1024 * 1024;

/** How much is read at a time. */
const CHUNK_BYTES = 1024 * 1024;

const NEWLINE = 10;
const RETURN = 13;

/** Callbacks for the lines of a trace. */
export interface TraceVisitor {
  /** Called once, first. */
  header(header: TraceHeader): void;
  /**
   * Called in order. `line` counts from 1, the header included; `raw` has the uplink's bytes where the line has them.
   */
  event(event: TraceEvent, line: number, raw: Uint8Array | null): void;
  /** Called for an empty line. */
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
  await readLines(file, (bytes, start, end) => {
    const event = reader.readBytes(bytes, start, end);
    if (!event.ok) throw badLine(file, event.error.line, event.error.message);
    if (event.value !== null) visitor.event(event.value, reader.line, reader.raw);
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

type LineVisitor = (bytes: Buffer, start: number, end: number) => void;

/** Calls `visit` with the position of each line in a buffer, without its line break. */
async function readLines(file: string, visit: LineVisitor): Promise<void> {
  /** The start of a line whose end has not been read yet. */
  let rest: Buffer[] = [];
  let restBytes = 0;
  let lines = 0;
  for await (const chunk of chunksOf(file, () => lines + 1)) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      lines += 1;
      if (restBytes + end - start > mostBytes(lines)) throw tooLong(file, lines);
      if (restBytes === 0) visitLine(chunk, start, end, visit);
      else {
        const line = Buffer.concat([...rest, chunk.subarray(start, end)]);
        visitLine(line, 0, line.length, visit);
        rest = [];
        restBytes = 0;
      }
      start = end + 1;
    }
    if (start < chunk.length) rest.push(chunk.subarray(start));
    restBytes += chunk.length - start;
    if (restBytes > mostBytes(lines + 1)) throw tooLong(file, lines + 1);
  }
  if (restBytes > 0) {
    const line = Buffer.concat(rest);
    visitLine(line, 0, line.length, visit);
  }
}

/** A Windows editor ends lines with a carriage return before the newline. */
function visitLine(bytes: Buffer, start: number, end: number, visit: LineVisitor): void {
  visit(bytes, start, end > start && bytes[end - 1] === RETURN ? end - 1 : end);
}

function mostBytes(line: number): number {
  return line === 1 ? HEADER_BYTES : LINE_BYTES;
}

function tooLong(file: string, line: number): LockgateError {
  const most = mostBytes(line).toLocaleString('en-US');
  return badLine(file, line, `the line is longer than ${most} bytes: expected one event in a line`);
}

/** @param lineNow the number of the current line, for the error about a truncated file */
async function* chunksOf(file: string, lineNow: () => number): AsyncGenerator<Buffer> {
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
    throw fileProblem(file, lineNow(), error as NodeJS.ErrnoException);
  } finally {
    if (source !== process.stdin) source.destroy();
  }
}

function fileProblem(file: string, line: number, error: NodeJS.ErrnoException): unknown {
  const { code } = error;
  if (code === 'ENOENT') return new LockgateError('input-file', `there is no file ${file}`);
  if (code === 'EISDIR') return new LockgateError('input-file', `${file} is a folder: expected a trace`);
  if (code === 'EACCES' || code === 'EPERM') return new LockgateError('input-file', `${file} may not be read`);
  // zlib's code for a premature end.
  if (code === 'Z_BUF_ERROR') {
    const message = `${file}:${line}: the gzipped file is truncated (${error.message}): expected the rest of it`;
    return new LockgateError('input-file', message);
  }
  if (code?.startsWith('Z_')) {
    const message = `${file} can't be unzipped (${error.message}): expected gzip, because its name ends in .gz`;
    return new LockgateError('input-file', message);
  }
  return error;
}
