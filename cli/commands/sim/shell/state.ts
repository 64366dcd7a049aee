/** Describes the shell's lock: its state, what is due next, and why it sent a ping. Pure. */

import { POWER_MODEL, type TriggerRow } from '../../../../proto/power/model.js';
import { effectiveRow, keepsConnection, nextWindowEdgeMs, rowOfState } from '../../../../proto/power/step/reading.js';
import type { StepState } from '../../../../proto/power/step/state.js';
import type { PingUplink } from '../../../../proto/wire/ping.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import type { ShellDevice } from './device.js';

/** The lock's state for `--json`; the printed text is derived from this object. */
export interface ShellState {
  readonly event: 'state';
  readonly at: string;
  readonly state: string;
  readonly lock_state: string;
  readonly battery_percent: number;
  readonly latitude: number;
  readonly longitude: number;
  readonly moving: boolean;
  readonly coverage: boolean;
  readonly sky: boolean;
  /** `kept`: the power state keeps the connection open. */
  readonly connection: 'none' | 'open' | 'kept';
  /** The number of unacknowledged uplinks (messages of the lock). */
  readonly buffered: number;
  /** What the lock will do without a further event, soonest first; times in RFC 3339. */
  readonly due: readonly { readonly what: string; readonly at: string }[];
}

/** Reads the state of the lock and its world. */
export function stateOf(device: ShellDevice): ShellState {
  const { state } = device.lock;
  const nowMs = device.nowMs();
  const { position } = device.world.fixAt(nowMs);
  const keeps = keepsConnection(rowOfState(POWER_MODEL, state.stateName), state.highWindow, nowMs);
  return {
    event: 'state',
    at: formatDate(nowMs),
    state: state.stateName,
    lock_state: state.lockState,
    battery_percent: state.batteryPercent,
    latitude: position.latitudeDegrees,
    longitude: position.longitudeDegrees,
    moving: state.moving,
    coverage: state.covered,
    sky: state.skyOpen,
    connection: state.link !== 'up' ? 'none' : keeps ? 'kept' : 'open',
    buffered: state.waiting.length,
    due: dueOf(state, nowMs).map(({ what, atMs }) => ({ what, at: formatDate(atMs) })),
  };
}

/** The state as lines of text. */
export function stateLines(lock: ShellState): string[] {
  const { sentence } = rowOfState(POWER_MODEL, lock.state as StepState['stateName']);
  const missing = [...(lock.coverage ? [] : ['no coverage']), ...(lock.sky ? [] : ['no GPS'])];
  const place = `${lock.latitude.toFixed(5)},${lock.longitude.toFixed(5)}${lock.moving ? ', moving' : ''}`;
  const waiting = lock.buffered === 0 ? '' : `, ${lock.buffered} uplinks waiting`;
  const rows: readonly (readonly [string, string])[] = [
    ['time', lock.at],
    ['state', sentence],
    ['lock', `${lock.lock_state}, battery ${lock.battery_percent} %`],
    ['place', [place, ...missing].join(', ')],
    ['connection', `${lock.connection}${waiting}`],
    ...lock.due.map(({ what, at }): [string, string] => ['next', `${what} at ${timeText(at, lock.at)}`]),
  ];
  return rows.map(([name, text]) => `${name.padEnd(11)} ${text}`);
}

/** The time of day of a date such as `2026-01-05T08:00:00Z`, with the day unless it is today. */
function timeText(at: string, now: string): string {
  return at.slice(0, 10) === now.slice(0, 10) ? at.slice(11, 19) : `${at.slice(11, 19)} on ${at.slice(0, 10)}`;
}

/** What the lock will do without a further event, soonest first. */
function dueOf(state: StepState, nowMs: number): { what: string; atMs: number }[] {
  const { timings } = POWER_MODEL;
  const row = rowOfState(POWER_MODEL, state.stateName);
  const due: { what: string; atMs: number }[] = [];
  const add = (what: string, atMs: number): void => {
    if (atMs >= nowMs && atMs < Number.POSITIVE_INFINITY) due.push({ what, atMs });
  };
  if (row.period) add('the Period Ping', state.nextPeriodMs);
  if (row.connectionKept === 'in-window')
    add('the high window opens or closes', nextWindowEdgeMs(state.highWindow, nowMs));
  if (state.tracking !== 'none') {
    add(`the next cellular ping of the ${state.tracking}`, state.trackCellAtMs + timings.refreshEvery);
    const every = state.tracking === 'theft' ? timings.theftGpsEvery : timings.rideGpsEvery;
    if (state.gps === 'fixed' && state.moving)
      add(`the next GPS ping of the ${state.tracking}`, state.trackGpsAtMs + every);
  }
  if (state.link === 'up' && keepsConnection(row, state.highWindow, nowMs))
    add('REASON_NETWORK_PING', state.networkAtMs + timings.networkPingEvery);
  else if (state.link === 'up' && state.tracking === 'none' && state.gps === 'off')
    add('the connection closes, if nothing keeps it,', state.trafficAtMs + timings.closeAfterIdle);
  if (state.link === 'down' && (state.waiting.length > 0 || state.resetDue))
    add('the next attempt to connect', state.retryAtMs);
  return due.sort((a, b) => a.atMs - b.atMs);
}

/** Why the lock sent a ping: the trigger's row in the power model, and the state in which the ping was made. */
export function whyText(ping: PingUplink | undefined): string {
  if (ping === undefined) return 'The lock has sent nothing yet.';
  const { kind, reason, batteryPercent } = ping.body;
  const { state } = effectiveRow(POWER_MODEL, ping.power, batteryPercent);
  const trigger = POWER_MODEL.triggers.find((row) => hasReason(row, reason));
  if (trigger === undefined && kind === 'close_connection')
    return `${reason}: nothing keeps the connection open any more, or the lock falls silent; in ${state}.`;
  if (trigger === undefined) return `${reason} belongs to no trigger of the lock itself.`;
  const { trigger: name, starts, ends } = trigger;
  return `${reason} belongs to the trigger ${name}: starts when ${starts}; ends: ${ends}. In ${state}.`;
}

function hasReason({ cellularReason, gpsReason }: TriggerRow, reason: string): boolean {
  return reason === cellularReason || reason === gpsReason;
}
