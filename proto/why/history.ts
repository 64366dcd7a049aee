/**
 * Replays a lock's events through the judge up to a moment that a user asks about. The result has the belief (what the
 * judge knows about the lock) just before the moment and after it, and the later events. Does no I/O: the caller passes
 * the events of a log or a trace, in order.
 */

import { type Belief, newBelief } from '../power/judge/belief.js';
import { type JudgeEvent, newVerdict, type UplinkEvent, type Verdict } from '../power/judge/event.js';
import { judgeInPlace } from '../power/judge/judge.js';
import type { PowerModel } from '../power/model.js';
import { FIRST_LIFE } from '../wire/uplink-life.js';

/** A replayed history. Times are ms since the epoch, by the judge's clock. */
export interface JudgedHistory {
  /** The events before the moment, oldest first. */
  readonly before: readonly JudgeEvent[];
  /** Whether older events are missing from `before`. */
  readonly isCut: boolean;
  readonly beliefBefore: Belief;
  /** The uplink that the user asks about; null if the user asks about a time. */
  readonly target: UplinkEvent | null;
  /** The findings and withdrawals that the target caused; empty without a target. */
  readonly verdict: Verdict;
  /** The belief after the target, or at the moment. */
  readonly belief: Belief;
  /** Later events, oldest first, as far as the caller read them. */
  readonly after: readonly JudgeEvent[];
  /** At how many events the judge failed. After each failure the belief starts from nothing. */
  readonly failures: number;
}

/**
 * Pass the events before the moment to `take`, and then the moment to `endAt` or `endAtTime`, which return the history.
 */
export class HistoryReplay {
  readonly #model: PowerModel;
  readonly #mac: string;
  readonly #judge: typeof judgeInPlace;
  #belief: Belief;
  #failures = 0;
  readonly #isCut: boolean;
  readonly #before: JudgeEvent[] = [];
  /** The keys of the uplinks so far. */
  readonly #keys = new Set<string>();

  /**
   * @param beginMs when the history starts; from then on the gateway counts as listening (protocol.md §4)
   * @param isCut whether older events are missing
   * @param belief the belief at the start; by default a new one
   * @param judge may throw; a test replaces it
   */
  constructor(
    model: PowerModel,
    mac: string,
    beginMs: number,
    isCut: boolean,
    belief?: Belief,
    judge: typeof judgeInPlace = judgeInPlace,
  ) {
    this.#model = model;
    this.#mac = mac;
    this.#judge = judge;
    this.#belief = belief ?? newBelief(model, mac, beginMs, { listeningSinceMs: beginMs });
    this.#isCut = isCut;
  }

  /** Takes the next event before the moment. */
  take(event: JudgeEvent): void {
    const judgedEvent = this.#withNovelty(event);
    this.#before.push(judgedEvent);
    // A judge that throws leaves the belief inconsistent, so a new belief replaces it.
    if (this.#tryJudge(this.#belief, judgedEvent) === undefined)
      this.#belief = newBelief(this.#model, this.#mac, event.atMs, { listeningSinceMs: event.atMs });
  }

  /** Judges an event. Returns undefined if the judge throws. */
  #tryJudge(belief: Belief, event: JudgeEvent): Verdict | undefined {
    const verdict = newVerdict();
    try {
      this.#judge(this.#model, belief, event, verdict);
    } catch {
      this.#failures += 1;
      return undefined;
    }
    return verdict;
  }

  /** The belief after the event, and its verdict. If the judge throws: the belief before it, and an empty verdict. */
  #judgeTarget(event: JudgeEvent): Pick<JudgedHistory, 'belief' | 'verdict'> {
    const belief = structuredClone(this.#belief);
    const verdict = this.#tryJudge(belief, event);
    if (verdict !== undefined) return { belief, verdict };
    return { belief: structuredClone(this.#belief), verdict: newVerdict() };
  }

  /** Ends the history at this uplink. */
  endAt(uplink: UplinkEvent, after: readonly JudgeEvent[]): JudgedHistory {
    const target = this.#withNovelty(uplink) as UplinkEvent;
    const end = this.#judgeTarget(target);
    return { ...this.#common(after), target, ...end };
  }

  /** Ends the history at a time at which nothing came, ms since the epoch. */
  endAtTime(atMs: number, after: readonly JudgeEvent[]): JudgedHistory {
    const end = this.#judgeTarget({ type: 'tick', atMs });
    return { ...this.#common(after), target: null, ...end };
  }

  /** The members that both kinds of history have. */
  #common(
    after: readonly JudgeEvent[],
  ): Pick<JudgedHistory, 'before' | 'isCut' | 'beliefBefore' | 'after' | 'failures'> {
    const isCut = this.#isCut || this.#failures > 0;
    return { before: this.#before, isCut, beliefBefore: this.#belief, after, failures: this.#failures };
  }

  /** The event with its novelty: a log stores each uplink once, so a key that comes again is a conflict. */
  #withNovelty(event: JudgeEvent): JudgeEvent {
    if (event.type !== 'uplink' || event.novelty !== 'new') return event;
    const { credential, life = FIRST_LIFE, uplink } = event;
    const key = `${credential}/${life}/${uplink.boot}/${uplink.sequence}`;
    if (this.#keys.has(key)) return { ...event, novelty: 'conflict' };
    this.#keys.add(key);
    return event;
  }
}

/** The uplinks among the events that came from the lock itself, not from a phone; oldest first. */
export function ownUplinks(events: readonly JudgeEvent[]): UplinkEvent[] {
  return events.filter((event) => event.type === 'uplink' && event.source === 'lock') as UplinkEvent[];
}

/** The key of an uplink as users see it, boot and sequence: `41/12`. */
export function uplinkLabel({ boot, sequence }: { readonly boot: number; readonly sequence: number }): string {
  return `${boot}/${sequence}`;
}
