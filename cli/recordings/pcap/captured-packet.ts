/** A packet of a capture file, and what a format of such files must do: read the next record of a buffer. */
import type { Result } from '../../../proto/errors.js';

/** One packet. */
export interface CapturedPacket {
  /** Its number in the file, from 1. */
  readonly number: number;
  /** When it was captured, ms since the epoch; NaN if the file does not say. */
  readonly atMs: number;
  /** LINKTYPE_ of tcpdump.org. */
  readonly linkType: number;
  /** The captured bytes, valid until the visitor returns. */
  readonly bytes: Buffer;
  /** Whether the packet was longer than what was captured (tcpdump -s). */
  readonly isCut: boolean;
}

export type PacketVisitor = (packet: CapturedPacket) => void;

/** How many bytes of the buffer a reader has used; a fault at an offset of the buffer. 0: it needs more bytes. */
export type Step = Result<number, { readonly offset: number; readonly message: string }>;

/** Reads the next record or block at the start of a buffer. */
export interface CaptureFormat {
  step(buffer: Buffer, visit: PacketVisitor): Step;
}
