/** How `step` reads the model's table: pure leaves, of its own and not shared with `judge` (protocol.md §2). */
import { Days, Minutes } from '../../clock.js';
import type { Mac } from '../../wire/mac.js';
import type { HighWindow, PowerSettings } from '../../wire/ping.js';
import type { Condition, EffectiveState, PowerModel, StateRow, TriggerName, TriggerRow } from '../model.js';

/** A time that has never been. It is a plain number, so that a state can be written as JSON. */
export const NEVER = Number.MIN_SAFE_INTEGER;

/** A Period Ping is made once daily (specification, Limits). */
const ONE_DAY = Days(1);
const ONE_MINUTE = Minutes(1);
const MINUTES_OF_DAY = 1440;

/** The row of the effective state: the first that applies. */
export function effectiveRow(model: PowerModel, power: PowerSettings, batteryPercent: number): StateRow {
  for (const row of model.states) if (applies(row.when, power, batteryPercent)) return row;
  throw new Error('the power model has no state for these settings: its table must end with one that always applies');
}

/** The model's tables as they are looked into: each step looks several times, and a frozen array is slow to walk. */
interface Tables {
  readonly model: PowerModel;
  readonly states: readonly StateRow[];
  readonly triggers: readonly TriggerRow[];
}

let latest: Tables | undefined;

/** Of the model that was asked for last, which in a run is the model: a model is data that never changes. */
function tablesOf(model: PowerModel): Tables {
  if (latest?.model === model) return latest;
  latest = { model, states: [...model.states], triggers: [...model.triggers] };
  return latest;
}

/** The row of a state by its name. */
export function rowOf(model: PowerModel, state: EffectiveState): StateRow {
  const { states } = tablesOf(model);
  for (let index = 0; index < states.length; index++) {
    const row = states[index];
    if (row?.state === state) return row;
  }
  throw new Error(`the power model has no state ${state}`);
}

function applies(condition: Condition, power: PowerSettings, batteryPercent: number): boolean {
  if ('switch' in condition) return power[condition.switch];
  if ('mode' in condition) return power.mode === condition.mode;
  return batteryPercent < condition.batteryBelowPercent;
}

/**
 * Whether a lock falls silent in this state, but for a theft. Such a state is announced on entering it, takes no
 * commands, and tries for nothing but a theft.
 */
export function isSilent(row: StateRow): boolean {
  return !row.period && !row.stateChange && !row.cellOnInRide && !row.commands && row.connectionKept === 'never';
}

/** Whether the state keeps the connection at this moment. */
export function keepsConnection(row: StateRow, window: HighWindow, nowMs: number): boolean {
  return row.connectionKept === 'always' || (row.connectionKept === 'in-window' && windowContains(window, nowMs));
}

function minuteOfLocalDay(window: HighWindow, atMs: number): number {
  return positiveModulo(Math.floor(atMs / ONE_MINUTE) + window.utcOffsetMinutes, MINUTES_OF_DAY);
}

/** From = to is all day; a window may run over midnight. Its first minute is inside, its last is not. */
export function windowContains(window: HighWindow, atMs: number): boolean {
  const { fromMinute, toMinute } = window;
  const minute = minuteOfLocalDay(window, atMs);
  if (fromMinute === toMinute) return true;
  if (fromMinute < toMinute) return minute >= fromMinute && minute < toMinute;
  return minute >= fromMinute || minute < toMinute;
}

/** When the window opens or closes next, after `atMs`; never (Infinity) where it is open all day. */
export function nextWindowEdgeMs(window: HighWindow, atMs: number): number {
  if (window.fromMinute === window.toMinute) return Number.POSITIVE_INFINITY;
  const minute = minuteOfLocalDay(window, atMs);
  const minutesUntil = (edge: number): number => positiveModulo(edge - minute - 1, MINUTES_OF_DAY) + 1;
  const soonest = Math.min(minutesUntil(window.fromMinute), minutesUntil(window.toMinute));
  return (Math.floor(atMs / ONE_MINUTE) + soonest) * ONE_MINUTE;
}

/** The lock's own minute of the UTC day for its Period Ping, spread by its MAC (FNV-1a). */
export function periodMinuteOf(mac: Mac): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < mac.length; index++) {
    hash = Math.imul(hash ^ mac.charCodeAt(index), 0x01000193) >>> 0;
  }
  // The low bits of FNV-1a over such short and similar texts are spread worst.
  return ((hash ^ (hash >>> 15)) >>> 0) % MINUTES_OF_DAY;
}

/** When the minute of the day comes round next: at `fromMs` or later, and not before `notBeforeMs`. */
export function nextPeriodMs(periodMinute: number, fromMs: number, notBeforeMs: number): number {
  const today = Math.floor(fromMs / ONE_DAY) * ONE_DAY + periodMinute * ONE_MINUTE;
  return Math.max(today >= fromMs ? today : today + ONE_DAY, notBeforeMs);
}

/** The row of a trigger; undefined where the model has none of that name. */
export function triggerRow(model: PowerModel, trigger: TriggerName): TriggerRow | undefined {
  const { triggers } = tablesOf(model);
  for (let index = 0; index < triggers.length; index++) {
    const row = triggers[index];
    if (row?.trigger === trigger) return row;
  }
  return undefined;
}

/** In [0, modulus), of whole numbers: exact by the floor, and many times as fast as the remainder of two doubles. */
function positiveModulo(value: number, modulus: number): number {
  return value - Math.floor(value / modulus) * modulus;
}
