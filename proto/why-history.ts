/**
 * What happened to a lock, judged once more up to the moment that somebody asks about: what was believed just before
 * it, what it made one believe, and what came behind it. Pure: whoever has a log or a trace gives the events, in order.
 */
import { judgeInPlace } from './power-judge.js';
import { type Belief, newBelief } from './power-judge-belief.js';
import { type JudgeEvent, newVerdict, type UplinkEvent, type Verdict } from './power-judge-event.js';
import type { PowerModel } from './power-model.js';

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
  /** What came behind it, oldest first, as far as it was looked at. */
  readonly after: readonly JudgeEvent[];
}

/** Takes events in their order, and then the moment. */
export class HistoryReplay {
  readonly #model: PowerModel;
  readonly #belief: Belief;
  readonly #isCut: boolean;
  readonly #before: JudgeEvent[] = [];
  readonly #names = new Set<string>();

  /** @param beginMs when the history begins, from which on the gateway counts as listening (protocol.md §4) */
  constructor(model: PowerModel, mac: string, beginMs: number, isCut: boolean, belief?: Belief) {
    this.#model = model;
    this.#belief = belief ?? newBelief(model, mac, beginMs, { listeningSinceMs: beginMs });
    this.#isCut = isCut;
  }

  /** One more event before the moment. */
  take(event: JudgeEvent): void {
    const known = this.#withCopy(event);
    this.#before.push(known);
    judgeInPlace(this.#model, this.#belief, known, newVerdict());
  }

  /** The moment is this uplink. */
  endAt(uplink: UplinkEvent, after: readonly JudgeEvent[]): JudgedHistory {
    const target = this.#withCopy(uplink) as UplinkEvent;
    const belief = structuredClone(this.#belief);
    const verdict = newVerdict();
    judgeInPlace(this.#model, belief, target, verdict);
    return { ...this.#common(after), target, verdict, belief };
  }

  /** The moment is a time at which nothing came. */
  endAtTime(atMs: number, after: readonly JudgeEvent[]): JudgedHistory {
    const belief = structuredClone(this.#belief);
    const verdict = newVerdict();
    judgeInPlace(this.#model, belief, { type: 'tick', atMs }, verdict);
    return { ...this.#common(after), target: null, verdict, belief };
  }

  #common(after: readonly JudgeEvent[]): Pick<JudgedHistory, 'before' | 'isCut' | 'beliefBefore' | 'after'> {
    return { before: this.#before, isCut: this.#isCut, beliefBefore: this.#belief, after };
  }

  /** A log has each uplink once, so a name that comes again has other content. */
  #withCopy(event: JudgeEvent): JudgeEvent {
    if (event.type !== 'uplink' || event.copy !== 'new') return event;
    const name = `${event.credential}/${event.uplink.boot}/${event.uplink.sequence}`;
    if (this.#names.has(name)) return { ...event, copy: 'conflict' };
    this.#names.add(name);
    return event;
  }
}

/** The lock's own uplinks among events, oldest first. */
export function ownUplinks(events: readonly JudgeEvent[]): UplinkEvent[] {
  return events.filter((event) => event.type === 'uplink' && event.source === 'lock') as UplinkEvent[];
}

/** How people name an uplink of a lock: `41/12`. */
export function uplinkLabel({ boot, sequence }: { readonly boot: number; readonly sequence: number }): string {
  return `${boot}/${sequence}`;
}
