/**
 * The result of a replay: differences between the gateway's results and the trace, and notes about deviations that are
 * expected.
 *
 * A finding is a rule that a lock broke. Findings are compared by lock, rule and uplink (a message of a lock). A
 * finding that only one side made is a difference if its rule is about the content of uplinks and it can't be explained
 * by the trace's header and commands, which a gateway does not see. All others are notes: findings about receipt,
 * connections or the passing of time depend on the speed and the day.
 */

import { findRule, type RuleName } from '../../../../proto/power/rules.js';
import type { TraceFinding } from '../../../../proto/trace/findings.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { paint, print, sanitizeLine } from '../../../terminal/output.js';
import { findingId, type ReplayPlan, type SendStep } from './plan.js';
import type { ReplayWatch, ReportedFinding } from './watch.js';

/** What deviates. */
type DeviationKind =
  /** The gateway refused a CONNECT. */
  | 'refused'
  /** The gateway closed a connection unexpectedly. */
  | 'ended'
  /** No PUBACK arrived for an uplink. */
  | 'unacknowledged'
  /** An uplink was not sent, because the lock had no connection. */
  | 'unsent'
  /** Uplinks were acknowledged, but the gateway's event stream does not report them. */
  | 'untold'
  /** The gateway could not decode an uplink. */
  | 'quarantined'
  /** Only the gateway made a finding. */
  | 'finding-unexpected'
  /** Only `trace check` made a finding. */
  | 'finding-missing'
  /** Events of the trace that were not replayed as they are. */
  | 'left-out'
  /** The gateway had uplinks before the replay. */
  | 'known';

/** A difference or a note. */
export interface Deviation {
  /** The line in the trace; null if the deviation is not about one line. */
  readonly line: number | null;
  readonly mac: string | null;
  readonly kind: DeviationKind;
  readonly rule?: string;
  readonly message: string;
}

/** The report of a replay. */
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

/** The maximum number of printed differences, and of printed notes; JSON has all. */
const MAX_PRINTED_LINES = 100;

/** Compares the uplinks and findings that the gateway reported with those that the plan expects. */
export function compareWithGateway(
  plan: ReplayPlan,
  watch: ReplayWatch,
): { readonly differences: Deviation[]; readonly notes: Deviation[] } {
  const differences = quarantineDifferences(plan, watch);
  const notes = notesAboutPlan(plan, watch);
  const expected = new ExpectedFindings(plan);
  const reportedKeys = new Set<string>();
  for (const finding of watch.findings) {
    const key = findingKey(finding.mac, finding.rule, finding.uplink);
    if (reportedKeys.has(key)) continue;
    reportedKeys.add(key);
    if (expected.isChecked(key)) continue;
    const message = `only the gateway found ${finding.rule}: ${finding.message}`;
    const { mac, rule } = finding;
    const isNote = !isContentRule(rule) || expected.isPossibleWithoutHeader(key);
    (isNote ? notes : differences).push({
      line: expected.lineOf(finding),
      mac,
      kind: 'finding-unexpected',
      rule,
      message,
    });
  }
  for (const { key, finding, uplink } of expected.checked) {
    if (reportedKeys.has(key)) continue;
    const { mac, rule, line } = finding;
    // A missing uplink is already reported as a difference. An uplink that the gateway had before was judged then.
    if (uplink !== null && (!watch.hasReceived(mac, uplink) || watch.hadBefore(mac, uplink))) continue;
    const message = `only trace check found ${rule}: ${finding.message}`;
    const isNote = !isContentRule(rule) || !expected.isMadeWithoutHeader(finding);
    (isNote ? notes : differences).push({ line, mac, kind: 'finding-missing', rule, message });
  }
  return { differences, notes };
}

function isContentRule(rule: string): boolean {
  return findRule(rule as RuleName)?.restsOn === 'content';
}

function findingKey(mac: string, rule: string, uplink: ReportedFinding['uplink']): string {
  return uplink === null ? `${mac} ${rule}` : `${mac} ${rule} ${uplink.boot} ${uplink.sequence}`;
}

/** The findings of `trace check` about the trace, by uplink key instead of line. */
class ExpectedFindings {
  readonly checked: { key: string; finding: TraceFinding; uplink: SendStep | null }[] = [];
  /** The sent uplinks by their line in the trace. */
  readonly #sendsByLine = new Map<number, SendStep>();
  /** The uplinks' lines in the trace by MAC, boot and sequence. */
  readonly #lines = new Map<string, number>();
  readonly #checkedKeys = new Set<string>();
  readonly #keysWithoutHeader = new Set<string>();
  readonly #idsWithoutHeader: ReadonlySet<string>;

  constructor({ steps, checked, checkedWithoutHeader }: ReplayPlan) {
    for (const step of steps) {
      if (step.do !== 'send') continue;
      this.#sendsByLine.set(step.line, step);
      this.#lines.set(`${formatMac(step.mac)} ${step.boot} ${step.sequence}`, step.line);
    }
    for (const finding of checked.findings()) {
      const key = this.#keyOf(finding);
      this.#checkedKeys.add(key);
      this.checked.push({ key, finding, uplink: this.#sendsByLine.get(finding.line) ?? null });
    }
    // A gateway reports a finding at once, even if late data withdraws it later.
    for (const finding of checked.withdrawn()) this.#checkedKeys.add(this.#keyOf(finding));
    const foundWithoutHeader = checkedWithoutHeader.findings();
    for (const finding of [...foundWithoutHeader, ...checkedWithoutHeader.withdrawn()])
      this.#keysWithoutHeader.add(this.#keyOf(finding));
    this.#idsWithoutHeader = new Set(foundWithoutHeader.map(findingId));
  }

  #keyOf({ line, mac, rule }: TraceFinding): string {
    return findingKey(mac, rule, this.#sendsByLine.get(line) ?? null);
  }

  isChecked(key: string): boolean {
    return this.#checkedKeys.has(key);
  }

  /** Whether the rules made this finding without the trace's header and commands, even if they withdrew it later. */
  isPossibleWithoutHeader(key: string): boolean {
    return this.#keysWithoutHeader.has(key);
  }

  /** Whether the finding also follows without the trace's header and commands. */
  isMadeWithoutHeader(finding: TraceFinding): boolean {
    return this.#idsWithoutHeader.has(findingId(finding));
  }

  /** The line of the trace with the uplink at fault; null if the finding is not about an uplink of the trace. */
  lineOf({ mac, uplink }: ReportedFinding): number | null {
    return uplink === null ? null : (this.#lines.get(`${mac} ${uplink.boot} ${uplink.sequence}`) ?? null);
  }
}

/** A difference for each uplink that the gateway could not decode. */
function quarantineDifferences(plan: ReplayPlan, { quarantined }: ReplayWatch): Deviation[] {
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

function notesAboutPlan(
  { leftOut, addedConnections, unclosedConnections }: ReplayPlan,
  watch: ReplayWatch,
): Deviation[] {
  const notes: Deviation[] = [];
  const add = (kind: Deviation['kind'], count: number, noun: string, explanation: string): void => {
    if (count > 0) notes.push({ line: null, mac: null, kind, message: `${plural(count, noun)} ${explanation}` });
  };
  add('left-out', leftOut.phoneEvents, 'event', 'of phones not replayed: a replay has no credentials of phones');
  add('left-out', leftOut.commands, 'command', 'not replayed: a replay has no operator');
  add('left-out', addedConnections, 'connection', 'added for uplinks outside a connection of the trace');
  const closing = 'closed at the end, since the trace has no disconnect event: the gateway may miss a closing ping';
  add('left-out', unclosedConnections, 'connection', closing);
  const knownUplinks = watch.hadBeforeCount;
  add(
    'known',
    knownUplinks,
    'uplink',
    'known to the gateway before, which judged them then (--as-now gives new numbers)',
  );
  return notes;
}

function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}

/** Prints the report as text. */
export function printReplay({ file, mqtt, locks, connections, uplinks, differences, notes }: ReplayReport): void {
  const { sent, acknowledged } = uplinks;
  const played = `${plural(sent, 'uplink')} of ${plural(locks, 'lock')} over ${plural(connections, 'connection')}`;
  const answered = acknowledged === sent ? '' : `, ${acknowledged.toLocaleString('en-US')} acknowledged`;
  print(`${paint('bold', sanitizeLine(file))}: ${played} to ${mqtt}${answered}`);
  printList(differences, 'red');
  printList(notes, 'dim');
  if (differences.length === 0) print(paint('green', 'No differences: the gateway agrees with the trace.'));
  else print(paint('red', `${plural(differences.length, 'difference')}.`));
}

function printList(deviations: readonly Deviation[], style: 'red' | 'dim'): void {
  const mark = style === 'red' ? 'differs' : 'note';
  for (const { line, mac, message } of deviations.slice(0, MAX_PRINTED_LINES)) {
    const location = `${line === null ? '' : `line ${line}  `}${mac === null ? '' : `${mac}  `}`;
    print(`  ${paint(style, mark.padEnd('differs'.length))}  ${location}${sanitizeLine(message)}`);
  }
  const more = deviations.length - MAX_PRINTED_LINES;
  if (more > 0) print(`  and ${more.toLocaleString('en-US')} more (--json has all)`);
}
