/**
 * Answers "why" (interfaces.md §4): what stands in the store about the thing that somebody asks about, as a chain of
 * sentences. What the model expects and which rules were asked is said by the files `why-*.ts` of proto; here it is
 * looked up, and what became of it is added: deliveries, commands, and what happens next.
 */
import type { Clock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { type Finding, newVerdict, type UplinkEvent } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { RuleName } from '../../proto/power/rules.js';
import { uplinkLabel } from '../../proto/why/history.js';
import { afterSteps, believedStep, lastEndStep, lastUplinkStep } from '../../proto/why/moment.js';
import { silenceStep } from '../../proto/why/silence.js';
import { SECTIONS, step, type WhyStep } from '../../proto/why/step.js';
import { brokenSteps, uplinkCase, uplinkSteps } from '../../proto/why/uplink.js';
import { decodeUplink } from '../../proto/wire/codec.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { toDate } from '../../proto/wire/ping-json.js';
import type { Commands } from '../commands/commands.js';
import { newDeviceState, readDeviceState } from '../locks/device-state.js';
import type { Locks } from '../locks/locks.js';
import { judgeEventOf } from '../locks/log-entry.js';
import { budgetText } from '../mqtt/budget/budget-events.js';
import type { UplinkBudgets } from '../mqtt/budget/uplink-budgets.js';
import type { RefusalRecorder } from '../mqtt/refusals/refusal-recorder.js';
import { noSuchDevice } from '../store/contract/errors.js';
import type { Store, StoredUplink } from '../store/contract/store.js';
import { eventId } from '../webhooks/event-id.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { commandSteps } from './command-why.js';
import { eventDeliverySteps } from './event-deliveries.js';
import { type HistoryLock, REPLAYED_MOST, type ReadHistory, readHistory } from './lock-history.js';
import { quarantineSteps } from './quarantine-why.js';
import { refusalSteps } from './refusal-why.js';
import { parseSubject, type Subject } from './why-subject.js';
import { readMoment } from './why-time.js';

/** Commands of a lock that are looked through for those that waited at a moment; told of, at the most. */
const COMMANDS_LOOKED_AT = 200;
const COMMANDS_TOLD = 5;
/** Findings of a lock that are looked through for the one that told of its lateness. */
const FINDINGS_LOOKED_AT = 200;
/** Clocks that differ by less are one clock to people. */
const SAME_CLOCK_MS = 60_000;

export interface WhyParts {
  readonly store: Store;
  readonly webhooks: Webhooks;
  readonly commands: Commands;
  /** How much each lock may send. */
  readonly budgets: UplinkBudgets;
  readonly locks: Pick<Locks, 'judging' | 'find'>;
  /** What was refused of locks. */
  readonly refusals: Pick<RefusalRecorder, 'read'>;
  /** The run's clock. */
  readonly clock: Clock;
  /** The wall's: deliveries live by it. */
  readonly wallClock: Clock;
}

export interface WhyAnswer {
  /** What was asked about, as people name it. */
  readonly about: { readonly kind: Subject['kind']; readonly id: string; readonly mac: Mac | null };
  readonly nowMs: number;
  readonly wallNowMs: number;
  readonly steps: readonly WhyStep[];
}

type Told = Pick<WhyAnswer, 'about' | 'steps'>;

/** The parts, and the one moment that counts as now, though looking things up takes a while. */
type Asked = WhyParts & { readonly nowMs: number };

/**
 * @param text what it is about, as why-subject.ts reads it
 * @param at the moment, for a lock alone: as why-time.ts reads it; undefined for now
 * @throws LockgateError `input-why`, `input-at`, `no-such-…`
 */
export async function explain(parts: WhyParts, text: string, at: string | undefined): Promise<WhyAnswer> {
  const subject = parseSubject(text);
  const [nowMs, wallNowMs] = [parts.clock.now(), parts.wallClock.now()];
  const atMs = at === undefined ? undefined : readMoment(at, nowMs);
  if (atMs !== undefined && subject.kind !== 'lock')
    throw new LockgateError('input-at', 'a time goes with a MAC alone: everything else has its own');
  const { about, steps } = await explainSubject({ ...parts, nowMs }, subject, atMs);
  return { about, nowMs, wallNowMs, steps: [...clockSteps(nowMs, wallNowMs, steps), ...steps] };
}

async function explainSubject(parts: Asked, subject: Subject, atMs: number | undefined): Promise<Told> {
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
  'This is the id of a test webhook: somebody asked for it (POST /test_webhook, webhook test or webhook trigger) to ' +
    'see that the URL receives data. It is no event, is marked as a test, goes to each URL once, and is not kept.',
);

/** Where a run is faster than the wall's clock, times of deliveries are by another clock than those of locks. */
function clockSteps(nowMs: number, wallNowMs: number, steps: readonly WhyStep[]): WhyStep[] {
  if (Math.abs(nowMs - wallNowMs) <= SAME_CLOCK_MS || steps.every(({ clock }) => clock !== 'wall')) return [];
  const sentence =
    `Two clocks: the run’s stands at ${toDate(nowMs)}, by which locks live; the wall’s at ${toDate(wallNowMs)}, by ` +
    'which deliveries are attempted.';
  return [step('clocks', 'two', SECTIONS.judge, sentence, nowMs)];
}

async function explainEvent(parts: Asked, { id, name, urlId }: Extract<Subject, { kind: 'event' }>): Promise<Told> {
  const uplink = await parts.store.webhooks.findEvent(name);
  if (uplink === null) throw new LockgateError('no-such-event', `there is no event ${id}`);
  const about = { kind: 'event', id: urlId === undefined ? id : `${id}/${urlId}`, mac: uplink.mac } as const;
  return { about, steps: await stepsOf(parts, uplink, urlId) };
}

async function explainUplink(parts: Asked, named: Extract<Subject, { kind: 'uplink' }>): Promise<Told> {
  const { mac } = named;
  const label = uplinkLabel(named);
  const { deviceId } = await lockOf(parts, mac);
  const found = await parts.store.why.findUplinks(deviceId, named.boot, named.sequence);
  const [uplink] = found;
  if (uplink === undefined)
    throw new LockgateError('no-such-uplink', `${formatMac(mac)} has no uplink ${label} in the log`);
  if (found.length > 1) {
    const choices = found.map(eventId).join(', ');
    throw new LockgateError('input-why', `${formatMac(mac)} ${label} is ${found.length} uplinks: say ${choices}`);
  }
  return { about: { kind: 'uplink', id: label, mac }, steps: await stepsOf(parts, uplink) };
}

const ACK_STEP = step(
  'delivery',
  'no-event',
  SECTIONS.events,
  'An acknowledgement is no ping: it is no event for merchants, and goes to no webhook.',
);

/** The chain of a stored uplink. */
async function stepsOf(parts: Asked, uplink: StoredUplink, urlId?: number): Promise<WhyStep[]> {
  const decoded = decodeUplink(uplink.bytes);
  const damage = uplink.isDamaged ? 'they don’t fit their checksum' : decoded.ok ? undefined : decoded.error.message;
  const isAck = decoded.ok && decoded.value.body.kind === 'ack';
  const deliveries = isAck ? [ACK_STEP] : await eventDeliverySteps(parts, uplink, urlId);
  if (damage !== undefined || !decoded.ok) {
    const sentence = `Its stored bytes are damaged (${damage}), so nothing more is known of it.`;
    return [step('message', 'damaged', SECTIONS.wire, sentence, uplink.receivedAtMs), ...deliveries];
  }
  const { deviceId, mac, credentialId: credential, boot, sequence } = uplink;
  const event = judgeEventOf({ type: 'uplink', uplink }, await parts.store.marks.read(deviceId)) as UplinkEvent;
  const history = await readHistory(parts, { deviceId, mac }, { uplink, event });
  const findings = await parts.store.why.findFindingsOf(deviceId, { credential, boot, sequence });
  const standing = findings.map(({ id, finding }) => ({ label: `finding:${id}`, finding }));
  const isCut = history.isCut || history.damaged > 0 || !history.isComplete;
  const chain = uplinkSteps(uplinkCase(POWER_MODEL, { ...history, isCut }), standing);
  return [
    ...boundSteps(history),
    // Of a lock that was another merchant's nothing before it was read, so nothing is known of what was believed.
    ...chain.filter(({ kind }) => history.isComplete || (kind !== 'before' && kind !== 'connection')),
    ...deliveries,
    ...(await nextSteps(parts, { deviceId, mac })),
  ];
}

/** What is to be said of how the log was read. */
function boundSteps({ isCut, damaged, isComplete, failures }: ReadHistory): WhyStep[] {
  const steps: WhyStep[] = [];
  const most = REPLAYED_MOST.toLocaleString('en');
  if (failures > 0) {
    const sentence =
      `The judge failed at ${failures} of the events that were judged again, which is a mistake in lockgate: what is ` +
      'said of what was believed begins behind the last of them.';
    steps.push(step('bound', 'judge-failed', SECTIONS.judge, sentence));
  } else if (isCut) {
    const sentence = `The log goes back further: only the last ${most} uplinks and as many events were judged again.`;
    steps.push(step('bound', 'cut', SECTIONS.operator, sentence));
  }
  if (damaged > 0)
    steps.push(
      step('bound', 'damaged', SECTIONS.operator, `Left out: ${damaged} uplinks whose stored bytes are damaged.`),
    );
  if (!isComplete) {
    const sentence = 'The lock was another merchant’s then: what was believed of it at that time is not in this log.';
    steps.push(step('bound', 'moved', SECTIONS.operator, sentence));
  }
  return steps;
}

async function explainFinding(parts: Asked, id: number): Promise<Told> {
  const found = await parts.store.why.findFinding(id);
  if (found === null)
    throw new LockgateError('no-such-finding', `there is no finding ${id}, or what came later explained it away`);
  const { deviceId, mac, finding } = found;
  const about = { kind: 'finding', id: `finding:${id}`, mac } as const;
  const uplink = await uplinkOf(parts, deviceId, finding);
  if (uplink !== undefined) return { about, steps: foundFirst(await stepsOf(parts, uplink), finding.rule) };
  const standing = { label: `finding:${id}`, finding };
  const moment = await momentSteps(parts, { deviceId, mac }, finding.atMs);
  return { about, steps: [...brokenSteps(standing), ...moment, ...(await nextSteps(parts, { deviceId, mac }))] };
}

/** The uplink that a finding is about: of two under one name the one that came last when it was found. */
async function uplinkOf(parts: Asked, deviceId: number, { about, atMs }: Finding): Promise<StoredUplink | undefined> {
  if (about === null) return undefined;
  const found = await parts.store.why.findUplinks(deviceId, about.boot, about.sequence);
  return found.findLast((each) => each.credentialId === about.credential && each.receivedAtMs <= atMs) ?? found[0];
}

/** Who asks about a finding reads of it first. */
function foundFirst(steps: readonly WhyStep[], rule: RuleName): WhyStep[] {
  const isIt = ({ kind, code }: WhyStep): boolean => kind === 'rule-broken' && code === rule;
  return [...steps.filter(isIt), ...steps.filter((each) => !isIt(each))];
}

async function explainCommand(parts: Asked, id: number): Promise<Told> {
  const record = await parts.commands.find(id);
  const { deviceId, mac } = record;
  const about = { kind: 'command', id: `command:${id}`, mac } as const;
  const steps = commandSteps(record, parts.commands.waitOf(record));
  return {
    about,
    steps: [...steps, ...(await answerSteps(parts, record)), ...(await nextSteps(parts, { deviceId, mac }))],
  };
}

/** The uplink that acknowledged a command. */
async function answerSteps(
  parts: Asked,
  { id, deviceId, mac, finishedAtMs, state }: Awaited<ReturnType<Commands['find']>>,
): Promise<WhyStep[]> {
  if (finishedAtMs === null || (state !== 'done' && state !== 'rejected' && state !== 'failed')) return [];
  const { before } = await readHistory(parts, { deviceId, mac }, { atMs: finishedAtMs });
  const answer = before.findLast(
    (event) => event.type === 'uplink' && event.uplink.body.kind === 'ack' && event.uplink.body.commandId === id,
  );
  if (answer?.type !== 'uplink') return [];
  const label = uplinkLabel(answer.uplink);
  const sentence = `Its answer was the lock’s uplink ${label}, received at ${toDate(answer.atMs)}.`;
  return [step('command', 'answer', SECTIONS.wire, sentence, answer.atMs)];
}

async function explainQuarantined(parts: Asked, id: number): Promise<Told> {
  const message = await parts.store.why.findQuarantined(id);
  if (message === null) throw new LockgateError('no-such-quarantined', `there is nothing in quarantine as ${id}`);
  const { deviceId, mac } = message;
  const about = { kind: 'quarantine', id: `quarantine:${id}`, mac } as const;
  return { about, steps: [...quarantineSteps(message), ...(await nextSteps(parts, { deviceId, mac }))] };
}

async function explainLock(parts: Asked, mac: Mac, atMs: number | undefined): Promise<Told> {
  const lock = await lockOf(parts, mac);
  const about = { kind: 'lock', id: formatMac(mac), mac } as const;
  const steps = await momentSteps(parts, lock, atMs ?? parts.nowMs);
  const { budgets, locks } = parts;
  const { deviceId } = lock;
  const next =
    atMs === undefined
      ? [...budgetSteps(budgets, deviceId), ...unjudgedSteps(locks, deviceId)]
      : await nextSteps(parts, lock);
  return { about, steps: [...steps, ...next] };
}

/** @throws LockgateError `no-such-device` */
async function lockOf({ store }: Asked, mac: Mac): Promise<HistoryLock> {
  const deviceId = await store.findDeviceId(mac);
  if (deviceId === null) throw noSuchDevice(mac);
  return { deviceId, mac };
}

/** What was going on around a lock at a moment, and whether its silence was as expected. */
async function momentSteps(parts: Asked, lock: HistoryLock, atMs: number): Promise<WhyStep[]> {
  const history = await readHistory(parts, lock, { atMs });
  const { belief } = history;
  const isPast = atMs < parts.nowMs;
  const silence = silenceStep(POWER_MODEL, belief, atMs);
  return [
    ...boundSteps(history),
    believedStep(POWER_MODEL, belief, atMs, isPast),
    silence,
    ...(await lateSteps(parts, lock, silence)),
    ...lastEndStep(history),
    lastUplinkStep(history),
    ...refusalSteps(await parts.refusals.read(lock.deviceId), atMs),
    ...(await waitingSteps(parts, lock, atMs)),
    ...(isPast ? afterSteps(POWER_MODEL, history, atMs) : []),
  ];
}

/** The finding that told that the lock is late. */
async function lateSteps({ store }: Asked, { deviceId }: HistoryLock, silence: WhyStep): Promise<WhyStep[]> {
  const rule = LATE_RULES[silence.code];
  const sinceMs = silence.atMs;
  if (rule === undefined || sinceMs === null) return [];
  const findings = await store.readFindings(deviceId, FINDINGS_LOOKED_AT);
  const told = findings.findLast(({ finding }) => finding.rule === rule && finding.atMs >= sinceMs);
  return told === undefined ? [] : brokenSteps({ label: `finding:${told.id}`, finding: told.finding });
}

const LATE_RULES: Readonly<Record<string, RuleName | undefined>> = {
  'late-period': 'period-overdue',
  'late-window': 'window-offline',
  'late-recovery': 'recovery-offline',
};

/** Commands that were asked for and not over at the moment. */
async function waitingSteps({ store }: Asked, { deviceId }: HistoryLock, atMs: number): Promise<WhyStep[]> {
  const commands = await store.commands.list({ deviceId, limit: COMMANDS_LOOKED_AT });
  const open = commands.filter(({ createdAtMs, finishedAtMs }) => {
    return createdAtMs <= atMs && (finishedAtMs === null || finishedAtMs > atMs);
  });
  return open.slice(-COMMANDS_TOLD).map(({ id, command, createdAtMs, expiresAtMs }) => {
    const life = `asked for at ${toDate(createdAtMs)}, expires at ${toDate(expiresAtMs)}`;
    const sentence = `Command ${id} (${command.type}) was not answered yet: ${life}.`;
    return step('command', 'open', SECTIONS.wire, sentence, createdAtMs);
  });
}

/** What is expected of the lock from now on. */
async function nextSteps({ store, budgets, locks, nowMs }: Asked, { deviceId, mac }: HistoryLock): Promise<WhyStep[]> {
  if ((await store.findDevice(mac)) === null)
    return [
      step('next', 'removed', SECTIONS.operator, 'The lock is out of service: nothing is expected of it.', nowMs),
    ];
  const unjudged = unjudgedSteps(locks, deviceId);
  if (unjudged.length > 0) return [...budgetSteps(budgets, deviceId), ...unjudged];
  const stored = await store.readDeviceState(deviceId);
  const read = stored === null ? undefined : readDeviceState(stored);
  const { belief } = read?.ok === true ? read.value : newDeviceState(mac, nowMs, nowMs);
  locks.judging.judge(POWER_MODEL, belief, { type: 'tick', atMs: nowMs }, newVerdict());
  const now = silenceStep(POWER_MODEL, belief, nowMs, 'next');
  return [...budgetSteps(budgets, deviceId), { ...now, sentence: `Now: ${now.sentence}` }];
}

/** That what a lock sends is not judged. */
function unjudgedSteps(locks: Asked['locks'], deviceId: number): WhyStep[] {
  const unjudged = locks.find(deviceId)?.state.unjudged;
  if (unjudged === undefined) return [];
  const { sinceMs, why, version } = unjudged;
  const sentence =
    `Since ${toDate(sinceMs)} this lock is not judged, because the judge of lockgate ${version} failed (${why}): its ` +
    'pings are stored and delivered, and what is believed of it is as of then. device rejudge tries again.';
  return [step('gateway', 'unjudged', SECTIONS.judge, sentence, sinceMs)];
}

/** That little comes of a lock because it is read slowly. */
function budgetSteps(budgets: UplinkBudgets, deviceId: number): WhyStep[] {
  return budgets.overOf(deviceId).map(({ source, limit, sinceMs }) => {
    const sentence =
      `Since ${toDate(sinceMs)} ${budgetText(budgets.limits, limit, source)}: what waits comes later, and nothing is ` +
      'lost. Other locks are not held up.';
    return step('gateway', 'over-budget', SECTIONS.fairness, sentence, sinceMs);
  });
}
