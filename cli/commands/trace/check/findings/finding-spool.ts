/**
 * Stores the findings of one trace for reports, in bounded memory however many there are: each finding is JSON in a
 * spill file (spill-file.ts), with an entry in an index. A later line of the trace may withdraw a finding, such as one
 * about a missing uplink that then arrives late. Findings of ignored rules are dropped; findings that a baseline lists
 * are only counted.
 */
import type { UplinkKey } from '../../../../../proto/power/judge/event.js';
import { RULES, type RuleName, type RuleRow, type Severity } from '../../../../../proto/power/rules.js';
import { type FindingSink, isWithdrawable, type TraceFinding } from '../../../../../proto/trace/findings.js';
import type { Baseline } from './baseline.js';
import { FindingIndex } from './finding-index.js';
import { type FindingJson, findingToJson } from './finding-json.js';
import type { SpillFile } from './spill-file.js';

/** Which findings a report leaves out: those of ignored rules, and those of the baseline. */
export interface LeftOut {
  readonly ignore: readonly string[];
  readonly baseline: Baseline | null;
}

/** The maximum number of firmware versions counted separately; further versions are counted under the last of these. */
const MAX_FIRMWARE_VERSIONS = 1000;
/** The firmware of a lock that has not reported any. */
export const UNKNOWN_FIRMWARE = 'unknown';

/** What is needed of a finding to count it. */
export interface CountedFinding {
  readonly rule: RuleName;
  readonly firmware: string;
  readonly mac: string;
}

/** The stored findings of one trace. */
export class FindingSpool implements FindingSink {
  /** The number of findings that the baseline lists, including those that a later line withdraws. */
  known = 0;
  readonly #spill: SpillFile;
  readonly #leftOut: LeftOut;
  readonly #index = new FindingIndex();
  readonly #locks = new NumberedTexts();
  readonly #firmware = new NumberedTexts(MAX_FIRMWARE_VERSIONS);
  /** The index entries in the order of their lines; null after a change. */
  #sortedEntries: Uint32Array | null = null;

  /** @param spill may be shared by several spools */
  constructor(spill: SpillFile, leftOut: LeftOut) {
    this.#spill = spill;
    this.#leftOut = leftOut;
  }

  add(finding: TraceFinding): void {
    const { line, mac, rule, about, firmwareVersion } = finding;
    if (this.#leftOut.ignore.includes(rule)) return;
    if (this.#leftOut.baseline?.has(finding) === true) {
      this.known += 1;
      return;
    }
    const bytes = Buffer.from(JSON.stringify(findingToJson(finding)));
    this.#sortedEntries = null;
    this.#index.add({
      line,
      lock: this.#locks.numberOf(mac),
      rule: RULE_NUMBERS.get(rule) as number,
      firmware: this.#firmware.numberOf(firmwareVersion ?? UNKNOWN_FIRMWARE),
      position: this.#spill.append(bytes),
      length: bytes.length,
      key: isWithdrawable(finding) ? about : null,
    });
  }

  withdraw(rule: RuleName, mac: string, about: UplinkKey): void {
    this.#sortedEntries = null;
    this.#index.withdraw(RULE_NUMBERS.get(rule) as number, this.#locks.numberOf(mac), about);
  }

  countOf(severity: Severity): number {
    let count = 0;
    for (const index of this.#sorted()) if (this.#ruleOf(index).severity === severity) count += 1;
    return count;
  }

  /** All findings in the order of their lines. */
  *all(): Generator<FindingJson> {
    for (const index of this.#sorted()) yield this.#read(index);
  }

  /** The findings of one rule in the order of their lines. */
  *ofRule(rule: RuleName): Generator<FindingJson> {
    const number = RULE_NUMBERS.get(rule);
    for (const index of this.#sorted()) if (this.#index.get('rule', index) === number) yield this.#read(index);
  }

  /** The findings by lock: locks in the order of their first lines, and each lock's findings in the order of lines. */
  *byLock(): Generator<FindingJson> {
    const ranks = new Map<number, number>();
    for (const index of this.#sorted()) {
      const lock = this.#index.get('lock', index);
      if (!ranks.has(lock)) ranks.set(lock, ranks.size);
    }
    const rank = (index: number): number => ranks.get(this.#index.get('lock', index)) as number;
    // Sorting is stable, so lines stay in order.
    for (const index of this.#sorted()
      .slice()
      .sort((a, b) => rank(a) - rank(b)))
      yield this.#read(index);
  }

  /** Rule, firmware and lock of each finding, to be counted: of findings that are alike, each by itself. */
  *countedFindings(): Generator<CountedFinding> {
    for (const index of this.#sorted()) {
      const firmware = this.#firmware.textOf(this.#index.get('firmware', index));
      const mac = this.#locks.textOf(this.#index.get('lock', index));
      yield { rule: this.#ruleOf(index).rule, firmware, mac };
    }
  }

  #sorted(): Uint32Array {
    this.#sortedEntries ??= this.#index.sorted();
    return this.#sortedEntries;
  }

  #ruleOf(index: number): RuleRow {
    return RULES[this.#index.get('rule', index)] as RuleRow;
  }

  /** Reads an entry's finding from the spill file. */
  #read(index: number): FindingJson {
    const bytes = this.#spill.read(this.#index.positionOf(index), this.#index.get('length', index));
    return JSON.parse(bytes.toString('utf8'));
  }
}

/** The position of each rule in the table of rules. */
const RULE_NUMBERS: ReadonlyMap<string, number> = new Map(RULES.map(({ rule }, number) => [rule, number]));

/** Gives each new text the next number. Above the maximum, new texts get the last number. */
class NumberedTexts {
  readonly #texts: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #max: number;

  constructor(max = Number.POSITIVE_INFINITY) {
    this.#max = max;
  }

  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    if (this.#texts.length >= this.#max) return this.#max - 1;
    this.#numbers.set(text, this.#texts.length);
    return this.#texts.push(text) - 1;
  }

  textOf(number: number): string {
    return this.#texts[number] as string;
  }
}
