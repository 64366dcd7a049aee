/** What is counted of a lock's traffic, and how our JSON says it. Pure. */

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

export const NO_USAGE: UsageCounts = { messagesUp: 0, messagesDown: 0, connections: 0, bytesUp: 0, bytesDown: 0 };

/** Their sum. */
export function addCounts(a: UsageCounts, b: UsageCounts): UsageCounts {
  return {
    messagesUp: a.messagesUp + b.messagesUp,
    messagesDown: a.messagesDown + b.messagesDown,
    connections: a.connections + b.connections,
    bytesUp: a.bytesUp + b.bytesUp,
    bytesDown: a.bytesDown + b.bytesDown,
  };
}

/** Whether nothing was counted. */
export function isNothing(counts: UsageCounts): boolean {
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

/** Counts as our JSON has them, with what they add up to. */
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
