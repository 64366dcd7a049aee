/**
 * The result of a replay: differences between the gateway and the trace, and notes about what may legitimately differ.
 *
 * Findings are compared by lock, rule and uplink. Only those of rules about content count: findings about the time of
 * receipt, connections or the passing of time depend on the speed and the day. Of those that count, one that depends on
 * the trace's header or commands, which a gateway does not see, is a note.
 */

import { type RuleName, ruleRow } from '../../../../proto/power/rules.js';
import type { TraceFinding } from '../../../../proto/trace/check.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { oneLine, paint, print } from '../../../terminal/output.js';
import { placeOf, type ReplayPlan, type SendStep } from './plan.js';
import type { ReplayWatch, SeenFinding } from './watch.js';

/** A difference or a note. */
export interface Deviation {
  /** Its line in the trace; null where it has none. */
  readonly line: number | null;
  readonly mac: string | null;
  readonly kind:
    | 'refused'
    | 'ended'
    | 'unacknowledged'
    | 'unsent'
    | 'untold'
    | 'quarantined'
    | 'finding-unexpected'
    | 'finding-missing'
    | 'left-out'
    | 'known';
  readonly rule?: string;
  readonly message: string;
}

export interface ReplayReport {
  readonly file: string;
  /** `mqtt://host:port` */
  readonly mqtt: string;
  readonly locks: number;
  readonly connections: number;
  readonly uplinks: { readonly sent: number; readonly acknowledged: number };
  readonly same: boolean;
  readonly differences: readonly Deviation[];
  readonly notes: readonly Deviation[];
}

/** The most lines of each kind that are printed; JSON has all. */
const PRINTED_MOST = 100;

/** Differences and notes about what the gateway took and found. */
export function compareWithGateway(
  plan: ReplayPlan,
  watch: ReplayWatch,
): { readonly differences: Deviation[]; readonly notes: Deviation[] } {
  const differences = quarantinedOf(plan, watch);
  const notes = leftOutOf(plan, watch);
  const expected = new ExpectedFindings(plan);
  const seen = new Set<string>();
  for (const finding of watch.findings) {
    const key = keyOf(finding.mac, finding.rule, finding.uplink);
    if (seen.has(key)) continue;
    seen.add(key);
    if (expected.isChecked(key)) continue;
    const message = `the gateway found ${finding.rule}, trace check does not: ${finding.message}`;
    const { mac, rule } = finding;
    const isNote = !restsOnContent(rule) || expected.isPossible(key);
    (isNote ? notes : differences).push({
      line: expected.lineOf(finding),
      mac,
      kind: 'finding-unexpected',
      rule,
      message,
    });
  }
  for (const { key, finding, uplink } of expected.checked) {
    if (seen.has(key)) continue;
    const { mac, rule, line } = finding;
    // A missing uplink is reported as such, and one that the gateway had before was judged then.
    if (uplink !== null && (!watch.hasTaken(mac, uplink) || watch.hadBefore(mac, uplink))) continue;
    const message = `trace check finds ${rule}, the gateway did not: ${finding.message}`;
    const isNote = !restsOnContent(rule) || !expected.isSure(finding);
    (isNote ? notes : differences).push({ line, mac, kind: 'finding-missing', rule, message });
  }
  return { differences, notes };
}

function restsOnContent(rule: string): boolean {
  return ruleRow(rule as RuleName)?.restsOn === 'content';
}

function keyOf(mac: string, rule: string, uplink: SeenFinding['uplink']): string {
  return uplink === null ? `${mac} ${rule}` : `${mac} ${rule} ${uplink.boot} ${uplink.sequence}`;
}

/** The rules' findings about the trace, by uplink key instead of line. */
class ExpectedFindings {
  readonly checked: { key: string; finding: TraceFinding; uplink: SendStep | null }[] = [];
  readonly #sends = new Map<number, SendStep>();
  readonly #lines = new Map<string, number>();
  readonly #checkedKeys = new Set<string>();
  readonly #possibleKeys = new Set<string>();
  readonly #barePlaces: ReadonlySet<string>;

  constructor({ steps, checked, bare }: ReplayPlan) {
    for (const step of steps) {
      if (step.do !== 'send') continue;
      this.#sends.set(step.line, step);
      this.#lines.set(`${formatMac(step.mac)} ${step.boot} ${step.sequence}`, step.line);
    }
    for (const finding of checked.findings()) {
      const key = this.#keyOf(finding);
      this.#checkedKeys.add(key);
      this.checked.push({ key, finding, uplink: this.#sends.get(finding.line) ?? null });
    }
    // A gateway reports a finding when it is made, and late data may withdraw it later.
    for (const finding of checked.withdrawn()) this.#checkedKeys.add(this.#keyOf(finding));
    for (const finding of [...bare.findings(), ...bare.withdrawn()]) this.#possibleKeys.add(this.#keyOf(finding));
    this.#barePlaces = new Set(bare.findings().map(placeOf));
  }

  #keyOf({ line, mac, rule }: TraceFinding): string {
    return keyOf(mac, rule, this.#sends.get(line) ?? null);
  }

  isChecked(key: string): boolean {
    return this.#checkedKeys.has(key);
  }

  /** Whether the bytes only, without header and commands, lead to it. */
  isPossible(key: string): boolean {
    return this.#possibleKeys.has(key);
  }

  /** Whether it depends on the bytes only. */
  isSure(finding: TraceFinding): boolean {
    return this.#barePlaces.has(placeOf(finding));
  }

  lineOf({ mac, uplink }: SeenFinding): number | null {
    return uplink === null ? null : (this.#lines.get(`${mac} ${uplink.boot} ${uplink.sequence}`) ?? null);
  }
}

function quarantinedOf(plan: ReplayPlan, { quarantined }: ReplayWatch): Deviation[] {
  if (quarantined.length === 0) return [];
  const lines = new Map<string, number>();
  for (const step of plan.steps)
    if (step.do === 'send') lines.set(`${formatMac(step.mac)} ${base64Of(step.bytes)}`, step.line);
  return quarantined.map(({ mac, message, raw }) => {
    const line = lines.get(`${mac} ${raw}`) ?? null;
    return { line, mac, kind: 'quarantined', message: `the gateway quarantined the uplink: ${message}` };
  });
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function leftOutOf({ leftOut, ownConnections }: ReplayPlan, watch: ReplayWatch): Deviation[] {
  const notes: Deviation[] = [];
  const add = (kind: Deviation['kind'], count: number, noun: string, rest: string): void => {
    if (count > 0) notes.push({ line: null, mac: null, kind, message: `${plural(count, noun)} ${rest}` });
  };
  add('left-out', leftOut.phoneEvents, 'event', 'of phones left out: a replay has no credentials of phones');
  add('left-out', leftOut.commands, 'command', 'left out: a replay has no operator');
  add('left-out', ownConnections, 'connection', 'made for uplinks that the trace has outside of one');
  const known = watch.hadBeforeCount;
  add('known', known, 'uplink', 'known to the gateway before, which judged them then (--as-now gives new numbers)');
  return notes;
}

function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}

/** Prints the report for people. */
export function printReplay({ file, mqtt, locks, connections, uplinks, differences, notes }: ReplayReport): void {
  const { sent, acknowledged } = uplinks;
  const played = `${plural(sent, 'uplink')} of ${plural(locks, 'lock')} over ${plural(connections, 'connection')}`;
  const answered = acknowledged === sent ? '' : `, ${acknowledged.toLocaleString('en-US')} acknowledged`;
  print(`${paint('bold', oneLine(file))}: ${played} to ${mqtt}${answered}`);
  printList(differences, 'red');
  printList(notes, 'dim');
  if (differences.length === 0) print(paint('green', 'No difference: the gateway agrees with the trace.'));
  else print(paint('red', `${plural(differences.length, 'difference')}.`));
}

function printList(deviations: readonly Deviation[], style: 'red' | 'dim'): void {
  const mark = style === 'red' ? 'differs' : 'note';
  for (const { line, mac, message } of deviations.slice(0, PRINTED_MOST)) {
    const where = `${line === null ? '' : `line ${line}  `}${mac === null ? '' : `${mac}  `}`;
    print(`  ${paint(style, mark.padEnd(7))}  ${where}${oneLine(message)}`);
  }
  const more = deviations.length - PRINTED_MOST;
  if (more > 0) print(`  and ${more.toLocaleString('en-US')} more (--json has all)`);
}
