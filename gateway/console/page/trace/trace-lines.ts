/**
 * Splits a dropped trace file into lines, as bytes, and unpacks it if it is gzipped. Memory is bounded: the file is
 * read in chunks, and both its unpacked size and its lines have a maximum, since a small file can unpack to any size.
 */
import { MAX_TRACE_BYTES } from './trace-report.js';

const MIB = 1024 * 1024;
/** The header names every lock of a fleet, so it may be long; 100,000 locks take some 15 MB. */
const MAX_LINE_BYTES = 32 * MIB;
const NEWLINE = 10;
const CARRIAGE_RETURN = 13;
/** The first two bytes of a gzip file (RFC 1952 §2.3.1). */
const GZIP_MAGIC = [0x1f, 0x8b] as const;

/** How much is read, in bytes after unpacking: of a file, and of a line. */
export interface ReadLimits {
  readonly fileBytes: number;
  readonly lineBytes: number;
}

const LIMITS: ReadLimits = { fileBytes: MAX_TRACE_BYTES, lineBytes: MAX_LINE_BYTES };

/** Takes a line: its bytes are from `start` up to but not including `end`. Returns whether to read further lines. */
export type LineTaker = (bytes: Uint8Array, start: number, end: number) => boolean;

/** Passes each line of a file to `take`. @throws Error with a sentence if the file can't be read or is too large */
export async function readLines(file: Blob, take: LineTaker, limits: ReadLimits = LIMITS): Promise<void> {
  const { fileBytes, lineBytes } = limits;
  const lines = new LineSplitter(take, lineBytes);
  let byteCount = 0;
  for await (const chunk of chunksOf(await unpacked(file))) {
    byteCount += chunk.length;
    if (byteCount > fileBytes) {
      const most = `over ${(fileBytes / MIB).toLocaleString('en-US')} MiB, the most that this page reads`;
      throw new Error(`The trace unpacks to ${most}. Use “lockgate trace check”.`);
    }
    if (!lines.add(chunk)) return;
  }
  lines.end();
}

async function unpacked(file: Blob): Promise<ReadableStream<Uint8Array>> {
  const start = new Uint8Array(await file.slice(0, GZIP_MAGIC.length).arrayBuffer());
  const isGzip = GZIP_MAGIC.every((byte, index) => start[index] === byte);
  return isGzip ? file.stream().pipeThrough(new DecompressionStream('gzip')) : file.stream();
}

/** The chunks of a stream. Not all browsers can iterate over a stream. */
async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    // A stream that has failed can't be cancelled; its own error is thrown already.
    await reader.cancel().catch(() => undefined);
  }
}

/** Finds the ends of lines across chunks. */
class LineSplitter {
  readonly #take: LineTaker;
  readonly #maxBytes: number;
  /** The bytes of an unfinished line. */
  #unfinished: Uint8Array = new Uint8Array();

  constructor(take: LineTaker, maxBytes: number) {
    this.#take = take;
    this.#maxBytes = maxBytes;
  }

  /** Adds a chunk and passes on its complete lines. Returns whether to read further chunks. */
  add(chunk: Uint8Array): boolean {
    const bytes = this.#unfinished.length === 0 ? chunk : joined(this.#unfinished, chunk);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      if (!this.#takeLine(bytes, start, end)) return false;
      start = end + 1;
    }
    this.#unfinished = bytes.slice(start);
    if (this.#unfinished.length > this.#maxBytes)
      throw new Error(`A line of the file has over ${this.#maxBytes / MIB} MiB: it is no trace.`);
    return true;
  }

  /** Passes on the last line, if it has no line break. */
  end(): void {
    if (this.#unfinished.length > 0) this.#takeLine(this.#unfinished, 0, this.#unfinished.length);
  }

  #takeLine(bytes: Uint8Array, start: number, end: number): boolean {
    return this.#take(bytes, start, bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end);
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
