/**
 * The reasons for which a client is refused: a closed set, for metrics and explanations. Most are about its CONNECT;
 * `topic`, `qos-2`, `retained` and `phone` are about a PUBLISH or SUBSCRIBE.
 */

export const REFUSAL_REASONS = [
  // The CONNECT has a will message.
  'will',
  'malformed',
  'protocol-level',
  // Client id and user name don't name one lock.
  'identity',
  'unknown-lock',
  'wrong-secret',
  'revoked',
  'expired',
  'merchant-closed',
  // The first packet is not a CONNECT.
  'not-connect',
  // A packet is too long, or of a type that is not allowed.
  'packet',
  // The TLS handshake failed.
  'tls',
  // The CONNECT took too long.
  'slow',
  // There are too many connections.
  'crowd',
  // File descriptors are short.
  'descriptors',
  // The client does not read what it was sent.
  'not-reading',
  // A packet other than CONNECT came from a client without an accepted CONNECT.
  'not-authenticated',
  // The store can't read or write.
  'store',
  'stopping',
  'topic',
  'qos-2',
  // A PUBLISH asks the broker to retain the message.
  'retained',
  // A phone subscribed, which only locks may do.
  'phone',
  // Errors of the MQTT library.
  'other',
] as const;

export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Why something was refused: a reason for programs, and a sentence for operators, which may quote the client. */
export interface RefusalCause {
  readonly reason: RefusalReason;
  readonly why: string;
}
