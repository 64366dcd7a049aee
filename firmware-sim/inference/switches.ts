/**
 * Infers changes of what each uplink carries (power settings, battery, e-bike, tether, lock state, boot) since the
 * uplink before. The time of a change is not in the trace: it is assumed just before the uplink that shows it, which no
 * other uplink contradicts, or at its very moment where the change made the lock send it.
 */

import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, isSilent } from '../../proto/power/step/reading.js';
import type { Command, LockState, Ping, PowerChange, PowerSettings } from '../../proto/wire/ping.js';
import type { InitialState, WorldChange } from '../world/world.js';
import { type InferredEvent, isNear, LATE, TOLERANCE } from './inferred-event.js';
import type { LockTrace, TracedConnection, TracedUplink } from './lock-trace.js';

const { theftAfterMotion, refreshEvery } = POWER_MODEL.timings;

/** Whether commands are sent again as they were, or their effects are applied by hand. */
export type CommandReplay = 'sent' | 'done-by-hand';

/** The known state of a lock after each uplink. */
interface Known {
  power: PowerSettings;
  batteryPercent: number;
  ebikeVolts: number | null;
  tetherState: InitialState['tetherState'];
  lockState: LockState;
  boot: number;
  madeMs: number;
  /** Since when the lock is not silent. */
  loudSinceMs: number;
  /** When a theft last made its cellular ping. */
  theftMs: number;
}

/** Whether a lock is silent, except for thefts, with these settings and this battery. */
export function isSilentWith(power: PowerSettings, batteryPercent: number): boolean {
  return isSilent(effectiveRow(POWER_MODEL, power, batteryPercent));
}

/** All changes but those of motion, sky and coverage. */
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
  readonly #known: Known;
  readonly #events: InferredEvent[] = [];
  /** Resets that a command has asked for and no ping has reported yet. */
  #resetsAsked = 0;

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
      loudSinceMs: never,
      theftMs: never,
    };
  }

  events(): InferredEvent[] {
    for (const traced of this.#trace.uplinks) this.#take(traced);
    return this.#events;
  }

  #take(traced: TracedUplink): void {
    const { uplink, madeMs } = traced;
    const known = this.#known;
    if (uplink.boot > known.boot) {
      this.#add(this.#bootedMs(traced), { type: 'boot' });
      known.boot = uplink.boot;
    }
    if (uplink.body.kind === 'ack') {
      const command = this.#commands.get(uplink.body.commandId);
      if (uplink.body.result === 'ok' && command?.type === 'set-power') known.power = uplink.power;
      if (uplink.body.result === 'ok' && command?.type === 'reset') this.#resetsAsked += 1;
      this.#takePower(traced, uplink.power, known.batteryPercent);
    } else this.#takePing(traced, uplink.body);
    known.madeMs = madeMs;
  }

  #takePing(traced: TracedUplink, ping: Ping): void {
    const known = this.#known;
    const beforeMs = this.#justBefore(traced);
    this.#takePower(traced, traced.uplink.power, ping.batteryPercent);
    if (ping.kind !== 'close_connection') {
      if (ping.ebikeVolts !== known.ebikeVolts) this.#add(beforeMs, { type: 'ebike', volts: ping.ebikeVolts });
      if (ping.tetherState !== known.tetherState)
        this.#add(beforeMs, { type: 'tether', tetherState: ping.tetherState });
      known.ebikeVolts = ping.ebikeVolts;
      known.tetherState = ping.tetherState;
    }
    if (ping.reason === 'REASON_RESET') this.#takeReset(traced);
    const isState = ping.kind === 'cellular' && ping.reason === 'REASON_STATE_PING';
    if (ping.lockState !== 'unknown') this.#takeLockState(traced, ping.lockState, isState);
    if (isTheft(ping)) known.theftMs = traced.madeMs;
  }

  /** Settings and battery together, since they decide together whether the lock is silent. */
  #takePower(traced: TracedUplink, power: PowerSettings, batteryPercent: number): void {
    const known = this.#known;
    const change = changeFrom(known.power, power);
    if (change === null && batteryPercent === known.batteryPercent) return;
    const wasSilent = isSilentWith(known.power, known.batteryPercent);
    const silent = isSilentWith(power, batteryPercent);
    const atMs = this.#changedMs(traced, change !== null, wasSilent, silent);
    if (batteryPercent !== known.batteryPercent) this.#add(atMs, { type: 'battery', percent: batteryPercent });
    if (change !== null) this.#add(atMs, { type: 'settings', change });
    if (wasSilent && !silent) known.loudSinceMs = atMs;
    known.power = power;
    known.batteryPercent = batteryPercent;
  }

  /**
   * A lock sends its close-connection ping at the moment when it falls silent, or the theft's ping if one is in
   * progress; and what keeps a connection makes the lock connect at once.
   */
  #changedMs(traced: TracedUplink, isSet: boolean, wasSilent: boolean, silent: boolean): number {
    const { madeMs, connectedMs } = traced;
    const { body } = traced.uplink;
    const { madeMs: lastMs, theftMs } = this.#known;
    const isInTheft = body.kind !== 'ack' && isTheft(body) && madeMs <= theftMs + refreshEvery + TOLERANCE;
    if (silent && !wasSilent && (body.kind === 'close_connection' || isInTheft)) return madeMs;
    if (connectedMs === null || connectedMs <= lastMs) return this.#justBefore(traced);
    const isFirst = isFirstOfKept(traced);
    const awoke = wasSilent && !silent;
    return (isFirst && (awoke || isSet)) || (awoke && connectedMs < madeMs) ? connectedMs : this.#justBefore(traced);
  }

  /**
   * A change with a ping of its own happened at that ping. One without was made while the lock was silent, and so was
   * one that must lie between two pings of the same state.
   */
  #takeLockState(traced: TracedUplink, lockState: 'locked' | 'unlocked', isTold: boolean): void {
    const known = this.#known;
    const { madeMs } = traced;
    const beforeMs = this.#justBefore(traced);
    const silentMs = Math.min(known.loudSinceMs, beforeMs) - 1;
    if (isTold) {
      if (lockState === known.lockState && silentMs > known.madeMs)
        this.#add(silentMs, { type: 'lock-state', lockState: lockState === 'locked' ? 'unlocked' : 'locked' });
      this.#add(madeMs, { type: 'lock-state', lockState });
    } else if (lockState !== known.lockState) {
      const changedMs = Math.max(silentMs > known.madeMs ? silentMs : beforeMs - 1, known.madeMs);
      this.#add(changedMs, { type: 'lock-state', lockState });
    }
    known.lockState = lockState;
  }

  /**
   * The modem restarted by itself, unless a command asked for it, and so broke a connection or made one. It did not
   * connect while the lock was silent: then it restarted before.
   */
  #takeReset({ connectedMs, madeMs }: TracedUplink): void {
    if (this.#resetsAsked > 0) {
      this.#resetsAsked -= 1;
      return;
    }
    const startedMs = connectedMs ?? madeMs;
    this.#add(startedMs === this.#known.loudSinceMs ? startedMs - 1 : startedMs, { type: 'modem-reset' });
  }

  /**
   * A boot breaks the connection, and the lock reconnects; where it did not, it may have booted without coverage. A
   * boot that broke no connection shows in the next uplink.
   */
  #bootedMs(traced: TracedUplink): number {
    const { madeMs, connectedMs } = traced;
    const { madeMs: lastMs } = this.#known;
    const connection = this.#trace.connections.find(
      (one) => one.endedMs > lastMs && one.endedMs <= madeMs && wasBroken(one),
    );
    if (connection === undefined) return this.#justBefore(traced);
    const isLater = connectedMs !== null && connectedMs > connection.endedMs + TOLERANCE;
    return isLater && madeMs === connectedMs && isFirstOfKept(traced) ? connectedMs : connection.endedMs;
  }

  /** The last moment that an uplink need not reflect. A theft's uplinks start with its motion. */
  #justBefore({ madeMs, uplink: { body } }: TracedUplink): number {
    const { madeMs: lastMs, theftMs } = this.#known;
    const begins = body.kind !== 'ack' && isTheft(body) && !isNear(madeMs, theftMs + refreshEvery);
    return Math.max(madeMs - (begins ? theftAfterMotion + 2 : 0) - 1, lastMs);
  }

  /** A change that is shown by the second uplink of a moment came after the event that caused the first. */
  #add(atMs: number, change: WorldChange): void {
    this.#events.push({ atMs, change, ...(atMs === this.#known.madeMs && { rank: LATE }) });
  }
}

function isTheft(ping: Ping): boolean {
  return ping.kind === 'cellular' && ping.reason === 'REASON_THEFT' && ping.lockState !== 'unlocked';
}

/** The first reason on a connection that only the settings asked for. */
const FIRST_OF_KEPT: ReadonlySet<string> = new Set(['REASON_NETWORK_PING', 'REASON_RESET']);

function isFirstOfKept({ uplink: { body } }: TracedUplink): boolean {
  return body.kind === 'cellular' && FIRST_OF_KEPT.has(body.reason);
}

/** Whether a connection ended without a close by the lock. */
export function wasBroken({ cause }: TracedConnection): boolean {
  return cause !== null && cause !== 'closed';
}

/** The settings that differ; null where none does. */
function changeFrom(before: PowerSettings, after: PowerSettings): Omit<PowerChange, 'highWindow'> | null {
  const change = {
    ...(after.mode !== before.mode && { mode: after.mode }),
    ...(after.rideTracking !== before.rideTracking && { rideTracking: after.rideTracking }),
    ...(after.airplane !== before.airplane && { airplane: after.airplane }),
    ...(after.recovery !== before.recovery && { recovery: after.recovery }),
  };
  return Object.keys(change).length === 0 ? null : change;
}
