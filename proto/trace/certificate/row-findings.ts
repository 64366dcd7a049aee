/**
 * Passes the findings of a trace on: at once, or, if a later line may withdraw one, at the trace's end. So only those
 * are kept, without their uplinks.
 */
import type { UplinkKey } from '../../power/judge/event.js';
import type { RuleName } from '../../power/rules.js';
import { type FindingSink, findingKey, isWithdrawable, type TraceFinding } from '../findings.js';

/** A finding that no later line has withdrawn. */
export type StandingFinding = Pick<TraceFinding, 'line' | 'mac' | 'rule' | 'message'>;

/** See the head of this file. */
export class RowFindings implements FindingSink {
  readonly #take: (finding: StandingFinding) => void;
  readonly #withdrawable = new Map<string, StandingFinding>();

  /** @param take gets each finding that stands */
  constructor(take: (finding: StandingFinding) => void) {
    this.#take = take;
  }

  add(finding: TraceFinding): void {
    const { line, mac, rule, message, about } = finding;
    if (about !== null && isWithdrawable(finding))
      this.#withdrawable.set(findingKey(rule, mac, about), { line, mac, rule, message });
    else this.#take({ line, mac, rule, message });
  }

  withdraw(rule: RuleName, mac: string, about: UplinkKey): void {
    this.#withdrawable.delete(findingKey(rule, mac, about));
  }

  /** Ends the trace: nothing can be withdrawn any more. */
  end(): void {
    const standing = [...this.#withdrawable.values()].sort((a, b) => a.line - b.line);
    for (const finding of standing) this.#take(finding);
    this.#withdrawable.clear();
  }
}
