/**
 * The lock's connection: when it wants one, how it retries, which uplinks it sends first and last on it (protocol.md
 * §2). No I/O: the functions change only the context of the step (the lock's state and effects) that they are given. A
 * lock is in a *silent state* when it sends nothing but thefts: in AIRPLANE and LOW_BATTERY. It announces such a state
 * with a close-connection ping: `silenceNotice` is `due` before that ping, and `trying` until it has been sent.
 */
import type { Uplink } from '../../wire/ping.js';
import { isSilent, keepsConnection, NEVER, triggerRow } from './reading.js';
import type { StepContext } from './state.js';
import { isTheft, makeCellular, makeClose, publishFirst } from './uplinks.js';

const CONNECT = Object.freeze({ type: 'connect' });
const DISCONNECT = Object.freeze({ type: 'disconnect' });
const DROP = Object.freeze({ type: 'drop' });
/** One shared empty list, because an acknowledged uplink is usually the only one that waits. */
const NO_UPLINKS: readonly Uplink[] = [];

/** Whether something keeps the connection open, apart from waiting uplinks. */
export function mustStayOpen({ state, row, nowMs }: StepContext): boolean {
  return (
    state.tracking !== 'none' ||
    state.stateGpsUntilMs !== NEVER ||
    state.periodGpsUntilMs !== NEVER ||
    state.locatingByGps.length > 0 ||
    state.locatingByCell.length > 0 ||
    state.locking.length > 0 ||
    keepsConnection(row, state.highWindow, nowMs)
  );
}

/**
 * Whether a lock without a connection wants one. In a silent state it wants one only for a theft, or to announce its
 * silence.
 */
export function wantsLink(context: StepContext): boolean {
  const { state, row } = context;
  if (isSilent(row)) {
    const forTheft = row.theft && (state.tracking === 'theft' || state.waiting.some(isTheft));
    return forTheft || state.silenceNotice === 'trying';
  }
  return state.waiting.length > 0 || state.resetDue || mustStayOpen(context);
}

/** Connects, sends the next uplink, or closes the connection, whichever is due. */
export function settleLink(context: StepContext): void {
  const { state, nowMs } = context;
  if (state.link === 'down') {
    if (nowMs >= state.retryAtMs && wantsLink(context)) connect(context);
    return;
  }
  if (state.link !== 'up') return;
  if (state.inFlight) {
    if (nowMs >= timesOutMs(context)) loseLink(context);
    return;
  }
  if (state.waiting.length === 0 && !mustStayOpen(context)) {
    if (hasReportedAirplane(context)) {
      disconnect(context);
      return;
    }
    if (nowMs >= closesMs(context)) makeClose(context);
  }
  publishFirst(context);
}

/** Whether the lock has reported airplane mode. It does so with a single close-connection ping. */
function hasReportedAirplane({ state }: StepContext): boolean {
  return state.power.airplane && state.airplaneTold;
}

/** When a connection that nothing keeps open closes. */
export function closesMs({ state, model }: StepContext): number {
  return state.trafficAtMs + model.timings.closeAfterIdle;
}

/**
 * When a connection without traffic counts as dead while an uplink waits for its acknowledgement: after the keepalive.
 * Otherwise the lock would stay awake for ever.
 */
export function timesOutMs({ state, model }: StepContext): number {
  return state.trafficAtMs + model.timings.keepalive;
}

function connect(context: StepContext): void {
  if (!context.state.covered) {
    scheduleRetry(context);
    return;
  }
  context.state.link = 'connecting';
  context.effects.push(CONNECT);
}

function disconnect(context: StepContext): void {
  context.state.link = 'ending';
  context.effects.push(DISCONNECT);
}

/**
 * Schedules the next attempt to connect: after 10, 30 and 60 s, then every 5 min ± 20 %. An announcement of silence is
 * not retried.
 */
function scheduleRetry(context: StepContext): void {
  const { state, nowMs } = context;
  const { retryAfter, retryThenEvery, retryJitter } = context.model.timings;
  const jitter = (): number => retryJitter * (2 * nextRandom(context) - 1);
  const wait = retryAfter[state.failures] ?? retryThenEvery * (1 + jitter());
  state.failures++;
  state.retryAtMs = nowMs + Math.round(wait);
  if (state.silenceNotice === 'trying') state.silenceNotice = 'none';
}

/**
 * A random number in [0, 1) from the state's own generator (mulberry32). So the retries of a fleet are spread, and the
 * same seed gives the same retries.
 */
function nextRandom({ state }: StepContext): number {
  state.jitterState = (state.jitterState + 0x6d2b79f5) >>> 0;
  let mixed = state.jitterState;
  mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

/** The connection is established. If the modem has restarted, the lock first reports the restart. */
export function onConnected(context: StepContext): void {
  const { state, row, nowMs } = context;
  if (state.link !== 'connecting') return;
  state.link = 'up';
  state.inFlight = false;
  state.sentOnLink = 0;
  state.trafficAtMs = nowMs;
  state.networkAtMs = NEVER;
  if (!state.resetDue || isSilent(row)) return;
  state.resetDue = false;
  const reason = triggerRow(context.model, 'reset')?.cellularReason;
  if (reason) makeCellular(context, reason);
}

/** The attempt to connect failed. */
export function onConnectFailed(context: StepContext): void {
  if (context.state.link !== 'connecting') return;
  context.state.link = 'down';
  scheduleRetry(context);
}

/** The connection ended. If the lock did not close it, that counts as a failure. */
export function onDisconnected(context: StepContext): void {
  const { state, nowMs } = context;
  const isClosedByLock = state.link === 'ending';
  if (state.link === 'down') return;
  markDown(context);
  if (isClosedByLock) state.retryAtMs = nowMs;
  else scheduleRetry(context);
}

/** The lock enters or leaves the network's coverage. */
export function changeCoverage(context: StepContext, covered: boolean): void {
  const { state } = context;
  state.covered = covered;
  if (!covered && state.link !== 'down') loseLink(context);
}

function loseLink(context: StepContext): void {
  dropLink(context);
  scheduleRetry(context);
}

/** The modem restarts without a command, which breaks its connection. */
export function restartModem(context: StepContext): void {
  dropLink(context);
  context.state.resetDue = true;
  context.state.retryAtMs = context.nowMs;
}

/** Ends the connection without notifying the gateway. */
export function dropLink(context: StepContext): void {
  if (context.state.link === 'down') return;
  context.effects.push(DROP);
  markDown(context);
}

function markDown({ state }: StepContext): void {
  state.link = 'down';
  state.inFlight = false;
  // A command asked for a restart of the modem, which happens now that the connection has ended.
  if (!state.resetAfterClose) return;
  state.resetAfterClose = false;
  state.resetDue = true;
}

/** The gateway acknowledged an uplink. After a close-connection ping the lock sends nothing more on the connection. */
export function onAcknowledged(context: StepContext, boot: number, sequence: number): void {
  const { state } = context;
  const first = state.waiting[0];
  if (!state.inFlight || first === undefined || first.boot !== boot || first.sequence !== sequence) return;
  state.waiting = state.waiting.length === 1 ? NO_UPLINKS : state.waiting.slice(1);
  state.inFlight = false;
  state.failures = 0;
  if (isClose(first)) onCloseAcknowledged(context);
}

/**
 * A close-connection ping was acknowledged. If it was the first uplink of its connection, it belongs to the connection
 * before (protocol.md §3), which broke before the ping was sent. The lock may then go on using this connection.
 */
function onCloseAcknowledged(context: StepContext): void {
  const { state } = context;
  if (!state.waiting.some(isClose)) state.silenceNotice = 'none';
  const hasMore = state.waiting.length > 0 || mustStayOpen(context);
  const staysConnected = state.sentOnLink === 1 && hasMore && !state.resetAfterClose;
  if (!staysConnected) disconnect(context);
}

function isClose(uplink: Uplink): boolean {
  return uplink.body.kind === 'close_connection';
}

/** Sends REASON_NETWORK_PING while the state keeps the connection: at the start, and every 15 min. */
export function advanceKept(context: StepContext): void {
  const { state, row, nowMs, model } = context;
  if (state.link !== 'up') return;
  if (!keepsConnection(row, state.highWindow, nowMs)) {
    state.networkAtMs = NEVER;
    return;
  }
  if (nowMs < state.networkAtMs + model.timings.networkPingEvery) return;
  state.networkAtMs = nowMs;
  const reason = triggerRow(model, 'kept-connection')?.cellularReason;
  if (reason) makeCellular(context, reason);
}

/** Announces with a close-connection ping that the lock falls silent: at once, or after a theft that is going on. */
export function announceSilence(context: StepContext): void {
  const { state, row } = context;
  if (state.silenceNotice !== 'due' || (row.theft && state.tracking === 'theft')) return;
  if (hasReportedAirplane(context)) {
    state.silenceNotice = 'none';
    return;
  }
  makeClose(context);
  state.silenceNotice = 'trying';
  state.retryAtMs = context.nowMs;
}
