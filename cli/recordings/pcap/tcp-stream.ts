/**
 * Puts the bytes of one direction of a captured TCP connection in order. Retransmissions are dropped, and segments that
 * arrive too early wait for the bytes before them. Bytes that the capture does not have, because it started later or
 * lost packets, leave a gap. Does no I/O.
 */

/** Limits of the waiting segments; beyond them the bytes before the first waiting segment count as lost. */
const MAX_WAITING_SEGMENTS = 512;
const MAX_WAITING_BYTES = 1024 * 1024;

/** Receives the bytes in order. @param isAfterGap whether bytes before these are missing */
export type BytesVisitor = (bytes: Buffer, isAfterGap: boolean) => void;

/** A segment. `length` is that of its complete payload, of which `bytes` were captured. */
interface WaitingSegment {
  readonly sequence: number;
  readonly bytes: Buffer;
  readonly length: number;
}

/** One direction of a TCP connection. */
export class TcpStream {
  readonly #visit: BytesVisitor;
  /** The sequence number of the next byte; null before the first segment. */
  #next: number | null = null;
  /** The highest sequence number that the receiver has acknowledged; null before its first acknowledgement. */
  #acknowledged: number | null = null;
  #isAfterGap = false;
  #waiting: WaitingSegment[] = [];
  #waitingBytes = 0;

  constructor(visit: BytesVisitor) {
    this.#visit = visit;
  }

  /** Call for a SYN: the first byte comes after its sequence number, modulo 2³² (`>>> 0`). */
  start(sequence: number): void {
    if (this.#next === null) this.#next = (sequence + 1) >>> 0;
  }

  /** Call for an acknowledgement: the receiver has all bytes before this sequence number. */
  acknowledge(sequence: number): void {
    if (this.#acknowledged === null || distance(this.#acknowledged, sequence) > 0) this.#acknowledged = sequence;
    // If a waiting segment is acknowledged, the receiver has the missing bytes before it, but the capture lost them.
    const [first] = this.#waiting;
    if (first !== undefined && distance(first.sequence, sequence) > 0) this.#skipGap();
  }

  /**
   * Adds a segment. @param length the length of its complete payload; more than `bytes` if the capture cut the packet
   */
  add(sequence: number, bytes: Buffer, length: number): void {
    if (length === 0) return;
    if (this.#next === null) {
      this.#next = sequence;
      this.#isAfterGap = true;
    }
    const ahead = distance(this.#next, sequence);
    if (ahead <= 0) {
      this.#deliver({ sequence, bytes, length });
      this.#deliverWaiting();
      return;
    }
    this.#wait({ sequence, bytes: Buffer.from(bytes), length });
    const isAcknowledged = this.#acknowledged !== null && distance(sequence, this.#acknowledged) > 0;
    const isFull = this.#waiting.length > MAX_WAITING_SEGMENTS || this.#waitingBytes > MAX_WAITING_BYTES;
    if (isAcknowledged || isFull) this.#skipGap();
  }

  /** Whether no byte before this sequence number is missing. */
  hasAllBefore(sequence: number): boolean {
    return this.#next === null || distance(this.#next, sequence) <= 0;
  }

  /** Call after the last segment: delivers the waiting segments. */
  end(): void {
    while (this.#waiting.length > 0) this.#skipGap();
  }

  /** Adds a segment to the waiting ones, in the order of sequence numbers, unless it is a retransmission of one. */
  #wait(segment: WaitingSegment): void {
    const index = this.#waiting.findIndex((other) => distance(segment.sequence, other.sequence) >= 0);
    if (this.#waiting[index]?.sequence === segment.sequence && (this.#waiting[index]?.length ?? 0) >= segment.length)
      return;
    this.#waiting.splice(index === -1 ? this.#waiting.length : index, 0, segment);
    this.#waitingBytes += segment.bytes.length;
  }

  /** Gives up on the bytes before the first waiting segment, and delivers from there on. */
  #skipGap(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    this.#next = first.sequence;
    this.#isAfterGap = true;
    this.#deliverWaiting();
  }

  #deliverWaiting(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (distance(this.#next as number, first.sequence) > 0) return;
      this.#waiting.shift();
      this.#waitingBytes -= first.bytes.length;
      this.#deliver(first);
    }
  }

  /** Delivers the bytes of a segment that were not delivered before. */
  #deliver({ sequence, bytes, length }: WaitingSegment): void {
    const next = this.#next as number;
    const deliveredBytes = -distance(next, sequence);
    if (deliveredBytes >= length) return;
    this.#next = (sequence + length) >>> 0;
    const newBytes = bytes.subarray(deliveredBytes);
    if (newBytes.length > 0) {
      const isAfterGap = this.#isAfterGap;
      this.#isAfterGap = false;
      this.#visit(newBytes, isAfterGap);
    }
    if (bytes.length < length) this.#isAfterGap = true;
  }
}

/**
 * How far `to` is ahead of `from`, negative if it is behind. Sequence numbers wrap around at 2³², so the difference
 * becomes a signed number of 32 bits (`| 0`).
 */
function distance(from: number, to: number): number {
  return (to - from) | 0;
}
