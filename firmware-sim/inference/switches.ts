/**
 * Infers changes of the values that each uplink carries: power settings, battery, e-bike, tether, lock state, boot. The
 * trace does not contain the time of a change. If the change made the lock send an uplink, the change happened when the
 * uplink was made. Otherwise it is assumed to have happened just before the first uplink that shows it, which
 * contradicts no other uplink. A lock is *silent* in states in which it sends nothing but thefts. Pure.
 */

import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, isSilent } from '../../proto/power/step/reading.js';
import type { Command, LockState, Ping, PowerChange, PowerSettings } from '../../proto/wire/ping.js';
import type { InitialState, WorldChange } from '../world/world.js';
import { type InferredEvent, isNear, LAST_RANK, TOLERANCE_MS } from './inferred-event.js';
import type { LockTrace, TracedConnection, TracedUplink } from './lock-trace.js';

const { theftAfterMotion, refreshEvery } = POWER_MODEL.timings;

/** What becomes of the trace's commands: they are sent again, or their effects become changes made at the lock. */
export type CommandReplay = 'sent' | 'done-by-hand';

/** What is known of a lock after the last uplink. */
interface KnownState {
  power: PowerSettings;
  batteryPercent: number;
  /** Null if the lock reports no e-bike. */
  ebikeVolts: number | null;
  tetherState: InitialState['tetherState'];
  lockState: LockState;
  boot: number;
  /** When the last uplink was made. */
  madeMs: number;
  /** Since when the lock has not been silent. */
  notSilentSinceMs: number;
  /** When the lock made the last cellular ping of a theft. */
  lastTheftPingMs: number;
}

/** Whether a lock with these settings and this battery is silent, except for thefts. */
export function isSilentWith(power: PowerSettings, batteryPercent: number): boolean {
  return isSilent(effectiveRow(POWER_MODEL, power, batteryPercent));
}

/** Infers all changes except those of motion, sky and coverage. */
export function inferSwitches(
  trace: LockTrace,
  initialState: InitialState,
  commandReplay: CommandReplay,
): InferredEvent[] {
  return new SwitchInference(trace, initialState, commandReplay).events();
}

class SwitchInference {
  readonly #trace: LockTrace;
  readonly #commands: ReadonlyMap<number, Command>;
  readonly #known: KnownState;
  readonly #events: InferredEvent[] = [];
  /** How many resets by command no ping has reported yet. */
  #commandedResets = 0;

  constructor(trace: LockTrace, initialState: InitialState, commandReplay: CommandReplay) {
    this.#trace = trace;
    const commands = commandReplay === 'sent' ? trace.commands : [];
    this.#commands = new Map(commands.map(({ id, command }) => [id, command]));
    const boot = trace.uplinks[0]?.uplink.boot ?? 0;
    const { power, batteryPercent, ebikeVolts, tetherState, lockState } = initialState;
    const never = Number.NEGATIVE_INFINITY;
    this.#known = {
      power,
      batteryPercent,
      ebikeVolts,
      tetherState,
      lockState,
      boot,
      madeMs: never,
      notSilentSinceMs: never,
      lastTheftPingMs: never,
    };
  }

  events(): InferredEvent[] {
    for (const traced of this.#trace.uplinks) this.#addUplink(traced);
    return this.#events;
  }

  #addUplink(traced: TracedUplink): void {
    const { uplink, madeMs } = traced;
    const known = this.#known;
    if (uplink.boot > known.boot) {
      this.#add(this.#bootMs(traced), { type: 'boot' });
      known.boot = uplink.boot;
    }
    if (uplink.body.kind === 'ack') {
      const command = this.#commands.get(uplink.body.commandId);
      if (uplink.body.result === 'ok' && command?.type === 'set-power') known.power = uplink.power;
      if (uplink.body.result === 'ok' && command?.type === 'reset') this.#commandedResets += 1;
      this.#inferPower(traced, uplink.power, known.batteryPercent);
    } else this.#inferFromPing(traced, uplink.body);
    known.madeMs = madeMs;
  }

  #inferFromPing(traced: TracedUplink, ping: Ping): void {
    const known = this.#known;
    const beforeMs = this.#justBefore(traced);
    this.#inferPower(traced, traced.uplink.power, ping.batteryPercent);
    if (ping.kind !== 'close_connection') {
      if (ping.ebikeVolts !== known.ebikeVolts) this.#add(beforeMs, { type: 'ebike', volts: ping.ebikeVolts });
      if (ping.tetherState !== known.tetherState)
        this.#add(beforeMs, { type: 'tether', tetherState: ping.tetherState });
      known.ebikeVolts = ping.ebikeVolts;
      known.tetherState = ping.tetherState;
    }
    if (ping.reason === 'REASON_RESET') this.#inferReset(traced);
    const isStatePing = ping.kind === 'cellular' && ping.reason === 'REASON_STATE_PING';
    if (ping.lockState !== 'unknown') this.#inferLockState(traced, ping.lockState, isStatePing);
    if (isTheft(ping)) known.lastTheftPingMs = traced.madeMs;
  }

  /** Infers changes of settings and battery, which together decide whether the lock is silent. */
  #inferPower(traced: TracedUplink, power: PowerSettings, batteryPercent: number): void {
    const known = this.#known;
    const change = changeFrom(known.power, power);
    if (change === null && batteryPercent === known.batteryPercent) return;
    const wasSilent = isSilentWith(known.power, known.batteryPercent);
    const isNowSilent = isSilentWith(power, batteryPercent);
    const atMs = this.#powerChangeMs(traced, change !== null, wasSilent, isNowSilent);
    if (batteryPercent !== known.batteryPercent) this.#add(atMs, { type: 'battery', percent: batteryPercent });
    if (change !== null) this.#add(atMs, { type: 'settings', change });
    if (wasSilent && !isNowSilent) known.notSilentSinceMs = atMs;
    known.power = power;
    known.batteryPercent = batteryPercent;
  }

  /**
   * The time of a change of settings or battery. A lock that falls silent sends its close-connection ping, or during a
   * theft the theft's ping, at that moment. A change that requires a connection makes the lock connect at once.
   *
   * @param hasNewSettings whether settings changed, not only the battery
   */
  #powerChangeMs(traced: TracedUplink, hasNewSettings: boolean, wasSilent: boolean, isNowSilent: boolean): number {
    const { madeMs, connectedMs } = traced;
    const { body } = traced.uplink;
    const { madeMs: lastMs, lastTheftPingMs } = this.#known;
    // A theft that was already going on reports the new state with a cellular ping.
    const isInTheft = body.kind !== 'ack' && isTheft(body) && madeMs <= lastTheftPingMs + refreshEvery + TOLERANCE_MS;
    if (isNowSilent && !wasSilent && (body.kind === 'close_connection' || isInTheft)) return madeMs;
    if (connectedMs === null || connectedMs <= lastMs) return this.#justBefore(traced);
    const isSilenceOver = wasSilent && !isNowSilent;
    const causedConnection =
      (opensKeptConnection(traced) && (isSilenceOver || hasNewSettings)) || (isSilenceOver && connectedMs < madeMs);
    return causedConnection ? connectedMs : this.#justBefore(traced);
  }

  /**
   * A reported change has its own ping and happened at that ping. An unreported change happened while the lock was
   * silent. If a reported change is no change from the known state, an unreported one happened before.
   */
  #inferLockState(traced: TracedUplink, lockState: 'locked' | 'unlocked', isReported: boolean): void {
    const known = this.#known;
    const { madeMs } = traced;
    const beforeMs = this.#justBefore(traced);
    // The last moment at which an unreported change can have happened.
    const lastSilentMs = Math.min(known.notSilentSinceMs, beforeMs) - 1;
    if (isReported) {
      if (lockState === known.lockState && lastSilentMs > known.madeMs)
        this.#add(lastSilentMs, { type: 'lock-state', lockState: lockState === 'locked' ? 'unlocked' : 'locked' });
      this.#add(madeMs, { type: 'lock-state', lockState });
    } else if (lockState !== known.lockState) {
      const changedMs = Math.max(lastSilentMs > known.madeMs ? lastSilentMs : beforeMs - 1, known.madeMs);
      this.#add(changedMs, { type: 'lock-state', lockState });
    }
    known.lockState = lockState;
  }

  /**
   * Infers a modem restart from its ping, unless a command caused it. The restart happened when the connection of the
   * ping started, or before that if the lock had been silent until then.
   */
  #inferReset({ connectedMs, madeMs }: TracedUplink): void {
    if (this.#commandedResets > 0) {
      this.#commandedResets -= 1;
      return;
    }
    const startedMs = connectedMs ?? madeMs;
    this.#add(startedMs === this.#known.notSilentSinceMs ? startedMs - 1 : startedMs, { type: 'modem-reset' });
  }

  /**
   * The time of a boot. A boot breaks the connection, and the lock reconnects. If it reconnected only later, it may
   * have booted when it connected. A boot that broke no connection is assumed just before the next uplink.
   */
  #bootMs(traced: TracedUplink): number {
    const { madeMs, connectedMs } = traced;
    const { madeMs: lastMs } = this.#known;
    const connection = this.#trace.connections.find(
      (each) => each.endedMs > lastMs && each.endedMs <= madeMs && wasBroken(each),
    );
    if (connection === undefined) return this.#justBefore(traced);
    const isLater = connectedMs !== null && connectedMs > connection.endedMs + TOLERANCE_MS;
    return isLater && madeMs === connectedMs && opensKeptConnection(traced) ? connectedMs : connection.endedMs;
  }

  /** The time just before an uplink, for changes that did not cause it. For a theft: just before its motion started. */
  #justBefore({ madeMs, uplink: { body } }: TracedUplink): number {
    const { madeMs: lastMs, lastTheftPingMs } = this.#known;
    const startsTheft = body.kind !== 'ack' && isTheft(body) && !isNear(madeMs, lastTheftPingMs + refreshEvery);
    // A theft's ping is made theftAfterMotion + 1 after the motion started, and the change is 1 ms before the motion.
    const sinceChangeMs = startsTheft ? theftAfterMotion + 2 : 0;
    return Math.max(madeMs - sinceChangeMs - 1, lastMs);
  }

  /** Adds an event. At the moment of the previous uplink it comes after the event that caused that uplink. */
  #add(atMs: number, change: WorldChange): void {
    this.#events.push({ atMs, change, ...(atMs === this.#known.madeMs && { rank: LAST_RANK }) });
  }
}

function isTheft(ping: Ping): boolean {
  return ping.kind === 'cellular' && ping.reason === 'REASON_THEFT' && ping.lockState !== 'unlocked';
}

/** The reasons of the first ping on a connection that only the settings require. */
const KEPT_CONNECTION_REASONS: ReadonlySet<string> = new Set(['REASON_NETWORK_PING', 'REASON_RESET']);

function opensKeptConnection({ uplink: { body } }: TracedUplink): boolean {
  return body.kind === 'cellular' && KEPT_CONNECTION_REASONS.has(body.reason);
}

/** Whether a connection ended without being closed by the lock. */
export function wasBroken({ cause }: TracedConnection): boolean {
  return cause !== null && cause !== 'closed';
}

/** The settings that differ; null if none does. */
function changeFrom(before: PowerSettings, after: PowerSettings): Omit<PowerChange, 'highWindow'> | null {
  const change = {
    ...(after.mode !== before.mode && { mode: after.mode }),
    ...(after.rideTracking !== before.rideTracking && { rideTracking: after.rideTracking }),
    ...(after.airplane !== before.airplane && { airplane: after.airplane }),
    ...(after.recovery !== before.recovery && { recovery: after.recovery }),
  };
  return Object.keys(change).length === 0 ? null : change;
}
