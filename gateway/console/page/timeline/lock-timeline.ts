/** Makes what a lock's timeline shows (../../timeline/timeline-data.ts) from the gateway's answers. Pure. */
import { POWER_MODEL } from '../../../../proto/power/model.js';
import type { EnteredState, TimelineData, TimelineDelivery, TimelineSpan } from '../../timeline/timeline-data.js';
import type { Command, Delivery, Finding, LockDelivery, LockHistory, Ping } from '../api/shapes.js';

/** What the gateway's answers say of a lock's past. */
export interface LockPast {
  readonly history: LockHistory;
  /** Newest first, as the interface answers them. */
  readonly pings: readonly Ping[];
  readonly findings: readonly Finding[];
  readonly commands: readonly Command[];
  readonly deliveries: readonly LockDelivery[];
}

/**
 * @param fromWall converts a wall-clock time, which attempts have, to the run's clock: the time of locks, which is
 *   faster in a demonstration
 */
export function lockTimeline(
  mac: string,
  { history, pings, findings, commands, deliveries }: LockPast,
  fromWall: (wallMs: number) => number,
): TimelineData {
  return {
    mac,
    states: history.states.flatMap(enteredState),
    connections: history.connections.map(connectionSpan),
    pings: pings.map(({ event_id, received_at, reason }) => ({
      atMs: Date.parse(received_at),
      reason,
      id: event_id,
      title: `${reason}, ${received_at}`,
    })),
    pingCount: pings.length,
    commands: commands.map(commandSpan),
    deliveries: deliveries.map((each) => timelineDelivery(each, fromWall)),
    findings: findings.map(({ id, at, rule, severity, message }) => ({
      atMs: Date.parse(at),
      severity,
      id,
      title: `${severity} ${rule}: ${message}`,
    })),
  };
}

/** Each state is a band of the timeline. One that this version of the page does not know is left out. */
function enteredState({ state, since }: LockHistory['states'][number]): EnteredState[] {
  const row = POWER_MODEL.states.find((each) => each.state === state);
  return row === undefined ? [] : [{ atMs: Date.parse(since), row }];
}

function connectionSpan({ from, to, cause }: LockHistory['connections'][number]): TimelineSpan {
  const outcome = to === null ? 'open' : cause === 'closed' ? 'good' : 'bad';
  const title = cause === null ? 'connected' : `connected, ended by ${cause}`;
  return { fromMs: Date.parse(from), toMs: to === null ? null : Date.parse(to), outcome, id: null, title };
}

/** How a timeline shows each state of a delivery. `kept`: not sent while the URL was disabled, and it may be later. */
const OUTCOMES: Readonly<Record<Delivery['state'], TimelineDelivery['outcome']>> = {
  pending: 'open',
  delivered: 'good',
  dead: 'bad',
  kept: 'open',
  damaged: 'bad',
};

function timelineDelivery({ target, delivery }: LockDelivery, fromWall: (wallMs: number) => number): TimelineDelivery {
  const { event_id, reason, type, received_at, state, attempts } = delivery;
  const fromMs = Date.parse(received_at);
  const answer = attempts.at(-1)?.error ?? '';
  const count = attempts.length === 1 ? '1 attempt' : `${attempts.length} attempts`;
  return {
    fromMs,
    // The two clocks are read at different moments, so an attempt could seem to precede its event.
    attempts: attempts.map(({ at, error }) => ({
      atMs: Math.max(fromWall(Date.parse(at)), fromMs),
      isGood: error === null,
    })),
    outcome: OUTCOMES[state],
    target,
    id: event_id,
    title: [`${reason ?? type} to ${target}: ${state}, ${count}`, answer].filter(Boolean).join('; '),
  };
}

function commandSpan({ id, type, state, created_at, finished_at }: Command): TimelineSpan {
  const isOpen = state === 'queued' || state === 'sent';
  const outcome = isOpen ? 'open' : state === 'done' ? 'good' : 'bad';
  const toMs = finished_at === null ? null : Date.parse(finished_at);
  return { fromMs: Date.parse(created_at), toMs, outcome, id: String(id), title: `command ${type}: ${state}` };
}
