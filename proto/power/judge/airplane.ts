/**
 * airplane-silence for close-connection pings (protocol.md §3): of those with airplane on, only the first since the
 * switch went on is allowed.
 *
 * Whether one is the first rests on all uplinks before it, of which some may come late. A stretch of numbers therefore
 * carries its *head*: its first such ping, as long as no uplink with airplane off stands before it in the stretch. What
 * the stretches below say decides over a head, and a late uplink between them may turn the decision, in both
 * directions. Within a stretch nothing can come between any more, so what is decided there stays.
 */
import type { Belief, Run, Span } from './belief.js';
import { finding, uplinkKey, type Verdict } from './event.js';

/** Joins what two neighbouring stretches say of airplane mode into the lower one. */
export function joinAirplane(belief: Belief, run: Run, lower: Span, upper: Span, atMs: number, out: Verdict): void {
  if (upper.headClose >= 0) {
    if (lower.hasAirplaneOff || lower.headClose >= 0) {
      decideHead(belief, run, upper, lower.hasTailClose, atMs, out);
    } else {
      lower.headClose = upper.headClose;
      lower.isHeadReported = upper.isHeadReported;
    }
  }
  lower.hasTailClose = upper.hasTailClose || (!upper.hasAirplaneOff && lower.hasTailClose);
  lower.hasAirplaneOff = lower.hasAirplaneOff || upper.hasAirplaneOff;
}

/** Decides anew over all heads, from the lowest stretch to the highest. */
export function judgeHeads(belief: Belief, atMs: number, out: Verdict): void {
  let hasCloseBefore = false;
  for (const run of belief.runs) {
    for (const span of run.spans) {
      if (span.headClose >= 0) decideHead(belief, run, span, hasCloseBefore, atMs, out);
      hasCloseBefore = span.hasTailClose || (!span.hasAirplaneOff && hasCloseBefore);
    }
  }
}

function decideHead(belief: Belief, run: Run, span: Span, isBreach: boolean, atMs: number, out: Verdict): void {
  if (isBreach === span.isHeadReported) return;
  span.isHeadReported = isBreach;
  const about = uplinkKey(run.credential, run.life, run.boot, span.headClose);
  if (isBreach) {
    const message = 'A further close-connection ping was sent with airplane on: the first one had reported the switch.';
    out.findings.push(finding('airplane-silence', belief.mac, about, atMs, message));
  } else out.withdrawn.push({ rule: 'airplane-silence', mac: belief.mac, about });
}
