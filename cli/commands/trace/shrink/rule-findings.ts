/**
 * Collects the findings of one rule in a trace, from which `trace shrink` chooses one. To need little memory it stores
 * no uplinks (messages of locks), and only three kinds of findings: those that a later line may still withdraw, the
 * first ones, and the one at the requested line. Findings of other rules are only counted.
 */
import type { UplinkKey } from '../../../../proto/power/judge/event.js';
import type { RuleName } from '../../../../proto/power/rules.js';
import { type FindingSink, findingKey, isWithdrawable, type TraceFinding } from '../../../../proto/trace/findings.js';

/** A finding without its uplink. */
export type RuleFinding = Pick<TraceFinding, 'line' | 'mac' | 'rule' | 'severity' | 'message'>;

/**
 * The maximum number of first findings: one more than an error lists, so that the error can say that there are more.
 */
const MAX_FIRST_FINDINGS = 6;

/** Receives a trace's findings from its check. */
export class RuleFindings implements FindingSink {
  readonly #rule: string;
  readonly #line: number | undefined;
  readonly #counts = new Map<RuleName, number>();
  /** The findings that a later line may withdraw, by rule, lock and uplink; null for one of another rule. */
  readonly #withdrawable = new Map<string, RuleFinding | null>();
  /** The first findings that can no longer be withdrawn, in the order of their lines. */
  #first: RuleFinding[] = [];
  /** The finding at the requested line; undefined if there is none, or no line was requested. */
  #atLine: RuleFinding | undefined;

  /** @param line the line of the requested finding; undefined for the first one */
  constructor(rule: string, line: number | undefined) {
    this.#rule = rule;
    this.#line = line;
  }

  add(finding: TraceFinding): void {
    const { line, mac, rule, severity, message, about } = finding;
    this.#count(rule, 1);
    const ruleFinding = rule === this.#rule ? { line, mac, rule, severity, message } : null;
    if (about !== null && isWithdrawable(finding)) this.#withdrawable.set(findingKey(rule, mac, about), ruleFinding);
    else if (ruleFinding !== null) this.#addToFirst(ruleFinding);
  }

  withdraw(rule: RuleName, mac: string, about: UplinkKey): void {
    if (this.#withdrawable.delete(findingKey(rule, mac, about))) this.#count(rule, -1);
  }

  /** To be called at the end of the trace: nothing can be withdrawn any more. */
  end(): void {
    for (const finding of this.#withdrawable.values()) if (finding !== null) this.#addToFirst(finding);
    this.#withdrawable.clear();
  }

  /** The finding at the requested line, or the first one; undefined if there is none. */
  get wanted(): RuleFinding | undefined {
    return this.#line === undefined ? this.#first[0] : this.#atLine;
  }

  /** The lines of the first findings of the rule. */
  get firstFindingLines(): number[] {
    return this.#first.map(({ line }) => line);
  }

  /** The names of all rules with findings, in alphabetical order. */
  get rules(): RuleName[] {
    return [...this.#counts].flatMap(([rule, count]) => (count > 0 ? [rule] : [])).sort();
  }

  #count(rule: RuleName, change: number): void {
    this.#counts.set(rule, (this.#counts.get(rule) ?? 0) + change);
  }

  #addToFirst(finding: RuleFinding): void {
    if (finding.line === this.#line) this.#atLine ??= finding;
    // Undefined as long as the list is not full.
    const last = this.#first[MAX_FIRST_FINDINGS - 1];
    if (last !== undefined && last.line <= finding.line) return;
    this.#first.push(finding);
    this.#first.sort((a, b) => a.line - b.line);
    this.#first.length = Math.min(this.#first.length, MAX_FIRST_FINDINGS);
  }
}
