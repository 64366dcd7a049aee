/**
 * From a trace to a lock: a recorded trace becomes a simulated lock, so that a problem in the field becomes a test.
 *
 * What must have happened around each lock is made out from what it said: settings and battery (switches.ts), when
 * it moved (motion.ts), where GPS could not see (sky.ts) and the network did not reach (inference/coverage.ts).
 * A trace with `world` events tells it itself, and is believed. A healthy lock in that world makes the pings of the
 * trace; where the trace is of a lock that misbehaves, the difference is the bug.
 */

import { Hours, Minutes } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, NEVER, nextPeriodMs, periodMinuteOf } from '../../proto/power/step/reading.js';
import type { LockFlash } from '../../proto/power/step/state.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { GpsPing, LockState, PingUplink } from '../../proto/wire/ping.js';
import { DEFAULT_POWER, isPingUplink } from '../../proto/wire/ping.js';
import type { World, WorldBeginning } from '../world/world.js';
import { inferCoverage } from './coverage.js';
import { type InferredEvent, inOrder } from './inferred-event.js';
import { inferMotion } from './motion.js';
import { inferSky } from './sky.js';
import { type CommandsAre, inferSwitches, isSilentWith } from './switches.js';
import type { Heard, HeardCommand, LockRecord, TraceRecord } from './trace-records.js';
import { type PathPoint, TracedWorld } from './traced-world.js';

/** A lock to be made: who it is, what it begins with and what happens to it. */
export interface TracedLock {
  readonly mac: Mac;
  readonly firmwareVersion: string;
  readonly flash: LockFlash;
  readonly world: World;
  /** The minute of the UTC day of its Period Ping. */
  readonly periodMinute: number;
  /** When it gets power, ms since the epoch. */
  readonly startMs: number;
  /** When it connected in the trace: the dice of its retries fall that way again. */
  readonly connectsMs: readonly number[];
  /** What it is sent. */
  readonly commands: readonly HeardCommand[];
  /** Its pings in the trace, in the order in which they were made, phones' left out. */
  readonly pings: readonly PingUplink[];
}

export interface TracedOptions {
  /** `sent` where whoever runs the locks sends the trace's commands again, at their time. */
  readonly commandsAre: CommandsAre;
  /** By how much all times are moved, ms. */
  readonly movedBy?: number;
}

const SOME_FIRMWARE = '2.4.1';
const DAY_MINUTES = 1440;
/** A lock of which nothing is heard for longer than a Period Ping can take has been silent from the start. */
const SILENT_FOR = POWER_MODEL.bounds.periodOverdueAfter;
/** Of a lock that was silent from the start. */
const LOW_PERCENT = 5;

/** Makes out the locks of a trace. */
export function locksFromTrace(trace: TraceRecord, options: TracedOptions): TracedLock[] {
  return trace.locks.map((record) => lockFrom(record, trace, options));
}

function lockFrom(record: LockRecord, trace: TraceRecord, options: TracedOptions): TracedLock {
  const { commandsAre, movedBy = 0 } = options;
  const isTold = record.truths.some(({ changes }) => changes.length > 0);
  const periodMinute = periodMinuteIn(record);
  const beginning = beginningOf(record, trace, periodMinute, isTold);
  const clues = isTold ? toldClues(record) : foundClues(record, beginning, trace, commandsAre);
  const events = clues.map(({ atMs, change }) => ({ atMs: Math.max(atMs, trace.fromMs) + movedBy, change }));
  const path = pathOf(record, clues).map((point) => ({ ...point, atMs: point.atMs + movedBy }));
  return {
    mac: record.mac,
    firmwareVersion: firmwareOf(record),
    flash: flashOf(record, beginning, movedBy),
    world: new TracedWorld(beginning, events, path, cellsOf(record, movedBy)),
    periodMinute: modulo(periodMinute + Math.round(movedBy / Minutes(1)), DAY_MINUTES),
    startMs: startOf(record, trace) + movedBy,
    connectsMs: connectsOf(record, clues, movedBy),
    commands: commandsAre === 'sent' ? record.commands.map((one) => ({ ...one, atMs: one.atMs + movedBy })) : [],
    pings: pingsOf(record).map(({ uplink }) => uplink as PingUplink),
  };
}

/**
 * The truth, but that it got power, which a lock tells by itself. A battery that is drained at the moment of a command
 * is so by what the command asked for: it must not come before.
 */
function toldClues({ truths, commands }: LockRecord): InferredEvent[] {
  const commandsMs = new Set(commands.map(({ atMs }) => atMs));
  let hasPower = false;
  const clues = truths.flatMap(({ atMs, changes }) => {
    return changes.flatMap((change): InferredEvent[] => {
      if (change.type === 'boot' && !hasPower) {
        hasPower = true;
        return [];
      }
      const isDrained = change.type === 'battery' && commandsMs.has(atMs);
      return [{ atMs: isDrained ? atMs + 1 : atMs, change }];
    });
  });
  return clues.sort((one, other) => one.atMs - other.atMs);
}

function foundClues(
  record: LockRecord,
  beginning: WorldBeginning,
  trace: TraceRecord,
  commandsAre: CommandsAre,
): readonly InferredEvent[] {
  const switches = inferSwitches(record, beginning, commandsAre);
  const motion = inferMotion(record, trace.untilMs);
  const sky = inferSky(record, motion, trace.untilMs);
  return inOrder([...switches, ...motion.clues, ...sky, ...inferCoverage(record, switches)]);
}

function pingsOf({ uplinks }: LockRecord): Heard[] {
  return uplinks.filter(({ uplink }) => isPingUplink(uplink));
}

/**
 * When the lock connected. What is new makes it connect at once, whatever it waited for, and so does a restart: its own
 * next try was to come later than that.
 */
function connectsOf({ links, uplinks }: LockRecord, clues: readonly InferredEvent[], movedBy: number): number[] {
  const restarts = clues.filter(({ change: { type } }) => type === 'boot' || type === 'modem-reset');
  const news = new Set([...uplinks.filter(isNews).map(({ madeMs }) => madeMs), ...restarts.map(({ atMs }) => atMs)]);
  return links.map(({ connectedMs }) => connectedMs + (news.has(connectedMs) ? 1 : 0) + movedBy);
}

function isNews({ uplink: { body } }: Heard): boolean {
  // A close that a connection is made for is a farewell.
  if (body.kind === 'close_connection') return true;
  return body.kind === 'cellular' && body.reason !== 'REASON_NETWORK_PING' && body.reason !== 'REASON_RESET';
}

/** How the lock was before all that is known to have happened. */
function beginningOf(record: LockRecord, trace: TraceRecord, minute: number, isTold: boolean): WorldBeginning {
  const power = record.named?.power ?? record.uplinks[0]?.uplink.power ?? DEFAULT_POWER;
  const first = pingsOf(record)[0]?.uplink as PingUplink | undefined;
  const sensed = first === undefined || first.body.kind === 'close_connection' ? undefined : first.body;
  const silent = !(isTold && first !== undefined) && isSilentAtFirst(record, trace, minute, power);
  const told = toldBattery(record, first);
  return {
    lockState: lockStateOf(record),
    batteryPercent: told ?? (silent ? LOW_PERCENT : batteryOf(first, power)),
    power,
    ebikeVolts: sensed?.ebikeVolts ?? null,
    tetherState: sensed?.tetherState ?? 'detached',
    covered: true,
    skyOpen: true,
  };
}

/**
 * What the battery was before the first that is told of it; null where a ping is known from before, or from when it
 * fell silent. The gauge goes a percent at a time.
 */
function toldBattery({ truths }: LockRecord, first: PingUplink | undefined): number | null {
  const [told, next] = truths.flatMap(({ atMs, changes }) => {
    return changes.flatMap((change) => (change.type === 'battery' ? [{ atMs, percent: change.percent }] : []));
  });
  if (told === undefined || (first !== undefined && isLowFarewell(first))) return null;
  if (first !== undefined && first.timeMs < told.atMs) return null;
  const rises = next !== undefined && next.percent > told.percent;
  return clampedPercent(told.percent + (rises ? -1 : 1));
}

/** A farewell for a low battery tells that it was not low before. */
function batteryOf(first: PingUplink | undefined, power: WorldBeginning['power']): number {
  const percent = first?.body.batteryPercent ?? 100;
  const isWhy = first !== undefined && isLowFarewell(first) && !isSilentWith(power, 100);
  return isWhy ? Math.max(percent, 10) : percent;
}

function isLowFarewell({ body, power }: PingUplink): boolean {
  return body.kind === 'close_connection' && !power.airplane && isSilentWith(power, body.batteryPercent);
}

/**
 * Whether the lock says nothing at first, because its battery is low: its shackle is known to have moved unheard,
 * nothing is heard for a day, or its own minute passes and it makes Period Pings only later. Who never makes any may
 * have forgotten how, and is not excused.
 */
function isSilentAtFirst(
  record: LockRecord,
  { fromMs, untilMs }: TraceRecord,
  minute: number,
  power: WorldBeginning['power'],
): boolean {
  const first = pingsOf(record)[0]?.madeMs ?? untilMs;
  if (isSilentWith(power, 100)) return false;
  const moved = record.truths.find(({ changes }) => changes.some(({ type }) => type === 'lock-state'));
  if (moved !== undefined && moved.atMs < first) return true;
  if (record.uplinks.length === 0) return untilMs - fromMs > SILENT_FOR;
  const notBeforeMs = record.named?.lastPeriodMs ? record.named.lastPeriodMs + Hours(23) : fromMs;
  const dueMs = nextPeriodMs(minute, fromMs, notBeforeMs);
  return first > dueMs + Minutes(1) && pingsOf(record).some(isPeriod);
}

function isPeriod({ uplink }: Heard): boolean {
  return uplink.body.kind === 'cellular' && uplink.body.reason === 'REASON_PERIOD_TRACKING';
}

function lockStateOf({ named, uplinks, truths }: LockRecord): Exclude<LockState, 'unknown'> {
  if (named !== undefined && named.lockState !== 'unknown') return named.lockState;
  const told = truths.flatMap(({ changes }) => changes).find((change) => change.type === 'lock-state');
  const first = uplinks.find(({ uplink: { body } }) => body.kind !== 'ack' && body.lockState !== 'unknown');
  const body = first?.uplink.body;
  if (body === undefined || body.kind === 'ack' || body.lockState === 'unknown')
    return told?.type === 'lock-state' && told.lockState === 'locked' ? 'unlocked' : 'locked';
  const changed = body.kind === 'cellular' && body.reason === 'REASON_STATE_PING';
  if (!changed) return body.lockState;
  return body.lockState === 'locked' ? 'unlocked' : 'locked';
}

/** A lock's own minute, as its Period Pings have it; by its MAC where it made none. */
function periodMinuteIn(record: LockRecord): number {
  const minutes = new Map<number, number>();
  for (const heard of record.uplinks.filter(isPeriod)) {
    const minute = modulo(Math.floor(heard.uplink.timeMs / Minutes(1)), DAY_MINUTES);
    minutes.set(minute, (minutes.get(minute) ?? 0) + 1);
  }
  const [most] = [...minutes].toSorted(([, one], [, other]) => other - one);
  return most?.[0] ?? periodMinuteOf(record.mac);
}

function firmwareOf({ uplinks }: LockRecord): string {
  for (const { uplink } of uplinks) if (uplink.body.kind === 'cellular') return uplink.body.firmwareVersion;
  return SOME_FIRMWARE;
}

/** What stands in the flash of a lock that was there before the trace. */
function flashOf({ named, uplinks }: LockRecord, beginning: WorldBeginning, movedBy: number): LockFlash {
  const { power, batteryPercent, lockState } = beginning;
  const lastPeriodMs = named?.lastPeriodMs ?? null;
  return {
    boot: Math.max(0, (uplinks[0]?.uplink.boot ?? 1) - 1),
    power,
    highWindow: named?.highWindow ?? POWER_MODEL.highWindow,
    lockState,
    stateName: effectiveRow(POWER_MODEL, power, batteryPercent).state,
    lastPeriodMs: lastPeriodMs === null ? NEVER : lastPeriodMs + movedBy,
    waiting: [],
    finished: [],
    toldLockState: lockState,
    toldInSilence: false,
    airplaneTold: false,
  };
}

/** With the trace; a lock that is first heard because its connection is kept gets power just then. */
function startOf({ uplinks, truths }: LockRecord, { fromMs }: TraceRecord): number {
  const powered = truths.find(({ changes }) => changes.some(({ type }) => type === 'boot'));
  if (powered !== undefined) return powered.atMs;
  const first = uplinks[0];
  const isKept = first?.uplink.body.kind === 'cellular' && first.uplink.body.reason === 'REASON_NETWORK_PING';
  return isKept ? (first?.madeMs ?? fromMs) : fromMs;
}

/**
 * The places of GPS pings and of the truth: where both tell of one moment GPS reads again what it read, with its error.
 * A lock that stands stays where it was until it moves.
 */
function pathOf({ uplinks, truths }: LockRecord, clues: readonly InferredEvent[]): PathPoint[] {
  const points: PathPoint[] = [];
  for (const { uplink, madeMs } of uplinks) {
    const { body } = uplink;
    if (body.kind !== 'gps' || !isOnEarth(body)) continue;
    const { position, speedMetersPerSecond, directionDegrees } = body;
    points.push({ atMs: madeMs, fix: { position, speedMetersPerSecond, directionDegrees } });
  }
  const read = new Map(points.map((point, index) => [point.atMs, index]));
  for (const { atMs, fix: truth } of truths) {
    if (truth === null) continue;
    const index = read.get(atMs);
    if (index === undefined) points.push({ atMs, fix: truth });
    else points[index] = { ...(points[index] as PathPoint), truth };
  }
  points.sort((one, other) => one.atMs - other.atMs);
  const stays: PathPoint[] = [];
  let next = 0;
  for (const { atMs, change } of clues) {
    if (change.type !== 'motion' || !change.moving) continue;
    while (next < points.length && (points[next] as PathPoint).atMs < atMs) next += 1;
    const last = points[next - 1];
    if (last !== undefined) stays.push({ atMs: atMs - 1, fix: { ...last.fix, speedMetersPerSecond: 0 } });
  }
  return [...points, ...stays].sort((one, other) => one.atMs - other.atMs);
}

/** A broken receiver's place is none. */
function isOnEarth({ position, directionDegrees, speedMetersPerSecond }: GpsPing): boolean {
  const { latitudeDegrees, longitudeDegrees } = position;
  const isPlace = Math.abs(latitudeDegrees) <= 90 && Math.abs(longitudeDegrees) <= 180;
  return isPlace && directionDegrees >= 0 && directionDegrees < 360 && speedMetersPerSecond >= 0;
}

function cellsOf({ uplinks }: LockRecord, movedBy: number) {
  return uplinks.flatMap(({ uplink: { body }, madeMs }) => {
    return body.kind === 'cellular' && body.position !== null
      ? [{ atMs: madeMs + movedBy, position: body.position }]
      : [];
  });
}

function clampedPercent(percent: number): number {
  return Math.min(Math.max(percent, 0), 100);
}

function modulo(value: number, modulus: number): number {
  return ((value % modulus) + modulus) % modulus;
}
