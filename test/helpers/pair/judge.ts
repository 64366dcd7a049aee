/**
 * The judging side of a pair check: `judge` with what a gateway keeps beside it, which names have been seen and which
 * findings stand. It believes the true table, whatever table the lock acts by.
 */

import { type Belief, type InitialBelief, newBelief } from '../../../proto/power/judge/belief.js';
import { type Finding, type JudgeEvent, newVerdict, type Verdict } from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { POWER_MODEL, type PowerModel } from '../../../proto/power/model.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { BENCH_MAC } from '../mqtt/lock-bench.js';

/** Names are compared by number: a boot and a sequence of 32 bits would not fit, but no walk gets that far. */
const NUMBERS_OF_A_BOOT = 2 ** 24;

/** The name of an uplink within its lock, as a number. */
export function nameNumber({ boot, sequence }: { readonly boot: number; readonly sequence: number }): number {
  return boot * NUMBERS_OF_A_BOOT + sequence;
}

/** See the head of this file. */
export class PairJudge {
  readonly belief: Belief;
  readonly #model: PowerModel;
  readonly #seen = new Map<number, Uplink>();
  readonly #out: Verdict = newVerdict();
  readonly #onFinding: (finding: Finding) => void;
  readonly #onWithdrawal: (rule: string, name: number) => void;

  /** Each finding is told at once, and so is each withdrawal. */
  constructor(
    atMs: number,
    initial: InitialBelief,
    onFinding: (finding: Finding) => void,
    onWithdrawal: (rule: string, name: number) => void,
    model: PowerModel = POWER_MODEL,
  ) {
    this.#model = model;
    this.belief = newBelief(model, formatMac(BENCH_MAC), atMs, initial);
    this.#onFinding = onFinding;
    this.#onWithdrawal = onWithdrawal;
  }

  /** How many different uplinks were received. */
  get received(): number {
    return this.#seen.size;
  }

  has(name: number): boolean {
    return this.#seen.has(name);
  }

  judge(event: JudgeEvent): void {
    const out = this.#out;
    judgeInPlace(this.#model, this.belief, event, out);
    if (out.findings.length === 0 && out.withdrawn.length === 0) return;
    for (const { rule, about } of out.withdrawn) this.#onWithdrawal(rule, nameNumber(about));
    for (const finding of out.findings) this.#onFinding(finding);
    out.withdrawn.length = 0;
    out.findings.length = 0;
  }

  receive(uplink: Uplink, atMs: number): void {
    const name = nameNumber(uplink);
    const before = this.#seen.get(name);
    // A lock keeps what it made and sends it again: the very same object is the same content.
    const copy = before === undefined ? 'new' : before === uplink ? 'repeat' : 'conflict';
    if (copy === 'new') this.#seen.set(name, uplink);
    this.judge({ type: 'uplink', source: 'lock', atMs, credential: 1, copy, uplink });
  }

  /** What was received, in the order of arrival, without repeats. */
  uplinks(): Uplink[] {
    return [...this.#seen.values()];
  }

  /** The numbers that are missing between others of their boot. */
  missing(): number[] {
    const names: number[] = [];
    for (const { boot, spans } of this.belief.runs) {
      for (let index = 1; index < spans.length; index++) {
        const [below, above] = [spans[index - 1]?.high ?? 0, spans[index]?.low ?? 0];
        for (let sequence = below + 1; sequence < above; sequence++) names.push(nameNumber({ boot, sequence }));
      }
    }
    return names;
  }
}
