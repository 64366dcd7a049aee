/** The counts of a lock's traffic, their sums, and their JSON form. Pure. */

/** Up is from the lock, down is to it. */
export interface UsageCounts {
  /** Uplinks, repeats and quarantined ones too: each was on the air. */
  readonly messagesUp: number;
  readonly messagesDown: number;
  /** Accepted CONNECTs. */
  readonly connections: number;
  /** Bytes on the TCP connection: TLS and MQTT included, TCP/IP headers not. */
  readonly bytesUp: number;
  readonly bytesDown: number;
}

export const ZERO_USAGE: UsageCounts = { messagesUp: 0, messagesDown: 0, connections: 0, bytesUp: 0, bytesDown: 0 };

/** The sum of two counts. */
export function addCounts(a: UsageCounts, b: UsageCounts): UsageCounts {
  return {
    messagesUp: a.messagesUp + b.messagesUp,
    messagesDown: a.messagesDown + b.messagesDown,
    connections: a.connections + b.connections,
    bytesUp: a.bytesUp + b.bytesUp,
    bytesDown: a.bytesDown + b.bytesDown,
  };
}

/** Whether all counts are zero. */
export function isZero(counts: UsageCounts): boolean {
  return bytesOf(counts) === 0 && counts.messagesUp === 0 && counts.messagesDown === 0 && counts.connections === 0;
}

/** Both directions together. */
export function bytesOf({ bytesUp, bytesDown }: UsageCounts): number {
  return bytesUp + bytesDown;
}

export interface CountsJson {
  readonly messages: number;
  readonly messages_up: number;
  readonly messages_down: number;
  readonly connections: number;
  readonly bytes: number;
  readonly bytes_up: number;
  readonly bytes_down: number;
}

/** The JSON form of counts, with the sums of both directions. */
export function countsJson(counts: UsageCounts): CountsJson {
  const { messagesUp, messagesDown, connections, bytesUp, bytesDown } = counts;
  return {
    messages: messagesUp + messagesDown,
    messages_up: messagesUp,
    messages_down: messagesDown,
    connections,
    bytes: bytesUp + bytesDown,
    bytes_up: bytesUp,
    bytes_down: bytesDown,
  };
}
