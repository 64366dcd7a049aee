/**
 * The judging side of a pair check: `judge`, with the set of received uplinks that a gateway would store. It uses the
 * true power model by default, even if the lock's model is altered.
 */

import { type Belief, type InitialBelief, newBelief } from '../../../proto/power/judge/belief.js';
import { type Finding, type JudgeEvent, newVerdict, type Verdict } from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { POWER_MODEL, type PowerModel } from '../../../proto/power/model.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { MODEL_LOCK_MAC } from '../mqtt/model-lock.js';

/** Maximum number of uplinks per boot in a test, so that boot and sequence fit in one number. */
const SEQUENCES_PER_BOOT = 2 ** 24;

/** The key of an uplink within its lock (boot and sequence) as one number. */
export function keyNumber({ boot, sequence }: { readonly boot: number; readonly sequence: number }): number {
  return boot * SEQUENCES_PER_BOOT + sequence;
}

/** Judges the events of one lock. */
export class PairJudge {
  readonly belief: Belief;
  readonly #model: PowerModel;
  readonly #received = new Map<number, Uplink>();
  readonly #verdict: Verdict = newVerdict();
  readonly #onFinding: (finding: Finding) => void;
  readonly #onWithdrawal: (rule: string, name: number) => void;

  /** Each finding and each withdrawal is reported at once. */
  constructor(
    atMs: number,
    initial: InitialBelief,
    onFinding: (finding: Finding) => void,
    onWithdrawal: (rule: string, name: number) => void,
    model: PowerModel = POWER_MODEL,
  ) {
    this.#model = model;
    this.belief = newBelief(model, formatMac(MODEL_LOCK_MAC), atMs, initial);
    this.#onFinding = onFinding;
    this.#onWithdrawal = onWithdrawal;
  }

  /** The number of different uplinks received. */
  get received(): number {
    return this.#received.size;
  }

  has(name: number): boolean {
    return this.#received.has(name);
  }

  judge(event: JudgeEvent): void {
    const out = this.#verdict;
    judgeInPlace(this.#model, this.belief, event, out);
    if (out.findings.length === 0 && out.withdrawn.length === 0) return;
    for (const { rule, about } of out.withdrawn) this.#onWithdrawal(rule, keyNumber(about));
    for (const finding of out.findings) this.#onFinding(finding);
    out.withdrawn.length = 0;
    out.findings.length = 0;
  }

  receive(uplink: Uplink, atMs: number): void {
    const name = keyNumber(uplink);
    const before = this.#received.get(name);
    // A lock resends the same object, so the same object means the same content.
    const novelty = before === undefined ? 'new' : before === uplink ? 'repeat' : 'conflict';
    if (novelty === 'new') this.#received.set(name, uplink);
    this.judge({ type: 'uplink', source: 'lock', atMs, credential: 1, novelty, uplink });
  }

  /** The received uplinks, in the order of arrival, without repeats. */
  uplinks(): Uplink[] {
    return [...this.#received.values()];
  }

  /** The keys of uplinks that are missing between received uplinks of the same boot. */
  missing(): number[] {
    const names: number[] = [];
    for (const { boot, spans } of this.belief.runs) {
      for (let index = 1; index < spans.length; index++) {
        const [below, above] = [spans[index - 1]?.high ?? 0, spans[index]?.low ?? 0];
        for (let sequence = below + 1; sequence < above; sequence++) names.push(keyNumber({ boot, sequence }));
      }
    }
    return names;
  }
}
