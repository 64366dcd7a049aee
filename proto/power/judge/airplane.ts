/**
 * The rule airplane-silence for close-connection pings (protocol.md §3): only the first close-connection ping since the
 * airplane switch went on is allowed. The other uplinks with airplane on are judged in content.ts. No I/O: changes only
 * the given belief (what the judge knows of the lock) and verdict (its findings).
 *
 * Whether a ping is the first depends on all uplinks before it, and some of those may come late. So each *span* (a
 * series of received sequence numbers without a hole) has a *head close*: its first close-connection ping with airplane
 * on, if no earlier uplink of the span has airplane off. The spans with lower numbers determine whether a head close is
 * allowed, and a late uplink between two spans may change that in both directions. All later pings of a span are
 * decided for good, since nothing can come between them. A span's `hasTailClose` says whether a close-connection ping
 * with airplane on follows its last uplink with airplane off: then the next span's head close is a further one.
 */
import type { Belief, BootRecord, Span } from './belief.js';
import { finding, uplinkKey, type Verdict } from './event.js';

/** Merges what the upper of two adjacent spans of a boot says about airplane mode into the lower one. */
export function joinAirplane(
  belief: Belief,
  record: BootRecord,
  lower: Span,
  upper: Span,
  atMs: number,
  verdict: Verdict,
): void {
  if (upper.headClose >= 0) {
    if (lower.hasAirplaneOff || lower.headClose >= 0) {
      decideHeadClose(belief, record, upper, lower.hasTailClose, atMs, verdict);
    } else {
      lower.headClose = upper.headClose;
      lower.isHeadReported = upper.isHeadReported;
    }
  }
  lower.hasTailClose = upper.hasTailClose || (!upper.hasAirplaneOff && lower.hasTailClose);
  lower.hasAirplaneOff = lower.hasAirplaneOff || upper.hasAirplaneOff;
}

/** Decides again on all head closes, from the lowest span to the highest. */
export function judgeHeadCloses(belief: Belief, atMs: number, verdict: Verdict): void {
  let hasCloseBefore = false;
  for (const record of belief.runs) {
    for (const span of record.spans) {
      if (span.headClose >= 0) decideHeadClose(belief, record, span, hasCloseBefore, atMs, verdict);
      hasCloseBefore = span.hasTailClose || (!span.hasAirplaneOff && hasCloseBefore);
    }
  }
}

/** Makes the finding about a span's head close, or withdraws it, if `isBreach` has changed. */
function decideHeadClose(
  belief: Belief,
  record: BootRecord,
  span: Span,
  isBreach: boolean,
  atMs: number,
  verdict: Verdict,
): void {
  if (isBreach === span.isHeadReported) return;
  span.isHeadReported = isBreach;
  const about = uplinkKey(record.credential, record.life, record.boot, span.headClose);
  if (isBreach) {
    const message = 'A further close-connection ping was sent with airplane on: the first had reported the switch.';
    verdict.findings.push(finding('airplane-silence', belief.mac, about, atMs, message));
  } else verdict.withdrawn.push({ rule: 'airplane-silence', mac: belief.mac, about });
}
