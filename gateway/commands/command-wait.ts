/** Determines what an unfinished command waits for, as lists and "why" show it. Pure. */
import type { Belief } from '../../proto/power/judge/belief.js';
import { presence } from '../../proto/power/judge/presence.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { formatDate, isDatable } from '../../proto/wire/ping-json.js';
import type { Session, Subscription } from '../mqtt/sessions.js';
import type { CommandRecord } from '../store/contract/command-record.js';
import { type CommandQueue, type IsHeld, nextCommand } from './command-queue.js';

/** What a command waits for: a word for programs (`for`) and a phrase for people (`text`). */
export interface Wait {
  /**
   * - `schedule`: the time from which it may be sent
   * - `clock`: the machine's clock must be trusted again
   * - `turn`: an earlier command of the lock
   * - `subscription`: the lock must subscribe to the topic of commands
   * - `acknowledgement`: it was sent, and the lock has not answered
   * - `sending`: nothing more, it is about to be sent
   */
  readonly for:
    | 'schedule'
    | 'clock'
    | 'turn'
    | 'low-battery'
    | 'airplane'
    | 'connection'
    | 'subscription'
    | 'acknowledgement'
    | 'sending';
  readonly text: string;
  /**
   * When the wait is expected to end, ms since the epoch by the run's clock (wall-clock time, except in a sped-up
   * simulation); absent if unknown.
   */
  readonly dueMs?: number;
}

/** Everything that determines what a command waits for. */
export interface WaitQuestion {
  readonly record: CommandRecord;
  readonly queue: CommandQueue | undefined;
  /** What the judge has concluded about the lock; undefined if the lock has never done anything. */
  readonly belief: Belief | undefined;
  /** The lock's own connection; undefined while there is none. */
  readonly session: Pick<Session, 'subscription'> | undefined;
  readonly nowMs: number;
  readonly isHeld: IsHeld;
}

/** What the command waits for; null if it is finished. */
export function waitOf(question: WaitQuestion): Wait | null {
  const { record, queue, belief, session, nowMs, isHeld } = question;
  const { id, state, notBeforeMs } = record;
  if (state !== 'queued' && state !== 'sent') return null;
  if (notBeforeMs !== null && notBeforeMs > nowMs)
    return { for: 'schedule', text: `scheduled for ${formatDate(notBeforeMs)}`, dueMs: notBeforeMs };
  if (isHeld(record)) return { for: 'clock', text: 'it may have expired: the machine’s clock leapt' };
  const next = queue === undefined ? undefined : nextCommand(queue, nowMs, isHeld);
  if (next !== undefined && next.record.id !== id) return { for: 'turn', text: `behind command ${next.record.id}` };
  if (belief?.state === 'LOW_BATTERY') return { for: 'low-battery', text: 'low battery' };
  if (belief?.state === 'AIRPLANE') return { for: 'airplane', text: 'airplane mode: nothing reaches the lock' };
  if (session === undefined) return connectionWait(belief, nowMs);
  const { subscription } = session;
  if (subscription !== 'active') return { for: 'subscription', text: subscriptionText(subscription, belief) };
  if (state === 'sent') return { for: 'acknowledgement', text: 'the lock’s answer' };
  return { for: 'sending', text: 'being sent' };
}

function subscriptionText(subscription: Subscription, belief: Belief | undefined): string {
  const since = belief?.isConnected === true ? ` since ${formatDate(belief.connectedSinceMs)}` : '';
  const has = subscription === 'withdrawn' ? 'unsubscribed from' : 'not subscribed to';
  return `lock connected${since}, has ${has} \`down\``;
}

function connectionWait(belief: Belief | undefined, nowMs: number): Wait {
  const text = 'lock not connected';
  const silence = belief === undefined ? undefined : presence(POWER_MODEL, belief, nowMs);
  if (silence === undefined || silence.presence === 'never-seen')
    return { for: 'connection', text: 'lock has never connected' };
  if (silence.presence === 'late')
    return { for: 'connection', text: `${text}, late since ${formatDate(silence.sinceMs)} (${silence.rule})` };
  if (silence.presence !== 'asleep' || silence.dueMs === null || !isDatable(silence.dueMs))
    return { for: 'connection', text };
  const dueAt = formatDate(silence.dueMs);
  return { for: 'connection', text: `${text}, next connection due at ${dueAt}`, dueMs: silence.dueMs };
}
