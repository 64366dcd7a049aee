/**
 * The judge's own reading of the power model: which state is in force, and when HIGH keeps the connection. `step` has a
 * reading of its own, so that each can prove the other wrong (protocol.md §2).
 */
import { Days, type Milliseconds, Minutes } from '../../clock.js';
import type { HighWindow, PowerSettings } from '../../wire/ping.js';
import type { Condition, EffectiveState, PowerModel, StateRow } from '../model.js';

/** Stands for "at no time": JSON has no infinity, and beliefs are kept as JSON. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/** The row in force: the first that applies. A battery that nobody has reported yet is taken as not low. */
export function stateRow(model: PowerModel, power: PowerSettings, batteryPercent: number | null): StateRow {
  const rows = model.states;
  for (const row of rows) {
    if (applies(row.when, power, batteryPercent)) return row;
  }
  return rows[rows.length - 1] as StateRow;
}

function applies(when: Condition, power: PowerSettings, batteryPercent: number | null): boolean {
  if ('switch' in when) return power[when.switch];
  if ('mode' in when) return power.mode === when.mode;
  return batteryPercent !== null && batteryPercent < when.batteryBelowPercent;
}

/** The row of a state by its name. */
export function rowOf(model: PowerModel, state: EffectiveState): StateRow {
  return model.states.find((row) => row.state === state) ?? (model.states[model.states.length - 1] as StateRow);
}

/** What was found in a model last: it is asked for with every ping, and nearly always of the same model. */
let lastModel: PowerModel | null = null;
let lastBelow = 0;

/** Under which the battery is low; 0 where the model knows no such state. */
export function lowBatteryBelow(model: PowerModel): number {
  if (model === lastModel) return lastBelow;
  lastBelow = 0;
  for (const row of model.states) {
    if ('batteryBelowPercent' in row.when) lastBelow = row.when.batteryBelowPercent;
  }
  lastModel = model;
  return lastBelow;
}

/** Where a moment lies in a daily window. */
export interface WindowPhase {
  readonly isInside: boolean;
  /** How long until it opens or closes; {@link NEVER} for one that is open all day. */
  readonly changesIn: Milliseconds;
  /** How long it is closed each day. */
  readonly closedFor: Milliseconds;
}

/**
 * Where `timeMs` lies in the window, by the clock at the window's UTC offset. A window from a time to the same time is
 * all day; one may run over midnight. It holds its first moment and not its last.
 */
export function windowPhase(window: HighWindow, timeMs: number): WindowPhase {
  const from = modulo(Minutes(window.fromMinute), Days(1));
  const to = modulo(Minutes(window.toMinute), Days(1));
  if (from === to) return { isInside: true, changesIn: NEVER, closedFor: 0 };
  const ofDay = modulo(timeMs + Minutes(window.utcOffsetMinutes), Days(1));
  const isInside = from < to ? ofDay >= from && ofDay < to : ofDay >= from || ofDay < to;
  const changesIn = modulo((isInside ? to : from) - ofDay, Days(1));
  return { isInside, changesIn, closedFor: modulo(from - to, Days(1)) };
}

/** The remainder that is never negative. */
function modulo(value: number, size: number): number {
  return ((value % size) + size) % size;
}
