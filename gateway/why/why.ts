/**
 * Answers "why" questions (interfaces.md §4): reads from the store what is known about the subject, and builds a chain
 * of sentences. proto/why/ explains what the model of a lock's power modes expects and which of the protocol's rules
 * apply; this file adds deliveries, commands and what happens next. Only reads.
 */
import type { Clock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { type Finding, newVerdict, type UplinkEvent } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { RuleName } from '../../proto/power/rules.js';
import { uplinkLabel } from '../../proto/why/history.js';
import { afterMomentSteps, believedStep, lastConnectionEndStep, lastUplinkStep } from '../../proto/why/moment.js';
import { silenceStep } from '../../proto/why/silence.js';
import { SECTIONS, step, type WhyStep } from '../../proto/why/step.js';
import { brokenSteps, uplinkCase, uplinkSteps } from '../../proto/why/uplink.js';
import { decodeUplink } from '../../proto/wire/codec.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import type { Commands } from '../commands/commands.js';
import { newDeviceState, readDeviceState } from '../locks/device-state.js';
import type { Locks } from '../locks/locks.js';
import { judgeEventOf } from '../locks/log-entry.js';
import { budgetText } from '../mqtt/budget/budget-events.js';
import type { UplinkBudgets } from '../mqtt/budget/uplink-budgets.js';
import type { RefusalRecorder } from '../mqtt/refusals/refusal-recorder.js';
import { noSuchDevice } from '../store/contract/errors.js';
import type { StoredUplink } from '../store/contract/log/stored-uplink.js';
import type { Store } from '../store/contract/store.js';
import { eventTypeOf } from '../store/contract/webhooks/merchant-event.js';
import { eventId } from '../webhooks/event-id.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { commandSteps } from './command-why.js';
import { eventDeliverySteps } from './event-deliveries.js';
import { type HistoryLock, MAX_REPLAYED_UPLINKS, type ReadHistory, readHistory } from './lock-history.js';
import { merchantEventStep } from './merchant-event-why.js';
import { quarantineSteps } from './quarantine-why.js';
import { refusalSteps } from './refusal-why.js';
import { isSubjectOf } from './subject-owner.js';
import { parseSubject, type Subject } from './why-subject.js';
import { readMoment } from './why-time.js';

/** Commands of a lock that are read to find those unfinished at a given time, and how many of them are shown. */
const MAX_READ_COMMANDS = 200;
const MAX_SHOWN_COMMANDS = 5;
/** Findings of a lock that are read to find the one that reported its lateness. */
const MAX_READ_FINDINGS = 200;
/** The run's clock and the wall clock are presented as one clock if they differ by at most this. */
const MAX_SAME_CLOCK_DIFFERENCE_MS = 60_000;

export interface WhyParts {
  readonly store: Store;
  readonly webhooks: Webhooks;
  readonly commands: Commands;
  /** How much each lock may send, and which locks exceed it. */
  readonly budgets: UplinkBudgets;
  readonly locks: Pick<Locks, 'judging' | 'find'>;
  /** Refused connections and packets of locks. */
  readonly refusals: Pick<RefusalRecorder, 'read'>;
  /** The clock that gives received messages their time. A demonstration can run it faster than real time. */
  readonly clock: Clock;
  /** Wall-clock time, for deliveries. */
  readonly wallClock: Clock;
}

export interface WhyAnswer {
  /** The subject, under the id that operators use. */
  readonly about: { readonly kind: Subject['kind']; readonly id: string; readonly mac: Mac | null };
  readonly nowMs: number;
  readonly wallNowMs: number;
  readonly steps: readonly WhyStep[];
}

type Explanation = Pick<WhyAnswer, 'about' | 'steps'>;

/** The parts, and the time that counts as now for the whole answer, although reading the store takes a while. */
type WhyContext = WhyParts & { readonly nowMs: number };

/**
 * Explains a subject.
 *
 * @param text the subject, in a form that why-subject.ts accepts
 * @param at the time, only for a lock, in a form that why-time.ts accepts; undefined for now
 * @throws LockgateError `input-why`, `input-at`, `no-such-…`
 */
export async function explain(parts: WhyParts, text: string, at: string | undefined): Promise<WhyAnswer> {
  const subject = parseSubject(text);
  const [nowMs, wallNowMs] = [parts.clock.now(), parts.wallClock.now()];
  const atMs = at === undefined ? undefined : readMoment(at, nowMs);
  if (atMs !== undefined && subject.kind !== 'lock')
    throw new LockgateError('input-at', 'a time is accepted only with a MAC: every other subject has its own time');
  const { about, steps } = await explainSubject({ ...parts, nowMs }, subject, atMs);
  return { about, nowMs, wallNowMs, steps: [...clockSteps(nowMs, wallNowMs, steps), ...steps] };
}

/**
 * As {@link explain}, but only about what is the merchant's own.
 *
 * @throws LockgateError `no-such-subject` for what is another merchant's, or does not exist
 */
export async function explainOwn(
  parts: WhyParts,
  text: string,
  at: string | undefined,
  merchantId: number,
): Promise<WhyAnswer> {
  if (await isSubjectOf(parts.store, parseSubject(text), merchantId)) return await explain(parts, text, at);
  throw new LockgateError('no-such-subject', 'there is nothing of yours by this id');
}

async function explainSubject(parts: WhyContext, subject: Subject, atMs: number | undefined): Promise<Explanation> {
  switch (subject.kind) {
    case 'event':
      return await explainEvent(parts, subject);
    case 'uplink':
      return await explainUplink(parts, subject);
    case 'finding':
      return await explainFinding(parts, subject.id);
    case 'command':
      return await explainCommand(parts, subject.id);
    case 'quarantine':
      return await explainQuarantined(parts, subject.id);
    case 'lock':
      return await explainLock(parts, subject.mac, atMs);
    case 'test-webhook':
      return { about: { kind: subject.kind, id: subject.id, mac: null }, steps: [TEST_STEP] };
  }
}

const TEST_STEP = step(
  'delivery',
  'test',
  SECTIONS.endpoints,
  'This is the id of a test webhook, which was requested (POST /test_webhook, webhook test or webhook trigger) to ' +
    'see that the URL receives data. It is no event, is marked as a test, goes to each URL once, and is not stored.',
);

/**
 * Says that the run's clock, which locks use, differs from the wall clock, which deliveries use; empty if it does not.
 */
function clockSteps(nowMs: number, wallNowMs: number, steps: readonly WhyStep[]): WhyStep[] {
  if (Math.abs(nowMs - wallNowMs) <= MAX_SAME_CLOCK_DIFFERENCE_MS || steps.every(({ clock }) => clock !== 'wall'))
    return [];
  const sentence =
    `Two clocks: the run’s clock, for locks, shows ${formatDate(nowMs)}; the wall clock, for deliveries, shows ` +
    `${formatDate(wallNowMs)}.`;
  return [step('clocks', 'two', SECTIONS.judge, sentence, nowMs)];
}

async function explainEvent(
  parts: WhyContext,
  { id, key, urlId }: Extract<Subject, { kind: 'event' }>,
): Promise<Explanation> {
  const uplink = await parts.store.webhooks.findEvent(key);
  if (uplink === null) throw new LockgateError('no-such-event', `there is no event ${id}`);
  const about = { kind: 'event', id: urlId === undefined ? id : `${id}/${urlId}`, mac: uplink.mac } as const;
  return { about, steps: await uplinkChain(parts, uplink, urlId) };
}

async function explainUplink(parts: WhyContext, subject: Extract<Subject, { kind: 'uplink' }>): Promise<Explanation> {
  const { mac } = subject;
  const label = uplinkLabel(subject);
  const { deviceId } = await findLock(parts, mac);
  const uplinks = await parts.store.why.findUplinks(deviceId, subject.boot, subject.sequence);
  const [uplink] = uplinks;
  if (uplink === undefined)
    throw new LockgateError('no-such-uplink', `${formatMac(mac)} has no uplink ${label} in the log`);
  if (uplinks.length > 1) {
    const choices = uplinks.map(eventId).join(', ');
    throw new LockgateError('input-why', `${formatMac(mac)} ${label} is ${uplinks.length} uplinks: use ${choices}`);
  }
  return { about: { kind: 'uplink', id: label, mac }, steps: await uplinkChain(parts, uplink) };
}

const ACK_STEP = step(
  'delivery',
  'no-event',
  SECTIONS.events,
  'An acknowledgement is not a ping: it is not an event for merchants, and goes to no webhook.',
);

/**
 * The chain of a row of the log: of an uplink, or of an event for merchants that the gateway stored between the
 * uplinks, such as a lock being late. Only the delivery to `urlId`, if given.
 */
async function uplinkChain(parts: WhyContext, uplink: StoredUplink, urlId?: number): Promise<WhyStep[]> {
  // Rows of uplinks have the type `ping`, those of acknowledgements too.
  if (eventTypeOf(uplink.kind) !== 'ping')
    return [merchantEventStep(uplink), ...(await eventDeliverySteps(parts, uplink, urlId))];
  const decoded = decodeUplink(uplink.bytes);
  const damage = uplink.isDamaged ? 'they don’t match their checksum' : decoded.ok ? undefined : decoded.error.message;
  const isAck = decoded.ok && decoded.value.body.kind === 'ack';
  const deliveries = isAck ? [ACK_STEP] : await eventDeliverySteps(parts, uplink, urlId);
  if (damage !== undefined || !decoded.ok) {
    const sentence = `Its stored bytes are damaged (${damage}), so nothing more is known of it.`;
    return [step('message', 'damaged', SECTIONS.wire, sentence, uplink.receivedAtMs), ...deliveries];
  }
  const { deviceId, mac, credentialId: credential, boot, sequence } = uplink;
  // After a reflash, which a mark records, a lock's numbers start again.
  const reflashMarks = await parts.store.marks.read(deviceId);
  const event = judgeEventOf({ type: 'uplink', uplink }, reflashMarks) as UplinkEvent;
  const history = await readHistory(parts, { deviceId, mac }, { uplink, event });
  const findings = await parts.store.why.findFindingsAbout(deviceId, { credential, boot, sequence });
  const labelled = findings.map(({ id, finding }) => ({ label: `finding:${id}`, finding }));
  const isCut = history.isCut || history.damaged > 0 || !history.isComplete;
  const chain = uplinkSteps(uplinkCase(POWER_MODEL, { ...history, isCut }), labelled);
  return [
    ...omissionSteps(history),
    // If the lock belonged to another merchant then, the log of that time was not read, so the gateway's view is
    // unknown.
    ...chain.filter(({ kind }) => history.isComplete || (kind !== 'before' && kind !== 'connection')),
    ...deliveries,
    ...(await nextSteps(parts, { deviceId, mac })),
  ];
}

/** States what was left out of the log that was read. */
function omissionSteps({ isCut, damaged, isComplete, failures }: ReadHistory): WhyStep[] {
  const steps: WhyStep[] = [];
  const maxUplinks = MAX_REPLAYED_UPLINKS.toLocaleString('en');
  if (failures > 0) {
    const sentence =
      `The judge failed at ${failures} of the replayed events, a bug in lockgate: the view of the lock given ` +
      'here starts after the last of them.';
    steps.push(step('bound', 'judge-failed', SECTIONS.judge, sentence));
  } else if (isCut) {
    const sentence =
      `The log goes back further: only the last ${maxUplinks} uplinks and as many connection events were ` +
      'replayed.';
    steps.push(step('bound', 'cut', SECTIONS.operator, sentence));
  }
  if (damaged > 0)
    steps.push(
      step('bound', 'damaged', SECTIONS.operator, `Left out: ${damaged} uplinks whose stored bytes are damaged.`),
    );
  if (!isComplete) {
    const sentence = 'The lock belonged to another merchant then: the gateway’s view at that time is not in this log.';
    steps.push(step('bound', 'moved', SECTIONS.operator, sentence));
  }
  return steps;
}

async function explainFinding(parts: WhyContext, id: number): Promise<Explanation> {
  const found = await parts.store.why.findFinding(id);
  if (found === null)
    throw new LockgateError(
      'no-such-finding',
      `there is no finding ${id}, or a later uplink explained it and removed it`,
    );
  const { deviceId, mac, finding } = found;
  const about = { kind: 'finding', id: `finding:${id}`, mac } as const;
  const uplink = await findUplink(parts, deviceId, finding);
  if (uplink !== undefined)
    return { about, steps: withBrokenRuleFirst(await uplinkChain(parts, uplink), finding.rule) };
  const labelled = { label: `finding:${id}`, finding };
  const moment = await momentSteps(parts, { deviceId, mac }, finding.atMs);
  return { about, steps: [...brokenSteps(labelled), ...moment, ...(await nextSteps(parts, { deviceId, mac }))] };
}

/**
 * The uplink that a finding is about: if several have the same credential, boot and sequence, the last one received
 * before the finding, or else the first. Undefined if the finding is not about an uplink.
 */
async function findUplink(
  parts: WhyContext,
  deviceId: number,
  { about, atMs }: Finding,
): Promise<StoredUplink | undefined> {
  if (about === null) return undefined;
  const uplinks = await parts.store.why.findUplinks(deviceId, about.boot, about.sequence);
  return uplinks.findLast((each) => each.credentialId === about.credential && each.receivedAtMs <= atMs) ?? uplinks[0];
}

/** Moves the step of the finding's rule to the front. */
function withBrokenRuleFirst(steps: readonly WhyStep[], rule: RuleName): WhyStep[] {
  const isBrokenRule = ({ kind, code }: WhyStep): boolean => kind === 'rule-broken' && code === rule;
  return [...steps.filter(isBrokenRule), ...steps.filter((each) => !isBrokenRule(each))];
}

async function explainCommand(parts: WhyContext, id: number): Promise<Explanation> {
  const record = await parts.commands.find(id);
  const { deviceId, mac } = record;
  const about = { kind: 'command', id: `command:${id}`, mac } as const;
  const steps = commandSteps(record, parts.commands.waitOf(record));
  return {
    about,
    steps: [...steps, ...(await answerSteps(parts, record)), ...(await nextSteps(parts, { deviceId, mac }))],
  };
}

/** The step for the uplink that acknowledged a command; empty if no uplink did. */
async function answerSteps(
  parts: WhyContext,
  { id, deviceId, mac, finishedAtMs, state }: Awaited<ReturnType<Commands['find']>>,
): Promise<WhyStep[]> {
  if (finishedAtMs === null || (state !== 'done' && state !== 'rejected' && state !== 'failed')) return [];
  const { before } = await readHistory(parts, { deviceId, mac }, { atMs: finishedAtMs, withAfter: false });
  const answer = before.findLast(
    (event) => event.type === 'uplink' && event.uplink.body.kind === 'ack' && event.uplink.body.commandId === id,
  );
  if (answer?.type !== 'uplink') return [];
  const label = uplinkLabel(answer.uplink);
  const sentence = `Its answer was the lock’s uplink ${label}, received at ${formatDate(answer.atMs)}.`;
  return [step('command', 'answer', SECTIONS.wire, sentence, answer.atMs)];
}

async function explainQuarantined(parts: WhyContext, id: number): Promise<Explanation> {
  const message = await parts.store.why.findQuarantined(id);
  if (message === null) throw new LockgateError('no-such-quarantined', `there is no quarantined message ${id}`);
  const { deviceId, mac } = message;
  const about = { kind: 'quarantine', id: `quarantine:${id}`, mac } as const;
  return { about, steps: [...quarantineSteps(message), ...(await nextSteps(parts, { deviceId, mac }))] };
}

async function explainLock(parts: WhyContext, mac: Mac, atMs: number | undefined): Promise<Explanation> {
  const lock = await findLock(parts, mac);
  const about = { kind: 'lock', id: formatMac(mac), mac } as const;
  const steps = await momentSteps(parts, lock, atMs ?? parts.nowMs);
  const { budgets, locks } = parts;
  const { deviceId } = lock;
  // The steps for now already say what is expected of the lock.
  const next =
    atMs === undefined
      ? [...budgetSteps(budgets, deviceId), ...unjudgedSteps(locks, deviceId)]
      : await nextSteps(parts, lock);
  return { about, steps: [...steps, ...next] };
}

/** @throws LockgateError `no-such-device` */
async function findLock({ store }: WhyContext, mac: Mac): Promise<HistoryLock> {
  const deviceId = await store.findDeviceId(mac);
  if (deviceId === null) throw noSuchDevice(mac);
  return { deviceId, mac };
}

/** The state of a lock at a given time, and whether its silence was as expected. */
async function momentSteps(parts: WhyContext, lock: HistoryLock, atMs: number): Promise<WhyStep[]> {
  const isPast = atMs < parts.nowMs;
  const history = await readHistory(parts, lock, { atMs, withAfter: isPast });
  const { belief } = history;
  const silence = silenceStep(POWER_MODEL, belief, atMs);
  return [
    ...omissionSteps(history),
    believedStep(POWER_MODEL, belief, atMs, isPast),
    silence,
    ...(await lateSteps(parts, lock, silence)),
    ...lastConnectionEndStep(history),
    lastUplinkStep(history),
    ...refusalSteps(await parts.refusals.read(lock.deviceId), atMs),
    ...(await waitingSteps(parts, lock, atMs)),
    ...(isPast ? afterMomentSteps(POWER_MODEL, history, atMs) : []),
  ];
}

/** The steps for the finding that reported the lock's lateness; empty if the lock is not late. */
async function lateSteps({ store }: WhyContext, { deviceId }: HistoryLock, silence: WhyStep): Promise<WhyStep[]> {
  const rule = LATE_RULES[silence.code];
  const sinceMs = silence.atMs;
  if (rule === undefined || sinceMs === null) return [];
  const findings = await store.readFindings(deviceId, MAX_READ_FINDINGS);
  const lateFinding = findings.findLast(({ finding }) => finding.rule === rule && finding.atMs >= sinceMs);
  return lateFinding === undefined
    ? []
    : brokenSteps({ label: `finding:${lateFinding.id}`, finding: lateFinding.finding });
}

/** The rule that reports a lock as late, by the code of the step about its silence. */
const LATE_RULES: Readonly<Record<string, RuleName | undefined>> = {
  'late-period': 'period-overdue',
  'late-window': 'window-offline',
  'late-recovery': 'recovery-offline',
};

/** Commands that were requested before the given time and unfinished at it. */
async function waitingSteps({ store }: WhyContext, { deviceId }: HistoryLock, atMs: number): Promise<WhyStep[]> {
  const commands = await store.commands.list({ deviceId, limit: MAX_READ_COMMANDS });
  const unfinished = commands.filter(({ createdAtMs, finishedAtMs }) => {
    return createdAtMs <= atMs && (finishedAtMs === null || finishedAtMs > atMs);
  });
  return unfinished.slice(-MAX_SHOWN_COMMANDS).map(({ id, command, createdAtMs, expiresAtMs }) => {
    const times = `requested at ${formatDate(createdAtMs)}, expires at ${formatDate(expiresAtMs)}`;
    const sentence = `Command ${id} (${command.type}) was not answered yet: ${times}.`;
    return step('command', 'open', SECTIONS.wire, sentence, createdAtMs);
  });
}

/** What is expected of the lock from now on. */
async function nextSteps(
  { store, budgets, locks, nowMs }: WhyContext,
  { deviceId, mac }: HistoryLock,
): Promise<WhyStep[]> {
  if ((await store.findDevice(mac)) === null)
    return [
      step('next', 'removed', SECTIONS.operator, 'The lock is out of service: nothing is expected of it.', nowMs),
    ];
  const unjudged = unjudgedSteps(locks, deviceId);
  if (unjudged.length > 0) return [...budgetSteps(budgets, deviceId), ...unjudged];
  const stateJson = await store.readDeviceState(deviceId);
  const state = stateJson === null ? undefined : readDeviceState(stateJson);
  const { belief } = state?.ok === true ? state.value : newDeviceState(mac, nowMs, nowMs);
  // Brings the belief, which was read from the store for this answer, up to now.
  locks.judging.judge(POWER_MODEL, belief, { type: 'tick', atMs: nowMs }, newVerdict());
  const now = silenceStep(POWER_MODEL, belief, nowMs, 'next');
  return [...budgetSteps(budgets, deviceId), { ...now, sentence: `Now: ${now.sentence}` }];
}

/** The step for a lock whose uplinks are not judged, because the judge failed. */
function unjudgedSteps(locks: WhyContext['locks'], deviceId: number): WhyStep[] {
  const unjudged = locks.find(deviceId)?.state.unjudged;
  if (unjudged === undefined) return [];
  const { sinceMs, why, version } = unjudged;
  const sentence =
    `Since ${formatDate(sinceMs)} this lock is not judged, because the judge of lockgate ${version} failed (${why}): ` +
    'its pings are stored and delivered, and the gateway’s view of the lock is as of then. device rejudge tries again.';
  return [step('gateway', 'unjudged', SECTIONS.judge, sentence, sinceMs)];
}

/** The steps for a lock that the gateway reads slowly, because the lock or a phone exceeds its budget. */
function budgetSteps(budgets: UplinkBudgets, deviceId: number): WhyStep[] {
  return budgets.overOf(deviceId).map(({ source, limit, sinceMs }) => {
    const sentence =
      `Since ${formatDate(sinceMs)} ${budgetText(budgets.limits, limit, source)}: its uplinks come later, and none ` +
      'is lost. Other locks are not delayed.';
    return step('gateway', 'over-budget', SECTIONS.merchants, sentence, sinceMs);
  });
}
