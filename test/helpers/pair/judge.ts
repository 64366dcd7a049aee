/**
 * The gateway's side of a pair check (run.ts), which runs a simulated lock against the judge: the gateway's code that
 * checks a lock's messages (uplinks) against the power model. This side has the judge, and the uplinks that a gateway
 * would store. The judge uses the true power model by default, even if the lock's model is altered.
 */

import { type Belief, type InitialBelief, newBelief } from '../../../proto/power/judge/belief.js';
import { type Finding, type JudgeEvent, newVerdict, type Verdict } from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { POWER_MODEL, type PowerModel } from '../../../proto/power/model.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { MODEL_LOCK_MAC } from './model-lock.js';

/** Maximum number of uplinks per boot in a test, so that boot and sequence fit in one number. */
const SEQUENCES_PER_BOOT = 2 ** 24;

/** The key of an uplink within its lock (boot and sequence) as one number. */
export function keyNumber({ boot, sequence }: { readonly boot: number; readonly sequence: number }): number {
  return boot * SEQUENCES_PER_BOOT + sequence;
}

/** Judges the events of one lock. */
export class PairJudge {
  /** What the judge believes about the lock's state. */
  readonly belief: Belief;
  readonly #model: PowerModel;
  /** The different uplinks received, by {@link keyNumber}. */
  readonly #received = new Map<number, Uplink>();
  readonly #verdict: Verdict = newVerdict();
  readonly #onFinding: (finding: Finding) => void;
  readonly #onWithdrawal: (rule: string, key: number) => void;

  /**
   * `onFinding` is called for each objection of the judge, and `onWithdrawal` when a late uplink shows that an earlier
   * objection was wrong. `key` is the {@link keyNumber} of the uplink that the withdrawn finding is about.
   */
  constructor(
    atMs: number,
    initial: InitialBelief,
    onFinding: (finding: Finding) => void,
    onWithdrawal: (rule: string, key: number) => void,
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

  /** Whether the uplink with this key was received. */
  has(key: number): boolean {
    return this.#received.has(key);
  }

  /** Judges an event, and reports the findings and withdrawals. */
  judge(event: JudgeEvent): void {
    const verdict = this.#verdict;
    judgeInPlace(this.#model, this.belief, event, verdict);
    if (verdict.findings.length === 0 && verdict.withdrawn.length === 0) return;
    for (const { rule, about } of verdict.withdrawn) this.#onWithdrawal(rule, keyNumber(about));
    for (const finding of verdict.findings) this.#onFinding(finding);
    // The verdict is used again for the next event, since a run has millions of them.
    verdict.withdrawn.length = 0;
    verdict.findings.length = 0;
  }

  /** Judges an uplink as new, as a repeat, or as a conflict: the same key as a stored uplink, but other content. */
  receive(uplink: Uplink, atMs: number): void {
    const key = keyNumber(uplink);
    const stored = this.#received.get(key);
    // A lock resends the same object, so the same object means the same content.
    const novelty = stored === undefined ? 'new' : stored === uplink ? 'repeat' : 'conflict';
    if (novelty === 'new') this.#received.set(key, uplink);
    this.judge({ type: 'uplink', source: 'lock', atMs, credential: 1, novelty, uplink });
  }

  /** The received uplinks, in the order of arrival, without repeats. */
  uplinks(): Uplink[] {
    return [...this.#received.values()];
  }

  /** The keys of uplinks that are missing between received uplinks of the same boot. */
  missing(): number[] {
    const keys: number[] = [];
    // A run is a boot of the lock. Its spans are the ranges of received sequence numbers, so gaps are between spans.
    for (const { boot, spans } of this.belief.runs) {
      for (let index = 1; index < spans.length; index++) {
        const [below, above] = [spans[index - 1]?.high ?? 0, spans[index]?.low ?? 0];
        for (let sequence = below + 1; sequence < above; sequence++) keys.push(keyNumber({ boot, sequence }));
      }
    }
    return keys;
  }
}
