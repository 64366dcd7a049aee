/**
 * Makes simulated locks from a recorded trace, so that a problem in the field becomes a test.
 *
 * The events around each lock are inferred from its uplinks: settings and battery (switches.ts), motion (motion.ts),
 * GPS reception (sky.ts) and coverage (coverage.ts). If the trace has `world` events of the lock (its *ground truth*,
 * what truly happened), these are used instead. A simulated lock without bugs, in a *world* with these events, makes
 * the pings of the trace. If the traced lock misbehaved, the difference shows the bug. Pure.
 */

import { Minutes } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, NEVER, nextPeriodMs, periodMinuteOf } from '../../proto/power/step/reading.js';
import type { LockFlash } from '../../proto/power/step/state.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { GpsPing, LockState, PingUplink } from '../../proto/wire/ping.js';
import { DEFAULT_POWER, isPingUplink } from '../../proto/wire/ping.js';
import type { InitialState, World } from '../world/world.js';
import { inferCoverage } from './coverage.js';
import { type InferredEvent, sortInferredEvents } from './inferred-event.js';
import type { LockTrace, LockTraces, TracedCommand, TracedUplink } from './lock-trace.js';
import { inferMotion } from './motion.js';
import { inferSky } from './sky.js';
import { type CommandReplay, inferSwitches, isSilentWith } from './switches.js';
import { type PathPoint, TracedWorld } from './traced-world.js';

/** A lock to be simulated: its identity, its first state and its world. */
export interface TracedLock {
  readonly mac: Mac;
  readonly firmwareVersion: string;
  readonly flash: LockFlash;
  readonly world: World;
  /** The minute of the UTC day at which the lock makes its Period Ping, its daily ping. */
  readonly periodMinute: number;
  /** When the lock is switched on, ms since the epoch. */
  readonly startMs: number;
  /** When the lock connected in the trace. The random retries of the simulated lock are made at these times. */
  readonly connectTimesMs: readonly number[];
  /** The commands to send to the lock. */
  readonly commands: readonly TracedCommand[];
  /** The lock's pings in the trace, in the order in which it made them, without the pings of phones. */
  readonly pings: readonly PingUplink[];
}

/** How the locks are to be made. */
export interface TracedOptions {
  /** Whether the caller sends the trace's commands again. Otherwise their effects become events of the world. */
  readonly commandReplay: CommandReplay;
  /** By how much all times are shifted, ms. */
  readonly shiftMs?: number;
}

/** The version of a lock whose trace has no cellular ping, which would report one. Any version would do. */
const DEFAULT_FIRMWARE_VERSION = '2.4.1';
const DAY_MINUTES = 1440;
/** A lock that sends nothing for longer than the longest interval between daily pings was silent from the start. */
const MAX_SILENCE_MS = POWER_MODEL.bounds.periodOverdueAfter;
/** From this level on the battery is not low (protocol.md §2). */
const MIN_NOT_LOW_PERCENT = 10;
/** The assumed battery of a lock that was silent from the start. */
const ASSUMED_LOW_PERCENT = 5;

/** Infers the locks of a trace. */
export function locksFromTrace(traces: LockTraces, options: TracedOptions): TracedLock[] {
  return traces.locks.map((trace) => lockFrom(trace, traces, options));
}

function lockFrom(trace: LockTrace, traces: LockTraces, options: TracedOptions): TracedLock {
  const { commandReplay, shiftMs = 0 } = options;
  const hasGroundTruth = trace.groundTruth.some(({ changes }) => changes.length > 0);
  const periodMinute = periodMinuteIn(trace);
  const initialState = initialStateOf(trace, traces, periodMinute, hasGroundTruth);
  const inferred = hasGroundTruth
    ? groundTruthEvents(trace)
    : inferredEvents(trace, initialState, traces, commandReplay);
  const events = inferred.map(({ atMs, change }) => ({ atMs: Math.max(atMs, traces.fromMs) + shiftMs, change }));
  const path = pathOf(trace, inferred).map((point) => ({ ...point, atMs: point.atMs + shiftMs }));
  return {
    mac: trace.mac,
    firmwareVersion: firmwareOf(trace),
    flash: flashOf(trace, initialState, shiftMs),
    world: new TracedWorld(initialState, events, path, cellPositionsOf(trace, shiftMs)),
    periodMinute: modulo(periodMinute + Math.round(shiftMs / Minutes(1)), DAY_MINUTES),
    startMs: startOf(trace, traces) + shiftMs,
    connectTimesMs: connectTimesOf(trace, inferred, shiftMs),
    commands: commandReplay === 'sent' ? trace.commands.map((sent) => ({ ...sent, atMs: sent.atMs + shiftMs })) : [],
    pings: pingsOf(trace).map(({ uplink }) => uplink as PingUplink),
  };
}

/**
 * The events of the ground truth, without the first boot, which starting the lock causes. A battery change at the
 * moment of a command is taken for the command's effect, since carrying it out costs energy. It is moved to 1 ms later,
 * so that the simulated lock does not get it before the command.
 */
function groundTruthEvents({ groundTruth, commands }: LockTrace): InferredEvent[] {
  const commandsMs = new Set(commands.map(({ atMs }) => atMs));
  let hasBooted = false;
  const inferred = groundTruth.flatMap(({ atMs, changes }) => {
    return changes.flatMap((change): InferredEvent[] => {
      if (change.type === 'boot' && !hasBooted) {
        hasBooted = true;
        return [];
      }
      const isEffectOfCommand = change.type === 'battery' && commandsMs.has(atMs);
      return [{ atMs: isEffectOfCommand ? atMs + 1 : atMs, change }];
    });
  });
  return inferred.sort((a, b) => a.atMs - b.atMs);
}

function inferredEvents(
  trace: LockTrace,
  initialState: InitialState,
  traces: LockTraces,
  commandReplay: CommandReplay,
): readonly InferredEvent[] {
  const switches = inferSwitches(trace, initialState, commandReplay);
  const motion = inferMotion(trace, traces.untilMs);
  const sky = inferSky(trace, motion, traces.untilMs);
  return sortInferredEvents([...switches, ...motion.events, ...sky, ...inferCoverage(trace, switches)]);
}

function pingsOf({ uplinks }: LockTrace): TracedUplink[] {
  return uplinks.filter(({ uplink }) => isPingUplink(uplink));
}

/**
 * When the lock connected, as times for its retries. An event that must be reported, or a restart, makes a lock connect
 * at once, even if it waits for a retry. Such a connection was no retry, so the simulated lock's retry must not come
 * before the event: its time is 1 ms after the connection.
 */
function connectTimesOf(
  { connections, uplinks }: LockTrace,
  inferred: readonly InferredEvent[],
  shiftMs: number,
): number[] {
  const restarts = inferred.filter(({ change: { type } }) => type === 'boot' || type === 'modem-reset');
  const immediateMs = new Set([
    ...uplinks.filter(connectsAtOnce).map(({ madeMs }) => madeMs),
    ...restarts.map(({ atMs }) => atMs),
  ]);
  return connections.map(({ connectedMs }) => connectedMs + (immediateMs.has(connectedMs) ? 1 : 0) + shiftMs);
}

/** Whether the lock connects at once to send this uplink, even if it waits for its next attempt. */
function connectsAtOnce({ uplink: { body } }: TracedUplink): boolean {
  // A lock connects to send a close-connection ping before it falls silent.
  if (body.kind === 'close_connection') return true;
  return body.kind === 'cellular' && body.reason !== 'REASON_NETWORK_PING' && body.reason !== 'REASON_RESET';
}

/** The state of the lock before the first known event. */
function initialStateOf(
  trace: LockTrace,
  traces: LockTraces,
  periodMinute: number,
  hasGroundTruth: boolean,
): InitialState {
  const power = trace.header?.power ?? trace.uplinks[0]?.uplink.power ?? DEFAULT_POWER;
  const first = pingsOf(trace)[0]?.uplink as PingUplink | undefined;
  const firstWithSensors = first === undefined || first.body.kind === 'close_connection' ? undefined : first.body;
  // Ground truth has all changes of the battery, so a low one need not be guessed, unless the lock never sent a ping.
  const mayGuess = !hasGroundTruth || first === undefined;
  const isSilent = mayGuess && isSilentAtFirst(trace, traces, periodMinute, power);
  const trueBatteryPercent = batteryFromGroundTruth(trace, first);
  return {
    lockState: lockStateOf(trace),
    batteryPercent: trueBatteryPercent ?? (isSilent ? ASSUMED_LOW_PERCENT : batteryOf(first, power)),
    power,
    ebikeVolts: firstWithSensors?.ebikeVolts ?? null,
    tetherState: firstWithSensors?.tetherState ?? 'detached',
    // Covered by the cellular network, and by GPS satellites, until inferred events say otherwise.
    covered: true,
    skyOpen: true,
  };
}

/**
 * The battery before its first change in the ground truth. The gauge moves by one percent at a time, so before the
 * change it was one percent higher, or one percent lower if the next change shows that it rises. Null if the ground
 * truth has no such change, or if the first ping says more: it was made before the change, or it announces a low
 * battery ({@link batteryOf}).
 */
function batteryFromGroundTruth({ groundTruth }: LockTrace, first: PingUplink | undefined): number | null {
  const [firstKnown, next] = groundTruth.flatMap(({ atMs, changes }) => {
    return changes.flatMap((change) => (change.type === 'battery' ? [{ atMs, percent: change.percent }] : []));
  });
  if (firstKnown === undefined || (first !== undefined && isLowBatteryClose(first))) return null;
  if (first !== undefined && first.timeMs < firstKnown.atMs) return null;
  const rises = next !== undefined && next.percent > firstKnown.percent;
  return clampedPercent(firstKnown.percent + (rises ? -1 : 1));
}

/** The battery at the start. If the first ping announces a low battery, the battery was not low before that ping. */
function batteryOf(first: PingUplink | undefined, power: InitialState['power']): number {
  const percent = first?.body.batteryPercent ?? 100;
  const wasClosedByLowBattery = first !== undefined && isLowBatteryClose(first) && !isSilentWith(power, 100);
  return wasClosedByLowBattery ? Math.max(percent, MIN_NOT_LOW_PERCENT) : percent;
}

function isLowBatteryClose({ body, power }: PingUplink): boolean {
  return body.kind === 'close_connection' && !power.airplane && isSilentWith(power, body.batteryPercent);
}

/**
 * Whether the lock is silent at the start because its battery is low: its shackle moved without a ping, it sends
 * nothing for a day, or its period minute passes and it makes Period Pings only later. A lock without any Period Ping
 * may have a bug, which must not be explained away.
 */
function isSilentAtFirst(
  trace: LockTrace,
  { fromMs, untilMs }: LockTraces,
  periodMinute: number,
  power: InitialState['power'],
): boolean {
  const firstPingMs = pingsOf(trace)[0]?.madeMs ?? untilMs;
  // With these settings the lock is silent even with a full battery.
  if (isSilentWith(power, 100)) return false;
  const moved = trace.groundTruth.find(({ changes }) => changes.some(({ type }) => type === 'lock-state'));
  if (moved !== undefined && moved.atMs < firstPingMs) return true;
  if (trace.uplinks.length === 0) return untilMs - fromMs > MAX_SILENCE_MS;
  const { periodTooSoonUnder } = POWER_MODEL.bounds;
  const notBeforeMs = trace.header?.lastPeriodMs ? trace.header.lastPeriodMs + periodTooSoonUnder : fromMs;
  const dueMs = nextPeriodMs(periodMinute, fromMs, notBeforeMs);
  // The period minute lasts a minute.
  return firstPingMs > dueMs + Minutes(1) && pingsOf(trace).some(isPeriod);
}

function isPeriod({ uplink }: TracedUplink): boolean {
  return uplink.body.kind === 'cellular' && uplink.body.reason === 'REASON_PERIOD_TRACKING';
}

/**
 * The lock state at the start: the header's; else by the first ping that knows it, which a REASON_STATE_PING reports
 * just after it changed; else the opposite of the first change in the ground truth; else locked.
 */
function lockStateOf({ header, uplinks, groundTruth }: LockTrace): Exclude<LockState, 'unknown'> {
  if (header !== undefined && header.lockState !== 'unknown') return header.lockState;
  const firstChange = groundTruth.flatMap(({ changes }) => changes).find((change) => change.type === 'lock-state');
  const first = uplinks.find(({ uplink: { body } }) => body.kind !== 'ack' && body.lockState !== 'unknown');
  const body = first?.uplink.body;
  if (body === undefined || body.kind === 'ack' || body.lockState === 'unknown')
    return firstChange?.type === 'lock-state' && firstChange.lockState === 'locked' ? 'unlocked' : 'locked';
  const isStateChange = body.kind === 'cellular' && body.reason === 'REASON_STATE_PING';
  if (!isStateChange) return body.lockState;
  return body.lockState === 'locked' ? 'unlocked' : 'locked';
}

/** The lock's period minute: the most frequent one of its Period Pings; without Period Pings, derived from the MAC. */
function periodMinuteIn(trace: LockTrace): number {
  const minutes = new Map<number, number>();
  for (const traced of trace.uplinks.filter(isPeriod)) {
    const periodMinute = modulo(Math.floor(traced.uplink.timeMs / Minutes(1)), DAY_MINUTES);
    minutes.set(periodMinute, (minutes.get(periodMinute) ?? 0) + 1);
  }
  const [mostFrequent] = [...minutes].toSorted(([, countA], [, countB]) => countB - countA);
  return mostFrequent?.[0] ?? periodMinuteOf(trace.mac);
}

function firmwareOf({ uplinks }: LockTrace): string {
  for (const { uplink } of uplinks) if (uplink.body.kind === 'cellular') return uplink.body.firmwareVersion;
  return DEFAULT_FIRMWARE_VERSION;
}

/** The flash (the memory that survives a loss of power) of a lock that was in use before the trace. */
function flashOf({ header, uplinks }: LockTrace, initialState: InitialState, shiftMs: number): LockFlash {
  const { power, batteryPercent, lockState } = initialState;
  const lastPeriodMs = header?.lastPeriodMs ?? null;
  return {
    // Switching the lock on counts one boot more.
    boot: Math.max(0, (uplinks[0]?.uplink.boot ?? 1) - 1),
    power,
    highWindow: header?.highWindow ?? POWER_MODEL.highWindow,
    lockState,
    stateName: effectiveRow(POWER_MODEL, power, batteryPercent).state,
    lastPeriodMs: lastPeriodMs === null ? NEVER : lastPeriodMs + shiftMs,
    // No uplink waits to be sent, and the lock has reported its lock state and no silence. `told`: a ping reported it.
    waiting: [],
    finished: [],
    toldLockState: lockState,
    toldInSilence: false,
    airplaneTold: false,
  };
}

/**
 * When the lock is switched on: at its first boot in the ground truth; else at its first uplink if that is a
 * REASON_NETWORK_PING; else at the start of the trace.
 */
function startOf({ uplinks, groundTruth }: LockTrace, { fromMs }: LockTraces): number {
  const firstBoot = groundTruth.find(({ changes }) => changes.some(({ type }) => type === 'boot'));
  if (firstBoot !== undefined) return firstBoot.atMs;
  const first = uplinks[0];
  // A lock makes a network ping when it connects, and then every 15 min. Switched on at the ping, the simulated lock
  // connects then, and makes its later network pings at the times of the trace.
  const isNetworkPing = first?.uplink.body.kind === 'cellular' && first.uplink.body.reason === 'REASON_NETWORK_PING';
  return isNetworkPing ? (first?.madeMs ?? fromMs) : fromMs;
}

/**
 * The positions of GPS pings and of the ground truth. If both have a position of the same moment, the lock's GPS reads
 * that of the ping, with its error. A lock that stands still stays at its last position until it moves.
 */
function pathOf({ uplinks, groundTruth }: LockTrace, inferred: readonly InferredEvent[]): PathPoint[] {
  const points: PathPoint[] = [];
  for (const { uplink, madeMs } of uplinks) {
    const { body } = uplink;
    if (body.kind !== 'gps' || !isOnEarth(body)) continue;
    const { position, speedMetersPerSecond, directionDegrees } = body;
    points.push({ atMs: madeMs, fix: { position, speedMetersPerSecond, directionDegrees } });
  }
  const readingAt = new Map(points.map((point, index) => [point.atMs, index]));
  for (const { atMs, fix: trueFix } of groundTruth) {
    if (trueFix === null) continue;
    const index = readingAt.get(atMs);
    if (index === undefined) points.push({ atMs, fix: trueFix });
    else points[index] = { ...(points[index] as PathPoint), trueFix };
  }
  points.sort((a, b) => a.atMs - b.atMs);
  const stays: PathPoint[] = [];
  let next = 0;
  for (const { atMs, change } of inferred) {
    if (change.type !== 'motion' || !change.moving) continue;
    while (next < points.length && (points[next] as PathPoint).atMs < atMs) next += 1;
    const last = points[next - 1];
    if (last !== undefined) stays.push({ atMs: atMs - 1, fix: { ...last.fix, speedMetersPerSecond: 0 } });
  }
  return [...points, ...stays].sort((a, b) => a.atMs - b.atMs);
}

/** Whether a GPS ping has possible values. A ping of a broken receiver is ignored. */
function isOnEarth({ position, directionDegrees, speedMetersPerSecond }: GpsPing): boolean {
  const { latitudeDegrees, longitudeDegrees } = position;
  const isPlace = Math.abs(latitudeDegrees) <= 90 && Math.abs(longitudeDegrees) <= 180;
  return isPlace && directionDegrees >= 0 && directionDegrees < 360 && speedMetersPerSecond >= 0;
}

function cellPositionsOf({ uplinks }: LockTrace, shiftMs: number) {
  return uplinks.flatMap(({ uplink: { body }, madeMs }) => {
    return body.kind === 'cellular' && body.position !== null
      ? [{ atMs: madeMs + shiftMs, position: body.position }]
      : [];
  });
}

function clampedPercent(percent: number): number {
  return Math.min(Math.max(percent, 0), 100);
}

function modulo(value: number, modulus: number): number {
  return ((value % modulus) + modulus) % modulus;
}
