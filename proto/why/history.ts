/**
 * Replays a lock's events through the judge up to the moment that is asked about: the view of the lock just before it,
 * the view after it, and what came later. Pure: the caller gives the events of a log or a trace, in order.
 */

import { type Belief, newBelief } from '../power/judge/belief.js';
import { type JudgeEvent, newVerdict, type UplinkEvent, type Verdict } from '../power/judge/event.js';
import { judgeInPlace } from '../power/judge/judge.js';
import type { PowerModel } from '../power/model.js';
import { FIRST_LIFE } from '../wire/uplink-life.js';

/** A history with its moment. Times are ms since the epoch, by the judge's clock. */
export interface JudgedHistory {
  /** What came before the moment, oldest first; with `isCut`, older events are left out. */
  readonly before: readonly JudgeEvent[];
  readonly isCut: boolean;
  readonly beliefBefore: Belief;
  /** What is asked about, where it is an uplink. */
  readonly target: UplinkEvent | null;
  /** What the target brought; empty without one. */
  readonly verdict: Verdict;
  /** After the target, or at the moment. */
  readonly belief: Belief;
  /** What came later, oldest first, as far as it was read. */
  readonly after: readonly JudgeEvent[];
  /** At how many events the judge failed: after each, the view starts from nothing. */
  readonly failures: number;
}

/** Takes events in their order, and then the moment. */
export class HistoryReplay {
  readonly #model: PowerModel;
  readonly #mac: string;
  readonly #judge: typeof judgeInPlace;
  #belief: Belief;
  #failures = 0;
  readonly #isCut: boolean;
  readonly #before: JudgeEvent[] = [];
  readonly #keys = new Set<string>();

  /**
   * @param beginMs when the history begins, from which on the gateway counts as listening (protocol.md §4)
   * @param judge what judges, which may throw
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

  /** One more event before the moment. */
  take(event: JudgeEvent): void {
    const known = this.#withCopy(event);
    this.#before.push(known);
    // A judge that throws leaves a belief half written: it is given up for a new one.
    if (this.#judged(this.#belief, known) === undefined)
      this.#belief = newBelief(this.#model, this.#mac, event.atMs, { listeningSinceMs: event.atMs });
  }

  /** What the event brings; undefined where the judge throws. */
  #judged(belief: Belief, event: JudgeEvent): Verdict | undefined {
    const verdict = newVerdict();
    try {
      this.#judge(this.#model, belief, event, verdict);
    } catch {
      this.#failures += 1;
      return undefined;
    }
    return verdict;
  }

  /** What is believed after the event, and what it brings; as before it and nothing where the judge throws. */
  #end(event: JudgeEvent): Pick<JudgedHistory, 'belief' | 'verdict'> {
    const belief = structuredClone(this.#belief);
    const verdict = this.#judged(belief, event);
    if (verdict !== undefined) return { belief, verdict };
    return { belief: structuredClone(this.#belief), verdict: newVerdict() };
  }

  /** The moment is this uplink. */
  endAt(uplink: UplinkEvent, after: readonly JudgeEvent[]): JudgedHistory {
    const target = this.#withCopy(uplink) as UplinkEvent;
    const end = this.#end(target);
    return { ...this.#common(after), target, ...end };
  }

  /** The moment is a time at which nothing came. */
  endAtTime(atMs: number, after: readonly JudgeEvent[]): JudgedHistory {
    const end = this.#end({ type: 'tick', atMs });
    return { ...this.#common(after), target: null, ...end };
  }

  #common(
    after: readonly JudgeEvent[],
  ): Pick<JudgedHistory, 'before' | 'isCut' | 'beliefBefore' | 'after' | 'failures'> {
    const isCut = this.#isCut || this.#failures > 0;
    return { before: this.#before, isCut, beliefBefore: this.#belief, after, failures: this.#failures };
  }

  /** A log has each uplink once, so a key that comes again has other content. */
  #withCopy(event: JudgeEvent): JudgeEvent {
    if (event.type !== 'uplink' || event.copy !== 'new') return event;
    const { credential, life = FIRST_LIFE, uplink } = event;
    const key = `${credential}/${life}/${uplink.boot}/${uplink.sequence}`;
    if (this.#keys.has(key)) return { ...event, copy: 'conflict' };
    this.#keys.add(key);
    return event;
  }
}

/** The lock's own uplinks among events, oldest first. */
export function ownUplinks(events: readonly JudgeEvent[]): UplinkEvent[] {
  return events.filter((event) => event.type === 'uplink' && event.source === 'lock') as UplinkEvent[];
}

/** The key of an uplink as people write it: `41/12`. */
export function uplinkLabel({ boot, sequence }: { readonly boot: number; readonly sequence: number }): string {
  return `${boot}/${sequence}`;
}
