/**
 * Passes on the findings of a trace's check that are not withdrawn. A finding that a later line may withdraw is held
 * until the end of the trace, without its uplink to save memory; any other is passed on at once.
 */
import type { UplinkKey } from '../../power/judge/event.js';
import type { RuleName } from '../../power/rules.js';
import { type FindingSink, findingKey, isWithdrawable, type TraceFinding } from '../findings.js';

/** A finding that no later line has withdrawn. */
export type StandingFinding = Pick<TraceFinding, 'line' | 'mac' | 'rule' | 'message'>;

/** See the top of this file. */
export class RowFindings implements FindingSink {
  readonly #receive: (finding: StandingFinding) => void;
  readonly #withdrawable = new Map<string, StandingFinding>();

  /** @param receive is called with each finding that was not withdrawn */
  constructor(receive: (finding: StandingFinding) => void) {
    this.#receive = receive;
  }

  add(finding: TraceFinding): void {
    const { line, mac, rule, message, about } = finding;
    if (about !== null && isWithdrawable(finding))
      this.#withdrawable.set(findingKey(rule, mac, about), { line, mac, rule, message });
    else this.#receive({ line, mac, rule, message });
  }

  withdraw(rule: RuleName, mac: string, about: UplinkKey): void {
    this.#withdrawable.delete(findingKey(rule, mac, about));
  }

  /** Called at the end of the trace, when nothing can be withdrawn any more. */
  end(): void {
    const standing = [...this.#withdrawable.values()].sort((a, b) => a.line - b.line);
    for (const finding of standing) this.#receive(finding);
    this.#withdrawable.clear();
  }
}
