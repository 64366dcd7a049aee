/**
 * Explains an uplink (interfaces.md §4) in steps, each a sentence (step.ts): why the lock sent it, what it is, and
 * which rules apply to it. This file makes the steps that follow from the power model and the judge. Pure.
 */
import { Minutes } from '../clock.js';
import { isAfterKey } from '../power/judge/belief.js';
import { keyOf } from '../power/judge/content.js';
import { type CommandEvent, compareKeys, type Finding } from '../power/judge/event.js';
import { WITHDRAWABLE_RULES } from '../power/judge/in-order/ordered-uplink.js';
import { stateRow } from '../power/judge/state.js';
import { describeSpan, describeTime } from '../power/judge/words.js';
import type { PowerModel, StateRow } from '../power/model.js';
import { findRule, RULES, type RuleName } from '../power/rules.js';
import type { CommandAck, Ping } from '../wire/ping.js';
import { isDatable } from '../wire/ping-json.js';
import { isKnownReason } from '../wire/reasons.js';
import { FIRST_LIFE } from '../wire/uplink-life.js';
import { type JudgedHistory, uplinkLabel } from './history.js';
import { ACK_WHY, CLOSE_WHY, REASON_WHY, type ReasonWhy, UNRECOGNIZED_WHY } from './reasons.js';
import type { RuleCase } from './rule-why.js';
import { appliesInParticular, appliesToEvery, RULE_WHY } from './rules.js';
import { windowText } from './silence.js';
import { SECTIONS, step, type WhyStep } from './step.js';

/** A finding about the uplink that has not been withdrawn. */
export interface StandingFinding {
  /** The finding's name for users, such as `finding:12`; empty if it has none. */
  readonly label: string;
  readonly finding: Finding;
}

/** The uplink at the end of a history. @throws Error if the history ends at a time instead */
export function uplinkCase(model: PowerModel, history: JudgedHistory): RuleCase {
  const { target } = history;
  if (target === null) throw new Error('the history has no uplink at its end');
  return { model, event: target, body: target.uplink.body, history };
}

/** All steps that explain an uplink, in order; the last ones are about the rules. */
export function uplinkSteps(ruleCase: RuleCase, standing: readonly StandingFinding[]): WhyStep[] {
  return [
    ...(ruleCase.event.source === 'lock' ? [believedBefore(ruleCase)] : []),
    stateStep(ruleCase),
    triggerStep(ruleCase),
    ...commandSteps(ruleCase),
    connectionStep(ruleCase, standing),
    ...messageSteps(ruleCase),
    ...ruleSteps(ruleCase, standing),
  ];
}

/** The state in which the uplink was made: by its own power settings and battery, as the judge determines it. */
function rowOf({ model, event, body, history }: RuleCase): StateRow {
  const battery = body.kind === 'ack' ? history.beliefBefore.batteryPercent : body.batteryPercent;
  return stateRow(model, event.uplink.power, battery);
}

/** The step about the gateway's view of the lock before the uplink. The view follows the order in which uplinks
 * were made (protocol.md §1), not that of arrival: by credential, life (a new one begins when a lock's flash was
 * wiped), boot and sequence. */
function believedBefore({ event, history }: RuleCase): WhyStep {
  const { state, lockState, batteryPercent, powerFrom } = history.beliefBefore;
  const { credential, life = FIRST_LIFE, uplink, atMs } = event;
  const label = uplinkLabel(powerFrom);
  const battery = batteryPercent === null ? '' : `, battery ${batteryPercent} %`;
  let sentence = `The gateway’s view before it, from uplink ${label}: ${state}, ${lockState}${battery}.`;
  let code = 'newest';
  // Before the first uplink, the boot is −1.
  if (powerFrom.boot < 0) [code, sentence] = ['first', 'The gateway knew nothing about the lock before it.'];
  else if (!isAfterKey(powerFrom, credential, life, uplink.boot, uplink.sequence))
    [code, sentence] = [
      'late',
      `It arrived after newer ones: the gateway’s view rests on uplink ${label} and stays unchanged.`,
    ];
  return step('before', code, SECTIONS.judge, sentence, atMs);
}

const onOff = (isOn: boolean): string => (isOn ? 'on' : 'off');

function stateStep(ruleCase: RuleCase): WhyStep {
  const { event, body, history } = ruleCase;
  if (event.source === 'phone') {
    const { state, lockState } = history.belief;
    const sentence =
      'A phone sent this, which says nothing about the lock’s own state; the gateway’s view of the lock was ' +
      `${state}, ${lockState}.`;
    return step('state', state, SECTIONS.judge, sentence, event.atMs);
  }
  const row = rowOf(ruleCase);
  const { mode, rideTracking, airplane, recovery } = event.uplink.power;
  const battery = body.kind === 'ack' ? '' : `, battery ${body.batteryPercent} %, ${body.lockState}`;
  const switches = `ride tracking ${onOff(rideTracking)}, airplane ${onOff(airplane)}, recovery ${onOff(recovery)}`;
  const words = `The lock reported ${row.state} (mode ${mode}, ${switches}${battery}).`;
  return step('state', row.state, SECTIONS.model, `${words} ${row.sentence}`, event.atMs);
}

function triggerStep(ruleCase: RuleCase): WhyStep {
  const { event, body } = ruleCase;
  const row = rowOf(ruleCase);
  if (body.kind === 'ack') return step('trigger', 'ack', SECTIONS.wire, ACK_WHY, event.atMs);
  if (!isKnownReason(body.reason))
    return step('trigger', body.reason, SECTIONS.wire, `${body.reason}: ${UNRECOGNIZED_WHY}.`, event.atMs);
  const why = REASON_WHY[body.reason];
  if (body.kind === 'close_connection')
    return step('trigger', body.reason, why.restsOn, `${body.reason}: ${CLOSE_WHY[row.state]}.`, event.atMs);
  const whyMade = body.kind === 'gps' ? why.gps : why.cellular;
  const allowed = event.source === 'phone' ? '' : `${keptConnectionText(ruleCase, row)}${allowedText(row, why.needs)}`;
  return step('trigger', body.reason, why.restsOn, `${body.reason}: ${whyMade}.${allowed}`, event.atMs);
}

function allowedText(row: StateRow, needs: ReasonWhy['needs']): string {
  if (needs === null) return '';
  const { column, name } = needs;
  if (!row[column]) return ` In ${row.state} the model does not allow ${name}.`;
  return ` In ${row.state} the model allows ${name}${column === 'rideTracking' ? ', if switched on' : ''}.`;
}

/** For a REASON_NETWORK_PING: what keeps its connection open. */
function keptConnectionText({ body, history }: RuleCase, row: StateRow): string {
  if (body.kind === 'ack' || body.reason !== 'REASON_NETWORK_PING') return '';
  if (row.connectionKept === 'always') return ` In ${row.state} the connection is kept at all times.`;
  if (row.connectionKept === 'in-window')
    return ` In ${row.state} the connection is kept in its window, ${windowText(history.beliefBefore.highWindow)}.`;
  return ` In ${row.state} nothing keeps a connection.`;
}

/** An uplink may be caused by a command sent up to this long before. A search for a fix takes up to 120 s of that. */
const COMMAND_ANSWERED_WITHIN = Minutes(10);

/** The step about the command that may have caused the uplink. */
function commandSteps({ event, body, history }: RuleCase): WhyStep[] {
  const sent = history.before.filter((each): each is CommandEvent => each.type === 'command');
  if (event.source === 'phone') return [];
  if (body.kind === 'ack') return [answeredStep(body, sent)];
  if (!isKnownReason(body.reason)) return [];
  const { commands } = REASON_WHY[body.reason];
  if (commands.length === 0) return [];
  const asked = sent.findLast(({ command, atMs }) => {
    return commands.includes(command.type) && event.atMs - atMs <= COMMAND_ANSWERED_WITHIN;
  });
  const names = commands.join(' or ');
  if (asked === undefined)
    return [
      step('command', 'none', SECTIONS.model, `No command (${names}) was sent to it in the 10 min before.`, event.atMs),
    ];
  const { id, command, atMs } = asked;
  const sentence = `Command ${id} (${command.type}) was sent to it at ${describeTime(atMs)}.`;
  return [step('command', 'sent', SECTIONS.model, sentence, atMs)];
}

function answeredStep({ commandId, result }: CommandAck, sent: readonly CommandEvent[]): WhyStep {
  const asked = sent.findLast(({ id }) => id === commandId);
  const what = asked === undefined ? '' : ` (${asked.command.type}), which was sent at ${describeTime(asked.atMs)}`;
  const sentence = `It answers command ${commandId}${what}: ${result}.`;
  return step('command', result, SECTIONS.wire, sentence, asked?.atMs ?? null);
}

function connectionStep({ event, history }: RuleCase, standing: readonly StandingFinding[]): WhyStep {
  const { beliefBefore } = history;
  if (event.source === 'phone')
    return step(
      'connection',
      'phone',
      SECTIONS.wire,
      'It came over a phone’s connection, with the phone’s credential.',
    );
  const wasOutside = standing.some(({ finding }) => finding.rule === 'outside-connection');
  if (!beliefBefore.isConnected && !wasOutside)
    return step(
      'connection',
      'unknown',
      SECTIONS.events,
      'The events that were read don’t say which connection it came over.',
    );
  if (!beliefBefore.isConnected)
    return step('connection', 'none', SECTIONS.events, 'It came while the lock counted as not connected.', event.atMs);
  const { connectedSinceMs } = beliefBefore;
  const sentence = `It came over the connection that the lock had made at ${describeTime(connectedSinceMs)}.`;
  return step('connection', 'open', SECTIONS.events, sentence, connectedSinceMs);
}

const KIND_NAMES: Readonly<Record<Ping['kind'] | 'ack', string>> = {
  cellular: 'a cellular ping',
  gps: 'a GPS ping',
  close_connection: 'a close-connection ping',
  ack: 'an acknowledgement',
};

function messageSteps({ model, event, body }: RuleCase): WhyStep[] {
  const { uplink, atMs } = event;
  const reason = body.kind === 'ack' ? ` of command ${body.commandId}` : `, ${body.reason}`;
  const remarks = [
    uplink.kept > 0 ? `${uplink.kept} made earlier still waited in the lock` : '',
    uplink.dropped > 0 ? `the lock had discarded ${uplink.dropped} since its boot` : '',
  ].filter((text) => text !== '');
  const remarkText = remarks.length === 0 ? '' : `; ${remarks.join(', ')}`;
  const { boot, sequence } = uplink;
  const sentence = `It is ${KIND_NAMES[body.kind]}${reason}: boot ${boot}, sequence ${sequence}${remarkText}.`;
  const restsOn = body.kind === 'ack' ? SECTIONS.wire : SECTIONS.ping;
  // The first step's time is by the lock's clock.
  return [
    step('message', body.kind, restsOn, sentence, isDatable(uplink.timeMs) ? uplink.timeMs : null, 'lock'),
    step('message', ...arrivalOf(uplink.timeMs, atMs, model), atMs),
  ];
}

/** The code, section and sentence about the arrival: live or buffered. */
function arrivalOf(timeMs: number, atMs: number, { bounds }: PowerModel): [string, WhyStep['restsOn'], string] {
  const ack = 'It was stored and then acknowledged; the time of the acknowledgement is not recorded.';
  const madeAndReceived = `Made at ${describeTime(timeMs)} by the lock’s clock, received at ${describeTime(atMs)}`;
  if (!isDatable(timeMs))
    return ['undatable', SECTIONS.wire, `${madeAndReceived}: its time is not a valid date. ${ack}`];
  const late = atMs - timeMs;
  if (late > bounds.bufferedOver)
    return [
      'buffered',
      SECTIONS.judge,
      `${madeAndReceived}, ${describeSpan(late)} later: buffered, it waited in the lock. ${ack}`,
    ];
  const span = late < 0 ? `${describeSpan(-late)} before that` : `${describeSpan(late)} later`;
  return ['live', SECTIONS.judge, `${madeAndReceived}, ${span}: live. ${ack}`];
}

/**
 * The steps about rules: those broken, those withdrawn, those that apply to this uplink in particular, and, in one
 * step, those that apply to every uplink of its source.
 */
function ruleSteps(ruleCase: RuleCase, standing: readonly StandingFinding[]): WhyStep[] {
  const broken = new Set(standing.map(({ finding }) => finding.rule));
  // Of a history without its beginning, the first judgement is not known.
  const withdrawn = ruleCase.history.isCut ? [] : withdrawnRules(ruleCase, broken);
  const isMet = (rule: RuleName): boolean => !broken.has(rule) && !withdrawn.includes(rule);
  const met = RULES.filter(({ rule }) => isMet(rule) && appliesInParticular(rule, ruleCase));
  const alwaysApplied = RULES.filter(({ rule }) => isMet(rule) && appliesToEvery(rule, ruleCase)).map(
    ({ rule }) => rule,
  );
  const steps = [
    ...standing.flatMap((each) => brokenSteps(each)),
    ...withdrawn.map((rule) => withdrawnStep(rule, ruleCase)),
    ...met.map(({ rule }) => compliedStep(rule, ruleCase)),
  ];
  if (alwaysApplied.length === 0) return steps;
  const whose = ruleCase.event.source === 'phone' ? 'each uplink of a phone' : 'each uplink of a lock';
  const sentence = `It complies with the rules for ${whose}: ${alwaysApplied.join(', ')}.`;
  return [...steps, step('rules-kept', alwaysApplied.join(' '), SECTIONS.judge, sentence, ruleCase.event.atMs)];
}

/** The two steps about a finding: its message, and the rule with the reason why it exists. */
export function brokenSteps({ label, finding }: StandingFinding): WhyStep[] {
  const { rule, severity, message, atMs } = finding;
  const name = label === '' ? '' : ` (${label})`;
  const row = findRule(rule);
  return [
    step('rule-broken', rule, SECTIONS.judge, `It broke ${rule}, a ${severity}${name}: ${message}`, atMs),
    step(
      'rule-broken',
      rule,
      RULE_WHY[rule].restsOn,
      `${rule} is broken when: ${row?.brokenWhen} ${RULE_WHY[rule].because}`,
    ),
  ];
}

/** The rules that the uplink broke when it came, but whose finding was withdrawn because a late uplink explained it. */
function withdrawnRules({ event, history }: RuleCase, broken: ReadonlySet<RuleName>): RuleName[] {
  const key = keyOf(event);
  const found = history.verdict.findings.filter(({ about }) => about !== null && compareKeys(about, key) === 0);
  return found.map(({ rule }) => rule).filter((rule) => WITHDRAWABLE_RULES.has(rule) && !broken.has(rule));
}

function withdrawnStep(rule: RuleName, { event }: RuleCase): WhyStep {
  const sentence = `It seemed to break ${rule} when it came; later uplinks explained it.`;
  return step('rule-withdrawn', rule, SECTIONS.judge, sentence, event.atMs);
}

function compliedStep(rule: RuleName, ruleCase: RuleCase): WhyStep {
  const { because, restsOn, whyComplies } = RULE_WHY[rule];
  const sentence = `It complies with ${rule}: ${whyComplies?.(ruleCase) ?? 'nothing contradicts it'}. ${because}`;
  return step('rule-kept', rule, restsOn, sentence, ruleCase.event.atMs);
}
