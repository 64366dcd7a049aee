/**
 * Reads the blocks of a pcapng file, the format of Wireshark and newer versions of tcpdump. For capture-file.ts only.
 * Each block starts with its type and its length, and ends with its length again, 4 bytes each.
 */
import { ok } from '../../../proto/errors.js';
import type { CaptureFormat, PacketVisitor, Step } from './captured-packet.js';

/** Types of blocks. A section is a part of the file with its own byte order and interfaces. */
const SECTION = 0x0a0d0d0a;
const INTERFACE = 1;
/** A block of older programs: as an enhanced packet, but with an interface number of 16 bits. */
const PACKET = 2;
/** A packet without a time or an interface. */
const SIMPLE_PACKET = 3;
const ENHANCED_PACKET = 6;

const BYTE_ORDER_OFFSET = 8;
const BYTE_ORDER_LITTLE = 0x4d3c2b1a;
const BYTE_ORDER_BIG = 0x1a2b3c4d;
const MIN_BLOCK_BYTES = 12;
/** The maximum length of a block: larger than any packet, and than the lists of names that Wireshark adds. */
const MAX_BLOCK_BYTES = 16 * 1024 * 1024;
const MAX_INTERFACES = 1024;

const OPTION_END = 0;
const OPTION_RESOLUTION = 9;
const OPTION_TIME_OFFSET = 14;

/** A network interface: how its packets and times are to be read. */
interface CaptureInterface {
  readonly linkType: number;
  readonly unitsPerSecond: bigint;
  readonly offsetSeconds: bigint;
}

/** The bytes at the end of each block: its length once more. */
const END_BYTES = 4;

/** The link type, and the first option, of a block about an interface. */
const INTERFACE_LINK_TYPE_OFFSET = 8;
const INTERFACE_OPTIONS_OFFSET = 16;

/** The offsets of the members in a packet's block. */
interface PacketLayout {
  /** The upper 32 bits of the time, then the lower ones. */
  readonly timeOffset: number;
  /** The number of captured bytes, then the packet's length. */
  readonly lengthOffset: number;
  readonly dataOffset: number;
}

const PACKET_LAYOUT: PacketLayout = { timeOffset: 12, lengthOffset: 20, dataOffset: 28 };

/** A pcapng file that is being read. */
export class PcapngFormat implements CaptureFormat {
  #isLittleEndian = true;
  #interfaces: CaptureInterface[] = [];
  #packets = 0;

  step(buffer: Buffer, visit: PacketVisitor): Step {
    if (buffer.length < MIN_BLOCK_BYTES) return ok(0);
    // The type of a section block reads the same in either byte order.
    if (buffer.readUInt32BE(0) === SECTION) {
      const order = buffer.readUInt32BE(BYTE_ORDER_OFFSET);
      if (order !== BYTE_ORDER_LITTLE && order !== BYTE_ORDER_BIG)
        return fault(BYTE_ORDER_OFFSET, 'the byte order is unknown: expected the mark 1a2b3c4d of pcapng');
      this.#isLittleEndian = order === BYTE_ORDER_LITTLE;
    }
    const bytes = this.#u32(buffer, 4);
    if (bytes < MIN_BLOCK_BYTES || bytes > MAX_BLOCK_BYTES || bytes % 4 !== 0)
      return fault(4, `a block claims ${bytes} bytes: expected a multiple of 4, 12 to ${MAX_BLOCK_BYTES}`);
    if (buffer.length < bytes) return ok(0);
    const problem = this.#readBlock(buffer.subarray(0, bytes), visit);
    return problem === null ? ok(bytes) : fault(0, problem);
  }

  /** Reads a complete block. Returns what is wrong with it; null if nothing is. */
  #readBlock(block: Buffer, visit: PacketVisitor): string | null {
    switch (this.#u32(block, 0)) {
      case SECTION:
        this.#interfaces = [];
        return null;
      case INTERFACE:
        return this.#readInterface(block);
      case PACKET:
        return block.length < PACKET_LAYOUT.dataOffset + END_BYTES
          ? tooShort('a packet')
          : this.#readPacket(block, this.#u16(block, 8), visit);
      case ENHANCED_PACKET:
        return block.length < PACKET_LAYOUT.dataOffset + END_BYTES
          ? tooShort('a packet')
          : this.#readPacket(block, this.#u32(block, 8), visit);
      case SIMPLE_PACKET:
        this.#packets += 1;
        visit({ number: this.#packets, atMs: Number.NaN, linkType: -1, bytes: Buffer.alloc(0), isCut: false });
        return null;
      default:
        // Other blocks have names, statistics, comments and secrets, not packets.
        return null;
    }
  }

  #readInterface(block: Buffer): string | null {
    if (block.length < INTERFACE_OPTIONS_OFFSET + END_BYTES) return tooShort('an interface');
    if (this.#interfaces.length >= MAX_INTERFACES) return `more than ${MAX_INTERFACES} interfaces: expected fewer`;
    let unitsPerSecond = 1_000_000n;
    let offsetSeconds = 0n;
    const end = block.length - END_BYTES;
    // An option has a code and a length, 2 bytes each, and its value.
    for (let offset = INTERFACE_OPTIONS_OFFSET; offset + 4 <= end; ) {
      const [code, length] = [this.#u16(block, offset), this.#u16(block, offset + 2)];
      const value = offset + 4;
      if (code === OPTION_END || value + length > end) break;
      if (code === OPTION_RESOLUTION && length === 1) unitsPerSecond = resolution(block[value] as number);
      if (code === OPTION_TIME_OFFSET && length === 8)
        offsetSeconds = this.#isLittleEndian ? block.readBigInt64LE(value) : block.readBigInt64BE(value);
      // Options are padded to a multiple of 4 bytes.
      offset = value + Math.ceil(length / 4) * 4;
    }
    this.#interfaces.push({ linkType: this.#u16(block, INTERFACE_LINK_TYPE_OFFSET), unitsPerSecond, offsetSeconds });
    return null;
  }

  /** @param index the number of the packet's interface in its section */
  #readPacket(block: Buffer, index: number, visit: PacketVisitor): string | null {
    const source = this.#interfaces[index];
    if (source === undefined) return `a packet of interface ${index}, which no block describes`;
    const length = this.#u32(block, PACKET_LAYOUT.lengthOffset);
    const end = PACKET_LAYOUT.dataOffset + length;
    if (end > block.length - END_BYTES) return `a packet of ${length} bytes in a block of ${block.length}`;
    const units =
      (BigInt(this.#u32(block, PACKET_LAYOUT.timeOffset)) << 32n) |
      BigInt(this.#u32(block, PACKET_LAYOUT.timeOffset + 4));
    this.#packets += 1;
    visit({
      number: this.#packets,
      atMs: Number((units * 1000n) / source.unitsPerSecond + source.offsetSeconds * 1000n),
      linkType: source.linkType,
      bytes: block.subarray(PACKET_LAYOUT.dataOffset, end),
      isCut: length < this.#u32(block, PACKET_LAYOUT.lengthOffset + 4),
    });
    return null;
  }

  #u16(buffer: Buffer, offset: number): number {
    return this.#isLittleEndian ? buffer.readUInt16LE(offset) : buffer.readUInt16BE(offset);
  }

  #u32(buffer: Buffer, offset: number): number {
    return this.#isLittleEndian ? buffer.readUInt32LE(offset) : buffer.readUInt32BE(offset);
  }
}

/** Units in a second: a power of 10, or of 2 if the upper bit is set. */
function resolution(value: number): bigint {
  return (value & 0x80) === 0 ? 10n ** BigInt(value) : 2n ** BigInt(value & 0x7f);
}

function tooShort(what: string): string {
  return `the block of ${what} is too short`;
}

function fault(offset: number, message: string): Step {
  return { ok: false, error: { offset, message } };
}
