/** The reasons for which a client is refused: a closed set, for metrics and explanations. */

export const REFUSAL_REASONS = [
  'will',
  'malformed',
  'protocol-level',
  'identity',
  'unknown-lock',
  'wrong-secret',
  'revoked',
  'expired',
  'merchant-closed',
  'not-connect',
  'packet',
  'tls',
  'slow',
  'crowd',
  'descriptors',
  'not-reading',
  'not-authenticated',
  'store',
  'stopping',
  'topic',
  'qos-2',
  'retained',
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
