/** The connection: when a lock wants one, how it tries, what it says first and last on it (protocol.md §2). */
import type { Uplink } from '../../wire/ping.js';
import { isSilent, keepsConnection, NEVER, triggerRow } from './reading.js';
import type { Turn } from './state.js';
import { isTheft, makeCellular, makeClose, publishFirst } from './uplinks.js';

const CONNECT = Object.freeze({ type: 'connect' });
const DISCONNECT = Object.freeze({ type: 'disconnect' });
const DROP = Object.freeze({ type: 'drop' });
/** One for all: mostly nothing waits once an uplink is acknowledged. */
const NONE_WAIT: readonly Uplink[] = [];

/** Whether something keeps the connection open, other than what waits to be sent. */
export function holdsOpen({ state, row, nowMs }: Turn): boolean {
  return (
    state.tracking !== 'none' ||
    state.stateGpsUntilMs !== NEVER ||
    state.periodGpsUntilMs !== NEVER ||
    state.locating.length > 0 ||
    state.locatingByCell.length > 0 ||
    state.locking.length > 0 ||
    keepsConnection(row, state.highWindow, nowMs)
  );
}

/** Whether a lock without a connection wants one: something is due or kept, in a silent state for a theft only. */
export function wantsLink(turn: Turn): boolean {
  const { state, row } = turn;
  if (isSilent(row)) {
    const forTheft = row.theft && (state.tracking === 'theft' || state.waiting.some(isTheft));
    return forTheft || state.farewell === 'trying';
  }
  return state.waiting.length > 0 || state.resetDue || holdsOpen(turn);
}

/** Connects, sends, or closes, as the moment asks for. */
export function settleLink(turn: Turn): void {
  const { state, nowMs } = turn;
  if (state.link === 'down') {
    if (nowMs >= state.retryAtMs && wantsLink(turn)) connect(turn);
    return;
  }
  if (state.link !== 'up') return;
  if (state.inFlight) {
    if (nowMs >= givesUpMs(turn)) loseLink(turn);
    return;
  }
  if (state.waiting.length === 0 && !holdsOpen(turn)) {
    if (saidAll(turn)) {
      disconnect(turn);
      return;
    }
    if (nowMs >= closesMs(turn)) makeClose(turn);
  }
  publishFirst(turn);
}

/** Airplane mode is reported by one close-connection ping: a lock that has sent it leaves without another. */
function saidAll({ state }: Turn): boolean {
  return state.power.airplane && state.airplaneTold;
}

/** When a connection that nothing keeps open closes. */
export function closesMs({ state, model }: Turn): number {
  return state.trafficAtMs + model.timings.closeAfterIdle;
}

/**
 * When a connection on which nothing passes while an uplink waits for its acknowledgement is taken for dead: after the
 * keepalive. A lock that waited for ever would be awake for nothing.
 */
export function givesUpMs({ state, model }: Turn): number {
  return state.trafficAtMs + model.timings.keepalive;
}

function connect(turn: Turn): void {
  if (!turn.state.covered) {
    failed(turn);
    return;
  }
  turn.state.link = 'connecting';
  turn.effects.push(CONNECT);
}

function disconnect(turn: Turn): void {
  turn.state.link = 'ending';
  turn.effects.push(DISCONNECT);
}

/** Waits for the next try: 10, 30 and 60 s, then every 5 min ± 20 %. A farewell is tried once. */
function failed(turn: Turn): void {
  const { state, nowMs } = turn;
  const { retryAfter, retryThenEvery, retryJitter } = turn.model.timings;
  const wait = retryAfter[state.failures] ?? retryThenEvery * (1 + retryJitter * (2 * drawShare(turn) - 1));
  state.failures++;
  state.retryAtMs = nowMs + Math.round(wait);
  if (state.farewell === 'trying') state.farewell = 'none';
}

/** A number in [0, 1) from the lock's own dice (mulberry32), so that a fleet's retries spread and a seed repeats. */
function drawShare({ state }: Turn): number {
  state.chance = (state.chance + 0x6d2b79f5) >>> 0;
  let mixed = state.chance;
  mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

/** The connection stands. A reset of the modem is reported first of all. */
export function onConnected(turn: Turn): void {
  const { state, row, nowMs } = turn;
  if (state.link !== 'connecting') return;
  state.link = 'up';
  state.inFlight = false;
  state.sentOnLink = 0;
  state.trafficAtMs = nowMs;
  state.networkAtMs = NEVER;
  if (!state.resetDue || isSilent(row)) return;
  state.resetDue = false;
  const reason = triggerRow(turn.model, 'reset')?.cellularReason;
  if (reason) makeCellular(turn, reason);
}

/** The try to connect came to nothing. */
export function onConnectFailed(turn: Turn): void {
  if (turn.state.link !== 'connecting') return;
  turn.state.link = 'down';
  failed(turn);
}

/** The connection ended: as the lock asked, or by itself, which counts as a failure. */
export function onDisconnected(turn: Turn): void {
  const { state, nowMs } = turn;
  const asked = state.link === 'ending';
  if (state.link === 'down') return;
  downNow(turn);
  if (asked) state.retryAtMs = nowMs;
  else failed(turn);
}

/** The network no longer reaches the lock, or does again. */
export function changeCoverage(turn: Turn, covered: boolean): void {
  const { state } = turn;
  state.covered = covered;
  if (!covered && state.link !== 'down') loseLink(turn);
}

function loseLink(turn: Turn): void {
  dropLink(turn);
  failed(turn);
}

/** The modem restarts, by itself: its connection is gone without a word. */
export function restartModem(turn: Turn): void {
  dropLink(turn);
  turn.state.resetDue = true;
  turn.state.retryAtMs = turn.nowMs;
}

/** Ends a connection that the other side will find dead. */
export function dropLink(turn: Turn): void {
  if (turn.state.link === 'down') return;
  turn.effects.push(DROP);
  downNow(turn);
}

function downNow({ state }: Turn): void {
  state.link = 'down';
  state.inFlight = false;
  if (!state.resetAfterClose) return;
  state.resetAfterClose = false;
  state.resetDue = true;
}

/** An uplink is safe on the other side. After a close-connection ping nothing more is said on its connection. */
export function onAcknowledged(turn: Turn, boot: number, sequence: number): void {
  const { state } = turn;
  const first = state.waiting[0];
  if (!state.inFlight || first === undefined || first.boot !== boot || first.sequence !== sequence) return;
  state.waiting = state.waiting.length === 1 ? NONE_WAIT : state.waiting.slice(1);
  state.inFlight = false;
  state.failures = 0;
  if (isClose(first)) onCloseAcknowledged(turn);
}

/**
 * A close that is its connection's first uplink belongs to the connection before (protocol.md §3): it was kept when
 * that one broke, and the lock may go on if it has anything to go on with.
 */
function onCloseAcknowledged(turn: Turn): void {
  const { state } = turn;
  if (!state.waiting.some(isClose)) state.farewell = 'none';
  const hasMore = state.waiting.length > 0 || holdsOpen(turn);
  const goesOn = state.sentOnLink === 1 && hasMore && !state.resetAfterClose;
  if (!goesOn) disconnect(turn);
}

function isClose(uplink: Uplink): boolean {
  return uplink.body.kind === 'close_connection';
}

/** A kept connection says that it waits for commands: when it begins to be kept, and every 15 min. */
export function advanceKept(turn: Turn): void {
  const { state, row, nowMs, model } = turn;
  if (state.link !== 'up') return;
  if (!keepsConnection(row, state.highWindow, nowMs)) {
    state.networkAtMs = NEVER;
    return;
  }
  if (nowMs < state.networkAtMs + model.timings.networkPingEvery) return;
  state.networkAtMs = nowMs;
  const reason = triggerRow(model, 'kept-connection')?.cellularReason;
  if (reason) makeCellular(turn, reason);
}

/** Says that the lock falls silent, at once; where a theft goes on, it does so when the theft has ended. */
export function settleFarewell(turn: Turn): void {
  const { state, row } = turn;
  if (state.farewell !== 'due' || (row.theft && state.tracking === 'theft')) return;
  if (saidAll(turn)) {
    state.farewell = 'none';
    return;
  }
  makeClose(turn);
  state.farewell = 'trying';
  state.retryAtMs = turn.nowMs;
}
