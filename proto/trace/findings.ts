/**
 * The findings of a trace's check: what a finding says, and a list that holds findings until the end of the trace. A
 * later line may explain an earlier finding, which is then withdrawn. Does no I/O: a caller with very many findings
 * passes another {@link FindingSink} than the list.
 */
import type { UplinkKey } from '../power/judge/event.js';
import { WITHDRAWABLE_RULES } from '../power/judge/in-order/ordered-uplink.js';
import type { RuleName, Severity } from '../power/rules.js';
import type { Source, Uplink } from '../wire/ping.js';
import { FIRST_LIFE } from '../wire/uplink-life.js';
import type { OwedCause } from './owed/duty.js';

/** A finding with the number of the line that it is about, from 1. */
export interface TraceFinding {
  readonly line: number;
  /** In the form `A4:C1:38:F0:E1:D2`. */
  readonly mac: string;
  readonly rule: RuleName;
  readonly severity: Severity;
  readonly message: string;
  /** When it was found, by the trace's clock, ms since the epoch. */
  readonly atMs: number;
  /** The uplink at fault; null if the finding is not about one. */
  readonly about: UplinkKey | null;
  /** That uplink and who sent it; null if the finding is about none, or about one long before its line. */
  readonly sent: { readonly source: Source; readonly uplink: Uplink } | null;
  /** The firmware version that the lock last reported before; null if it has not reported one. */
  readonly firmwareVersion: string | null;
  /** Only for the rule `owed`: the `world` event (what truly happened) because of which an uplink is missing. */
  readonly world?: OwedCause;
}

/** Receives the findings of a check. */
export interface FindingSink {
  add(finding: TraceFinding): void;
  /** Removes the withdrawable finding (see {@link isWithdrawable}) of this rule about this uplink, if there is one. */
  withdraw(rule: RuleName, mac: string, about: UplinkKey): void;
}

/** Whether a later line may withdraw the finding. */
export function isWithdrawable({ rule, about }: Pick<TraceFinding, 'rule' | 'about'>): boolean {
  return about !== null && WITHDRAWABLE_RULES.has(rule);
}

/** Identifies a finding that may be withdrawn. */
export function findingKey(rule: RuleName, mac: string, about: UplinkKey): string {
  const { credential, life = FIRST_LIFE, boot, sequence } = about;
  return `${rule} ${mac} ${credential} ${life} ${boot} ${sequence}`;
}

/** Holds findings in memory. */
export class FindingList implements FindingSink {
  readonly #findings = new Set<TraceFinding>();
  readonly #withdrawn: TraceFinding[] = [];
  readonly #withdrawable = new Map<string, TraceFinding>();

  add(finding: TraceFinding): void {
    this.#findings.add(finding);
    const { rule, mac, about } = finding;
    if (about !== null && isWithdrawable(finding)) this.#withdrawable.set(findingKey(rule, mac, about), finding);
  }

  withdraw(rule: RuleName, mac: string, about: UplinkKey): void {
    const key = findingKey(rule, mac, about);
    const finding = this.#withdrawable.get(key);
    if (finding === undefined) return;
    this.#findings.delete(finding);
    this.#withdrawn.push(finding);
    this.#withdrawable.delete(key);
  }

  /** The findings that were not withdrawn, in the order of their lines. */
  sorted(): TraceFinding[] {
    return [...this.#findings].sort((a, b) => a.line - b.line);
  }

  /** The findings that were withdrawn, in the order of the withdrawals. */
  withdrawn(): readonly TraceFinding[] {
    return this.#withdrawn;
  }
}
