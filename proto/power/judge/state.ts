/**
 * How the judge reads the power model: which state is in force, and when HIGH keeps the connection (protocol.md §2).
 * The simulation in power/step/ must not use this file: it has its own code for that, so that each can prove the other
 * wrong.
 */
import { Days, type Milliseconds, Minutes } from '../../clock.js';
import type { HighWindow, PowerSettings } from '../../wire/ping.js';
import type { Condition, EffectiveState, PowerModel, StateRow } from '../model.js';

/** A time that never comes. It is a finite number, because beliefs are stored as JSON, which has no Infinity. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/** The model's row for the state in force: the first whose condition holds. A null battery level counts as not low. */
export function stateRow(model: PowerModel, power: PowerSettings, batteryPercent: number | null): StateRow {
  const rows = model.states;
  for (const row of rows) {
    if (applies(row.when, power, batteryPercent)) return row;
  }
  // A model has at least one row, and its last two are for the two modes, so this is only for the type.
  return rows[rows.length - 1] as StateRow;
}

function applies(when: Condition, power: PowerSettings, batteryPercent: number | null): boolean {
  if ('switch' in when) return power[when.switch];
  if ('mode' in when) return power.mode === when.mode;
  return batteryPercent !== null && batteryPercent < when.batteryBelowPercent;
}

/** The rows by state of the model used last, cached: every uplink needs some, nearly always of one model. */
let rowsModel: PowerModel | null = null;
let rowsByState: Readonly<Partial<Record<EffectiveState, StateRow>>> = {};

/** The row of a state by its name. */
export function rowOfState(model: PowerModel, state: EffectiveState): StateRow {
  if (model !== rowsModel) {
    rowsByState = Object.fromEntries(model.states.map((row) => [row.state, row]));
    rowsModel = model;
  }
  return rowsByState[state] ?? (model.states.at(-1) as StateRow);
}

/** The model used last and its low-battery limit, cached: every ping needs the limit, nearly always of one model. */
let lastModel: PowerModel | null = null;
let lastLimitPercent = 0;

/** The level below which the battery is low; 0 if the model has no such state. */
export function lowBatteryLimitPercent(model: PowerModel): number {
  if (model === lastModel) return lastLimitPercent;
  lastLimitPercent = 0;
  for (const row of model.states) {
    if ('batteryBelowPercent' in row.when) lastLimitPercent = row.when.batteryBelowPercent;
  }
  lastModel = model;
  return lastLimitPercent;
}

/** The position of a moment relative to a daily window. */
export interface WindowPhase {
  readonly isInside: boolean;
  /** How long until the window opens or closes; {@link NEVER} if it is open all day. */
  readonly changesIn: Milliseconds;
  /** How long the window is closed each day. */
  readonly closedFor: Milliseconds;
}

/**
 * The position of `timeMs` relative to the window, in local time at the window's UTC offset. A window from a time to
 * the same time is open all day; a window may run over midnight. It includes its first moment but not its last.
 */
export function windowPhase(window: HighWindow, timeMs: number): WindowPhase {
  const from = modulo(Minutes(window.fromMinute), Days(1));
  const to = modulo(Minutes(window.toMinute), Days(1));
  if (from === to) return { isInside: true, changesIn: NEVER, closedFor: 0 };
  const timeOfDay = modulo(timeMs + Minutes(window.utcOffsetMinutes), Days(1));
  const isInside = from < to ? timeOfDay >= from && timeOfDay < to : timeOfDay >= from || timeOfDay < to;
  const changesIn = modulo((isInside ? to : from) - timeOfDay, Days(1));
  return { isInside, changesIn, closedFor: modulo(from - to, Days(1)) };
}

/** The remainder, which is never negative. */
function modulo(value: number, size: number): number {
  return ((value % size) + size) % size;
}
