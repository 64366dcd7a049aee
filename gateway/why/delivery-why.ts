/**
 * Explains what happened to an event (a stored ping) at a webhook URL: a sentence for each outcome (interfaces.md §3).
 * Pure.
 */

import { Minutes } from '../../proto/clock.js';
import { SECTIONS, step, type WhyStep } from '../../proto/why/step.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import type { DeliveryReading, StoredAttempt } from '../store/contract/webhook-store.js';
import type { WebhookUrl } from '../store/contract/webhooks/webhook-url.js';
import { ADDRESS_REFUSED } from '../webhooks/sending/attempt.js';
import { MAX_PROBE_WAIT } from '../webhooks/url/circuit.js';
import { RETRY_DELAYS } from '../webhooks/url/schedule.js';

/**
 * Every state in which an event may be at a URL; {@link OUTCOME_WHY} says what each means. If several apply,
 * {@link outcomeOf} chooses.
 */
export const OUTCOMES = [
  'not-its-own',
  'filtered',
  'kept-disabled',
  'kept-gap',
  'delivered-recovered',
  'delivered-resent',
  'delivered-retried',
  'delivered-at-once',
  'damaged',
  'dead-gone',
  'dead-refused',
  'dead',
  'pending-disabled',
  'pending-behind',
  'pending-held',
  'pending-circuit',
  'pending-refused',
  'pending-resent',
  'pending-retry',
  'pending-first',
] as const;

export type Outcome = (typeof OUTCOMES)[number];

/** An event at a URL. Times are wall-clock times, ms since the epoch. */
export interface DeliveryCase {
  readonly url: WebhookUrl;
  /** What the store knows of the delivery; null if the event is not for this URL. */
  readonly reading: DeliveryReading | null;
  /** When the URL's open circuit lets one attempt through; null while it is closed. */
  readonly probeAtMs: number | null;
  /** Until when the receiver asked for no requests (Retry-After); null if it asked for none. */
  readonly heldUntilMs: number | null;
  /**
   * Not null if the URL is ordered and earlier events of the lock are pending at it. `first` is the first of these
   * events; null if it is not known.
   */
  readonly behind: { readonly first: { readonly reading: DeliveryReading; readonly eventId: string } | null } | null;
  /** The URL's cursor passed the event without sending it, while the URL was disabled. */
  readonly isInGap: boolean;
  /** A filter of the URL may have left the event out. */
  readonly isLeftOut: boolean;
}

/** The number of attempts in a complete retry schedule. */
const SCHEDULED_ATTEMPTS = RETRY_DELAYS.length + 1;
/** With more attempts, the oldest are left out. */
const MAX_SHOWN_ATTEMPTS = 20;
const MAX_PROBE_WAIT_MINUTES = MAX_PROBE_WAIT / Minutes(1);

const RESEND_TEXT = '“lockgate webhook resend” sends it again';

function attemptsOf({ reading }: DeliveryCase): readonly StoredAttempt[] {
  return reading?.attempts ?? [];
}

function lastAttemptOf(delivery: DeliveryCase): StoredAttempt | undefined {
  return attemptsOf(delivery).at(-1);
}

/** The number of the next attempt in the current schedule; a resend starts a new schedule. */
function nextNumber(reading: DeliveryReading | null): number {
  return (reading?.attempts.at(-1)?.number ?? 0) - (reading?.attemptsBefore ?? 0) + 1;
}

function nextText(reading: DeliveryReading | null): string {
  const atMs = reading?.nextAttemptAtMs ?? null;
  return atMs === null
    ? 'the next attempt is under way'
    : `attempt ${nextNumber(reading)} of ${SCHEDULED_ATTEMPTS} at ${formatDate(atMs)}`;
}

/** When an open circuit lets an attempt through, and when the event's own attempt is due. */
function circuitText({ probeAtMs, reading }: DeliveryCase): string {
  const firstProbe = formatDate(probeAtMs ?? 0);
  const probeText = `at ${firstProbe}, and then at most ${MAX_PROBE_WAIT_MINUTES} min apart, until one succeeds`;
  const ownText = reading?.nextAttemptAtMs == null ? '' : `; for this event ${nextText(reading)} at the earliest`;
  return `one event is tried ${probeText}${ownText}`;
}

function behindText({ behind }: DeliveryCase): string {
  const first = behind?.first ?? null;
  if (first === null) return 'earlier events of this lock that are pending';
  return `an earlier event of this lock, ${first.eventId} (${nextText(first.reading)})`;
}

/**
 * The sentence for each outcome; follows “URL 1 (https://…):”. A time that an outcome is about is never null in it:
 * `?? 0` is for the types only.
 */
export const OUTCOME_WHY: Readonly<Record<Outcome, (delivery: DeliveryCase) => string>> = Object.freeze({
  'not-its-own': () =>
    `not sent: the URL was added after this event, and gets only later events; ${RESEND_TEXT} to it all the same.`,
  filtered: () => 'not sent: a filter of the URL left this event out (webhook set --reasons, --ping-types, --labels).',
  'kept-disabled': ({ url }) =>
    `not sent: the URL is disabled (${url.disabledWhy}). The event is stored; when the URL is enabled, “lockgate ` +
    'webhook recover” sends it.',
  'kept-gap': () =>
    'not sent: the URL was disabled when the event came. The event is stored, and “lockgate webhook recover” sends it.',
  'delivered-recovered': () =>
    'delivered late: the URL was disabled when the event came, and an operator requested it later (recover or resend).',
  'delivered-resent': (delivery) =>
    `delivered, at attempt ${lastAttemptOf(delivery)?.number}, after a request to send it again.`,
  'delivered-retried': (delivery) =>
    `delivered, at attempt ${lastAttemptOf(delivery)?.number} of ${SCHEDULED_ATTEMPTS}, after ` +
    `${failuresText(attemptsOf(delivery))}.`,
  'delivered-at-once': () => 'delivered, at the first attempt.',
  damaged: () =>
    'waiting, damaged: its stored ping does not match its checksum, and damaged bytes are never sent; once the ' +
    `stored ping is restored, it is sent at the next start, or ${RESEND_TEXT}.`,
  'dead-gone': () =>
    'dead: the receiver answered 410, which says that the URL is gone, so the URL was disabled; ' +
    `${RESEND_TEXT} once it is enabled.`,
  'dead-refused': () =>
    'dead: the URL’s address is not allowed (it is internal, or a metadata address), so nothing was sent; ' +
    `${RESEND_TEXT}.`,
  dead: (delivery) =>
    `dead: given up after ${attemptsOf(delivery).length} failed attempts; it stays readable, and ${RESEND_TEXT}.`,
  'pending-disabled': ({ url }) =>
    `waiting: the URL is disabled (${url.disabledWhy}); the attempts continue when it is enabled.`,
  'pending-behind': (delivery) => `waiting behind ${behindText(delivery)}: the URL gets each lock’s events in order.`,
  'pending-held': ({ heldUntilMs }) =>
    'waiting: the receiver asked for a pause (Retry-After), so nothing is sent to the URL until ' +
    `${formatDate(heldUntilMs ?? 0)}.`,
  'pending-circuit': (delivery) =>
    `waiting: every attempt at the URL fails, so its circuit is open, and ${circuitText(delivery)}.`,
  'pending-refused': (delivery) =>
    'waiting: the URL’s address is not allowed (it is internal, or a metadata address) unless the operator allows ' +
    `its range, so nothing was sent; ${nextText(delivery.reading)}.`,
  'pending-resent': (delivery) => `waiting: it is to be sent again on request; ${nextText(delivery.reading)}.`,
  'pending-retry': (delivery) =>
    `waiting for its retry after ${failuresText(attemptsOf(delivery))}: ${nextText(delivery.reading)}.`,
  'pending-first': () => 'waiting for its first attempt, which is made as soon as it is its turn.',
});

function failuresText(attempts: readonly StoredAttempt[]): string {
  const failed = attempts.filter(({ error }) => error !== null).length;
  return failed === 1 ? 'one failed attempt' : `${failed} failed attempts`;
}

/** The state of the event at the URL. */
export function outcomeOf(delivery: DeliveryCase): Outcome {
  const { reading } = delivery;
  if (reading === null) return delivery.isLeftOut ? 'filtered' : 'not-its-own';
  if (reading.state === 'kept')
    return delivery.url.state === 'disabled' && !delivery.isInGap ? 'kept-disabled' : 'kept-gap';
  if (reading.state === 'delivered') return deliveredOutcome(delivery, reading);
  const last = lastAttemptOf(delivery);
  if (reading.state === 'damaged') return 'damaged';
  if (reading.state === 'dead') {
    if (last?.status === 410) return 'dead-gone';
    return last?.error === ADDRESS_REFUSED ? 'dead-refused' : 'dead';
  }
  if (delivery.url.state === 'disabled') return 'pending-disabled';
  if (delivery.behind !== null) return 'pending-behind';
  if (delivery.heldUntilMs !== null) return 'pending-held';
  if (delivery.probeAtMs !== null) return 'pending-circuit';
  if (last?.error === ADDRESS_REFUSED) return 'pending-refused';
  if (last !== undefined) return nextNumber(reading) === 1 ? 'pending-resent' : 'pending-retry';
  // At an ordered URL, an event that waited behind another one has a stored next attempt too.
  const isRequested = delivery.isInGap || (reading.nextAttemptAtMs !== null && !delivery.url.ordered);
  return isRequested ? 'pending-resent' : 'pending-first';
}

/** How a delivered event was delivered. */
function deliveredOutcome(delivery: DeliveryCase, { attempts, attemptsBefore }: DeliveryReading): Outcome {
  if (delivery.isInGap) return 'delivered-recovered';
  if (attemptsBefore > 0) return 'delivered-resent';
  return attempts.length > 1 ? 'delivered-retried' : 'delivered-at-once';
}

/** The steps of an event at one URL: its attempts, then its outcome. Times of deliveries are wall-clock times. */
export function deliverySteps(delivery: DeliveryCase): WhyStep[] {
  const { url } = delivery;
  const outcome = outcomeOf(delivery);
  const attempts = attemptsOf(delivery);
  const omittedCount = attempts.length - MAX_SHOWN_ATTEMPTS;
  const sentence = `URL ${url.id} (${url.url}): ${OUTCOME_WHY[outcome](delivery)}`;
  const atMs = nextAtMs(outcome, delivery) ?? attempts.at(-1)?.atMs ?? null;
  return [
    ...(omittedCount > 0 ? [omittedStep(url.id, omittedCount)] : []),
    ...attempts.slice(-MAX_SHOWN_ATTEMPTS).map((attempt) => attemptStep(url.id, attempt)),
    step('delivery', outcome, SECTIONS.webhooks, sentence, atMs, 'wall'),
  ];
}

/**
 * When something happens next, ms since the epoch; null if nothing is planned. An open circuit lets nothing through
 * before its probe.
 */
function nextAtMs(outcome: Outcome, { reading, probeAtMs, heldUntilMs, behind }: DeliveryCase): number | null {
  if (outcome === 'pending-behind') return behind?.first?.reading.nextAttemptAtMs ?? null;
  const ownMs = reading?.nextAttemptAtMs ?? null;
  if (outcome === 'pending-held') return Math.max(ownMs ?? 0, heldUntilMs ?? 0);
  return outcome === 'pending-circuit' ? Math.max(ownMs ?? 0, probeAtMs ?? 0) : ownMs;
}

function omittedStep(urlId: number, count: number): WhyStep {
  return step(
    'bound',
    'attempts',
    SECTIONS.operator,
    `The oldest ${count} attempts at URL ${urlId} are left out here.`,
  );
}

function attemptStep(urlId: number, { number, atMs, durationMs, status, error }: StoredAttempt): WhyStep {
  const answer = status === null ? 'no answer' : `answer ${status}`;
  const result = error === null ? answer : `${answer} (${error})`;
  const sentence = `Attempt ${number} at URL ${urlId}, at ${formatDate(atMs)}: ${result} within ${durationMs} ms.`;
  const code = error === null ? 'went-well' : error === ADDRESS_REFUSED ? 'refused-address' : 'failed';
  return step('attempt', code, SECTIONS.webhooks, sentence, atMs, 'wall');
}
