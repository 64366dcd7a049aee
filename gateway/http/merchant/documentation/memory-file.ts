/**
 * Serves files from memory, hashed and compressed once: an answer opens no file descriptor, and a client that has the
 * file already gets only a 304 with the ETag (RFC 9110 §8.8.3, §13.1.2).
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

const compress = promisify(gzip);

/** Smaller files are not compressed. */
const MIN_COMPRESSED_BYTES = 1_024;

/** One form of the content, plain or compressed. */
interface Variant {
  readonly bytes: Buffer;
  readonly etag: string;
}

export interface MemoryFile {
  readonly type: string;
  readonly plain: Variant;
  /** The compressed content; undefined if it would not be smaller. */
  readonly gzip: Variant | undefined;
}

/** Makes a file. `type` is its `Content-Type`. Compression runs off the main thread. */
export async function makeMemoryFile(type: string, content: string | Buffer): Promise<MemoryFile> {
  // The cast only selects a signature: `Buffer.from` takes a string or a buffer, but declares no union of them.
  const bytes = Buffer.from(content as string);
  // 27 characters have 162 bits, more than enough to tell versions apart.
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 27);
  const plain = { bytes, etag: `"${hash}"` };
  const compressed = bytes.length < MIN_COMPRESSED_BYTES ? bytes : await compress(bytes);
  const isSmaller = compressed.length < bytes.length;
  return { type, plain, gzip: isSmaller ? { bytes: compressed, etag: `"${hash}-gzip"` } : undefined };
}

/** Answers a GET or HEAD with the file, or with 304 if the client has it. */
export async function sendFile(request: FastifyRequest, reply: FastifyReply, file: MemoryFile): Promise<FastifyReply> {
  const { headers } = request;
  const isCompressed = file.gzip !== undefined && takesGzip(headers['accept-encoding']);
  const { bytes, etag } = isCompressed ? (file.gzip as Variant) : file.plain;
  const vary = reply.getHeader('vary');
  reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`);
  // Clients may cache it but must revalidate: another version of lockgate has other files under the same names.
  reply.header('cache-control', 'no-cache').header('etag', etag);
  if (includesEtag(headers['if-none-match'], etag)) return await reply.status(304).send();
  if (isCompressed) reply.header('content-encoding', 'gzip');
  return await reply.header('content-type', file.type).send(bytes);
}

/** Whether this `Accept-Encoding` accepts gzip: names it without a weight (`q`), or with one above 0. */
function takesGzip(acceptEncoding: string | string[] | undefined): boolean {
  return String(acceptEncoding ?? '')
    .split(',')
    .some((entry) => /^\s*(?:x-)?gzip\s*(?:;\s*q=(?:1(?:\.0*)?|0?\.\d*[1-9]\d*)\s*)?$/i.test(entry));
}

/** Whether an `If-None-Match` names this ETag; a weak one matches too (RFC 9110 §13.1.2). */
function includesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((entry) => entry.trim() === '*' || entry.trim().replace(/^W\//, '') === etag);
}
