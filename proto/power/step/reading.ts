/**
 * How `step` reads the model's table (protocol.md §2). Pure. `judge` must not use this file: it has its own code for
 * reading the table, so that each can prove the other wrong.
 */
import { Days, Minutes } from '../../clock.js';
import type { Mac } from '../../wire/mac.js';
import type { HighWindow, PowerSettings } from '../../wire/ping.js';
import type { Condition, EffectiveState, PowerModel, StateRow, TriggerName, TriggerRow } from '../model.js';

/** The time of an event that has not happened. It is a finite number, because JSON can't represent −Infinity. */
export const NEVER = Number.MIN_SAFE_INTEGER;

/** A Period Ping is made once daily (specification, Limits). */
const ONE_DAY = Days(1);
const ONE_MINUTE = Minutes(1);
const MINUTES_OF_DAY = 1440;

/** The row of the effective state: the first whose condition holds. */
export function effectiveRow(model: PowerModel, power: PowerSettings, batteryPercent: number): StateRow {
  for (const row of model.states) if (applies(row.when, power, batteryPercent)) return row;
  throw new Error('the power model has no state for these settings: its table must end with one that always applies');
}

/** Copies of the model's tables, for speed: each step reads them several times, and a frozen array is slow to read. */
interface Tables {
  readonly model: PowerModel;
  readonly states: readonly StateRow[];
  readonly triggers: readonly TriggerRow[];
}

let latestTables: Tables | undefined;

/** The copies for the model used last. A run has one model, and a model never changes. */
function tablesOf(model: PowerModel): Tables {
  if (latestTables?.model === model) return latestTables;
  latestTables = { model, states: [...model.states], triggers: [...model.triggers] };
  return latestTables;
}

/** The row of a state by its name. */
export function rowOfState(model: PowerModel, state: EffectiveState): StateRow {
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
 * Whether a lock is silent in this state, except during a theft. On entering such a state, the lock announces it; in
 * it, the lock takes no commands and connects only for a theft.
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

/**
 * The latest result of {@link partOfDay}: whether the window is open from `fromMs` to before `untilMs`, ms since the
 * epoch. It is cached because each step asks several times, and most locks have the same window.
 */
const lastPart: { window: HighWindow | undefined; fromMs: number; untilMs: number; isOpen: boolean } = {
  window: undefined,
  fromMs: Number.NaN,
  untilMs: Number.NaN,
  isOpen: false,
};

/** The part of the day around `atMs` in which the window stays open, or stays closed. */
function partOfDay(window: HighWindow, atMs: number): typeof lastPart {
  if (window === lastPart.window && atMs >= lastPart.fromMs && atMs < lastPart.untilMs) return lastPart;
  lastPart.window = window;
  lastPart.fromMs = atMs;
  lastPart.untilMs = edgeAfter(window, atMs);
  lastPart.isOpen = isOpenAt(window, atMs);
  return lastPart;
}

/**
 * Whether the window is open at `atMs`. A window from a time to the same time is open all day; a window may run over
 * midnight. `fromMinute` is inside the window, `toMinute` is not.
 */
export function windowContains(window: HighWindow, atMs: number): boolean {
  return partOfDay(window, atMs).isOpen;
}

/** When the window opens or closes next after `atMs`; Infinity if it is open all day. */
export function nextWindowEdgeMs(window: HighWindow, atMs: number): number {
  return partOfDay(window, atMs).untilMs;
}

function isOpenAt(window: HighWindow, atMs: number): boolean {
  const { fromMinute, toMinute } = window;
  const minute = minuteOfLocalDay(window, atMs);
  if (fromMinute === toMinute) return true;
  if (fromMinute < toMinute) return minute >= fromMinute && minute < toMinute;
  return minute >= fromMinute || minute < toMinute;
}

function edgeAfter(window: HighWindow, atMs: number): number {
  if (window.fromMinute === window.toMinute) return Number.POSITIVE_INFINITY;
  const minute = minuteOfLocalDay(window, atMs);
  // 1 to 1440: an edge in the present minute has passed already and comes again tomorrow.
  const minutesUntil = (edge: number): number => positiveModulo(edge - minute - 1, MINUTES_OF_DAY) + 1;
  const soonest = Math.min(minutesUntil(window.fromMinute), minutesUntil(window.toMinute));
  return (Math.floor(atMs / ONE_MINUTE) + soonest) * ONE_MINUTE;
}

/** The minute of the UTC day at which a lock sends its Period Ping: a hash of its MAC (FNV-1a), to spread a fleet. */
export function periodMinuteOf(mac: Mac): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < mac.length; index++) {
    hash = Math.imul(hash ^ mac.charCodeAt(index), 0x01000193) >>> 0;
  }
  // For such short and similar texts the low bits of FNV-1a are spread worst, so higher bits are mixed into them.
  return ((hash ^ (hash >>> 15)) >>> 0) % MINUTES_OF_DAY;
}

/** When a minute of the UTC day comes next: at `fromMs` or later, but not before `notBeforeMs`. Ms since the epoch. */
export function nextPeriodMs(periodMinute: number, fromMs: number, notBeforeMs: number): number {
  const today = Math.floor(fromMs / ONE_DAY) * ONE_DAY + periodMinute * ONE_MINUTE;
  return Math.max(today >= fromMs ? today : today + ONE_DAY, notBeforeMs);
}

/** The row of a trigger; undefined if the model has no such trigger. */
export function triggerRow(model: PowerModel, trigger: TriggerName): TriggerRow | undefined {
  const { triggers } = tablesOf(model);
  for (let index = 0; index < triggers.length; index++) {
    const row = triggers[index];
    if (row?.trigger === trigger) return row;
  }
  return undefined;
}

/** The remainder in [0, modulus) for integers: exact, and many times as fast as `%` on doubles. */
function positiveModulo(value: number, modulus: number): number {
  return value - Math.floor(value / modulus) * modulus;
}
