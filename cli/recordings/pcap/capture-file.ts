/**
 * Reads the packets of a capture file: classic pcap (microseconds or nanoseconds, either byte order) and pcapng. Bytes
 * may come in chunks of any size. Returns errors with the file's offset, and never throws.
 */
import { ok, type Result } from '../../../proto/errors.js';
import type { RecordingFault } from '../recording.js';
import type { CaptureFormat, PacketVisitor, Step } from './captured-packet.js';
import { PcapngFormat } from './pcapng.js';

/** The maximum length of a packet; tcpdump captures at most 262,144 bytes. */
const MAX_PACKET_BYTES = 1024 * 1024;
const MAGIC_BYTES = 4;

/** A capture file whose bytes arrive in chunks. */
export class CaptureFile {
  readonly #visit: PacketVisitor;
  #format: CaptureFormat | null = null;
  /** Bytes that were not used yet, and their offset in the file. */
  #pending: Buffer = Buffer.alloc(0);
  #offset = 0;

  constructor(visit: PacketVisitor) {
    this.#visit = visit;
  }

  /** Reads all packets that end in this chunk. */
  push(chunk: Uint8Array): RecordingFault | null {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    if (this.#format === null) {
      if (this.#pending.length < MAGIC_BYTES) return null;
      this.#format = formatOf(this.#pending);
      if (this.#format === null) return { at: 'offset 0', message: unknownMagic(this.#pending) };
    }
    let used = 0;
    for (;;) {
      const step = this.#format.step(this.#pending.subarray(used), this.#visit);
      if (!step.ok) return { at: `offset ${this.#offset + used + step.error.offset}`, message: step.error.message };
      if (step.value === 0) break;
      used += step.value;
    }
    this.#offset += used;
    // A copy: the caller may reuse the chunk.
    this.#pending = Buffer.from(this.#pending.subarray(used));
    return null;
  }

  /** Call at the end of the file. Returns the offset of an incomplete last packet; null if the last one is complete. */
  end(): Result<number | null, RecordingFault> {
    if (this.#format === null) {
      const message = `the file has ${this.#pending.length} bytes: expected a capture of tcpdump (pcap or pcapng)`;
      return { ok: false, error: { at: 'offset 0', message } };
    }
    return ok(this.#pending.length === 0 ? null : this.#offset);
  }
}

/** The first four bytes of a pcapng file. */
const PCAPNG_MAGIC = 0x0a0d0d0a;

function formatOf(buffer: Buffer): CaptureFormat | null {
  const magic = buffer.readUInt32BE(0);
  if (magic === PCAPNG_MAGIC) return new PcapngFormat();
  const isLittleEndian = LITTLE_ENDIAN_CLASSIC_MAGIC.has(magic);
  const unitsPerMs = CLASSIC_MAGIC.get(isLittleEndian ? buffer.readUInt32LE(0) : magic);
  return unitsPerMs === undefined ? null : new ClassicFormat(isLittleEndian, unitsPerMs);
}

/** The first four bytes of a classic pcap file, and how many units of its times are a millisecond. */
const CLASSIC_MAGIC = new Map([
  [0xa1b2c3d4, 1e3],
  [0xa1b23c4d, 1e6],
]);
const LITTLE_ENDIAN_CLASSIC_MAGIC = new Set([0xd4c3b2a1, 0x4d3cb2a1]);

function unknownMagic(buffer: Buffer): string {
  const shown = buffer.subarray(0, MAGIC_BYTES).toString('hex');
  return `the file starts with ${shown}: expected a capture of tcpdump (pcap or pcapng)`;
}

const FILE_HEADER_BYTES = 24;
const RECORD_HEADER_BYTES = 16;
/** The upper bits of the link type are flags. */
const LINK_TYPE_MASK = 0x0fffffff;

/**
 * Classic pcap: a header with the link type at offset 20, then records. A record has the time (seconds, and their
 * fraction at offset 4), the captured length at 8, the packet's length at 12, and the captured bytes.
 */
class ClassicFormat implements CaptureFormat {
  readonly #isLittleEndian: boolean;
  readonly #unitsPerMs: number;
  #linkType: number | null = null;
  #packets = 0;

  constructor(isLittleEndian: boolean, unitsPerMs: number) {
    this.#isLittleEndian = isLittleEndian;
    this.#unitsPerMs = unitsPerMs;
  }

  step(buffer: Buffer, visit: PacketVisitor): Step {
    if (this.#linkType === null) {
      if (buffer.length < FILE_HEADER_BYTES) return ok(0);
      this.#linkType = this.#number(buffer, 20) & LINK_TYPE_MASK;
      return ok(FILE_HEADER_BYTES);
    }
    if (buffer.length < RECORD_HEADER_BYTES) return ok(0);
    const length = this.#number(buffer, 8);
    if (length > MAX_PACKET_BYTES) {
      const message = `packet ${this.#packets + 1} claims ${length} bytes: expected at most ${MAX_PACKET_BYTES}`;
      return { ok: false, error: { offset: 8, message } };
    }
    const end = RECORD_HEADER_BYTES + length;
    if (buffer.length < end) return ok(0);
    this.#packets += 1;
    visit({
      number: this.#packets,
      atMs: this.#number(buffer, 0) * 1000 + Math.floor(this.#number(buffer, 4) / this.#unitsPerMs),
      linkType: this.#linkType,
      bytes: buffer.subarray(RECORD_HEADER_BYTES, end),
      isCut: length < this.#number(buffer, 12),
    });
    return ok(end);
  }

  #number(buffer: Buffer, offset: number): number {
    return this.#isLittleEndian ? buffer.readUInt32LE(offset) : buffer.readUInt32BE(offset);
  }
}
