/**
 * The findings of one rule in a trace, of which `trace shrink` needs one. Bounded: without the uplinks, only those that
 * a later line may still withdraw are kept, the first ones, and the one at the line asked for. Of other rules it counts
 * the findings.
 */
import type { UplinkKey } from '../../../../proto/power/judge/event.js';
import type { RuleName } from '../../../../proto/power/rules.js';
import { type FindingSink, findingKey, isWithdrawable, type TraceFinding } from '../../../../proto/trace/findings.js';

/** A finding without its uplink. */
export type RuleFinding = Pick<TraceFinding, 'line' | 'mac' | 'rule' | 'severity' | 'message'>;

/** Findings that are kept after the trace: for an error that lists the lines of the first. */
const MAX_FIRST = 6;

export class RuleFindings implements FindingSink {
  readonly #rule: string;
  readonly #line: number | undefined;
  readonly #counts = new Map<RuleName, number>();
  /** Those that a later line may withdraw; null for one of another rule, which only counts. */
  readonly #withdrawable = new Map<string, RuleFinding | null>();
  /** The first findings that stand, in the order of their lines. */
  #first: RuleFinding[] = [];
  #atLine: RuleFinding | undefined;

  /** @param line the line of the finding that is asked for; undefined for the first one */
  constructor(rule: string, line: number | undefined) {
    this.#rule = rule;
    this.#line = line;
  }

  add(finding: TraceFinding): void {
    const { line, mac, rule, severity, message, about } = finding;
    this.#count(rule, 1);
    const kept = rule === this.#rule ? { line, mac, rule, severity, message } : null;
    if (about !== null && isWithdrawable(finding)) this.#withdrawable.set(findingKey(rule, mac, about), kept);
    else if (kept !== null) this.#take(kept);
  }

  withdraw(rule: RuleName, mac: string, about: UplinkKey): void {
    if (this.#withdrawable.delete(findingKey(rule, mac, about))) this.#count(rule, -1);
  }

  /** To be called at the end of the trace: nothing can be withdrawn any more. */
  end(): void {
    for (const kept of this.#withdrawable.values()) if (kept !== null) this.#take(kept);
    this.#withdrawable.clear();
  }

  /** The finding at the line asked for, or the first one; undefined if there is none. */
  get wanted(): RuleFinding | undefined {
    return this.#line === undefined ? this.#first[0] : this.#atLine;
  }

  /** The lines of the first findings of the rule. */
  get firstLines(): number[] {
    return this.#first.map(({ line }) => line);
  }

  /** The names of all rules with findings, in alphabetical order. */
  get rules(): RuleName[] {
    return [...this.#counts].flatMap(([rule, count]) => (count > 0 ? [rule] : [])).sort();
  }

  #count(rule: RuleName, change: number): void {
    this.#counts.set(rule, (this.#counts.get(rule) ?? 0) + change);
  }

  #take(finding: RuleFinding): void {
    if (finding.line === this.#line) this.#atLine ??= finding;
    const last = this.#first[MAX_FIRST - 1];
    if (last !== undefined && last.line <= finding.line) return;
    this.#first.push(finding);
    this.#first.sort((a, b) => a.line - b.line);
    this.#first.length = Math.min(this.#first.length, MAX_FIRST);
  }
}
