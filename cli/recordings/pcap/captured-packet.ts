/** Types that the readers of capture formats share: a packet, and the interface of a format. */
import type { Result } from '../../../proto/errors.js';

/** One packet. */
export interface CapturedPacket {
  /** Its number in the file, from 1. */
  readonly number: number;
  /** When it was captured, ms since the epoch; NaN if the file does not say. */
  readonly atMs: number;
  /** The link layer's number, LINKTYPE_ of tcpdump.org, such as 1 for Ethernet; -1 if the file does not say. */
  readonly linkType: number;
  /** The captured bytes, valid until the visitor returns. */
  readonly bytes: Buffer;
  /** Whether the packet was longer than the captured bytes (tcpdump -s). */
  readonly isCut: boolean;
}

/** Called for each packet. */
export type PacketVisitor = (packet: CapturedPacket) => void;

/** How many bytes of the buffer were used, 0 if the record is incomplete; or a fault at an offset of the buffer. */
export type Step = Result<number, { readonly offset: number; readonly message: string }>;

/** A format of capture files. */
export interface CaptureFormat {
  /** Reads the record or block at the start of the buffer. Calls `visit` if it is a packet. */
  step(buffer: Buffer, visit: PacketVisitor): Step;
}
