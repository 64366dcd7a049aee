/**
 * The kinds of reason for which a lock or a stranger is refused: a closed set, for figures. The sentences themselves
 * are for operators, and may hold what a stranger wrote.
 */

const REASONS = [
  ['will', /^the CONNECT carries a will/],
  ['malformed', /^a malformed /],
  ['protocol-level', /^protocol level /],
  ['identity', /^(client id and user name|an empty client id)/],
  ['unknown-lock', /^no such lock/],
  ['wrong-secret', /^wrong (secret|phone credential)/],
  ['revoked', /^a revoked credential/],
  ['expired', /^an expired credential/],
  ['not-connect', /^the first packet is /],
  ['packet', /^(a packet|an? [A-Z]+ is not taken after)/],
  ['tls', /^the TLS handshake /],
  ['slow', /^the CONNECT (was not finished|could not be answered) within/],
  ['crowd', /^(the address has |[\d,]+ connections are not |[\d,]+ bytes of strangers )/],
  ['descriptors', /^descriptors /],
  ['not-reading', /^it read nothing /],
  ['not-authenticated', /^the (client is not authenticated|connection is unknown)/],
  ['store', /^the store /],
  ['stopping', /^the gateway is stopping/],
  ['topic', /^topic "/],
  ['qos-2', /^QoS 2/],
  ['retained', /^a retained publish/],
  ['phone', /^a phone /],
] as const satisfies readonly (readonly [string, RegExp])[];

export type RefusalReason = (typeof REASONS)[number][0] | 'other';

/** The kind of a refusal's sentence; what the MQTT library complains of is `other`. */
export function refusalReason(why: string): RefusalReason {
  return REASONS.find(([, begins]) => begins.test(why))?.[0] ?? 'other';
}
