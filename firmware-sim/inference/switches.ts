/**
 * What uplinks carry (power settings, battery, e-bike, tether, lock state, boot) made into what must have changed since
 * the uplink before. When it changed is not told: it is taken to be just before the uplink that told it, which no other
 * uplink contradicts, and at its very moment where the change is what made the lock speak.
 */

import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, isSilent } from '../../proto/power/step/reading.js';
import type { Command, LockState, Ping, PowerChange, PowerSettings } from '../../proto/wire/ping.js';
import type { WorldBeginning, WorldChange } from '../world/world.js';
import { type InferredEvent, isNear, LATE, TOLERANCE } from './inferred-event.js';
import type { Heard, HeardLink, LockRecord } from './trace-records.js';

const { theftAfterMotion, refreshEvery } = POWER_MODEL.timings;

/** Whether commands will be sent again as they were, or what they did is to be done by hand. */
export type CommandsAre = 'sent' | 'done-by-hand';

/** What a lock is known to be after each uplink. */
interface Known {
  power: PowerSettings;
  batteryPercent: number;
  ebikeVolts: number | null;
  tetherState: WorldBeginning['tetherState'];
  lockState: LockState;
  boot: number;
  madeMs: number;
  /** Since when the lock is not silent. */
  loudSinceMs: number;
  /** When a theft last made its cellular ping. */
  theftMs: number;
}

/** Whether a lock is silent but for a theft, with these settings and this battery. */
export function isSilentWith(power: PowerSettings, batteryPercent: number): boolean {
  return isSilent(effectiveRow(POWER_MODEL, power, batteryPercent));
}

/** All changes but those of motion, sky and coverage. */
export function inferSwitches(
  record: LockRecord,
  beginning: WorldBeginning,
  commandsAre: CommandsAre,
): InferredEvent[] {
  return new SwitchClues(record, beginning, commandsAre).clues();
}

class SwitchClues {
  readonly #record: LockRecord;
  readonly #commands: ReadonlyMap<number, Command>;
  readonly #known: Known;
  readonly #clues: InferredEvent[] = [];
  /** Resets that were asked for by command and have not been reported. */
  #resetsAsked = 0;

  constructor(record: LockRecord, beginning: WorldBeginning, commandsAre: CommandsAre) {
    this.#record = record;
    const commands = commandsAre === 'sent' ? record.commands : [];
    this.#commands = new Map(commands.map(({ id, command }) => [id, command]));
    const boot = record.uplinks[0]?.uplink.boot ?? 0;
    const { power, batteryPercent, ebikeVolts, tetherState, lockState } = beginning;
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

  clues(): InferredEvent[] {
    for (const heard of this.#record.uplinks) this.#take(heard);
    return this.#clues;
  }

  #take(heard: Heard): void {
    const { uplink, madeMs } = heard;
    const known = this.#known;
    if (uplink.boot > known.boot) {
      this.#add(this.#bootedMs(heard), { type: 'boot' });
      known.boot = uplink.boot;
    }
    if (uplink.body.kind === 'ack') {
      const command = this.#commands.get(uplink.body.commandId);
      if (uplink.body.result === 'ok' && command?.type === 'set-power') known.power = uplink.power;
      if (uplink.body.result === 'ok' && command?.type === 'reset') this.#resetsAsked += 1;
      this.#takePower(heard, uplink.power, known.batteryPercent);
    } else this.#takePing(heard, uplink.body);
    known.madeMs = madeMs;
  }

  #takePing(heard: Heard, ping: Ping): void {
    const known = this.#known;
    const beforeMs = this.#justBefore(heard);
    this.#takePower(heard, heard.uplink.power, ping.batteryPercent);
    if (ping.kind !== 'close_connection') {
      if (ping.ebikeVolts !== known.ebikeVolts) this.#add(beforeMs, { type: 'ebike', volts: ping.ebikeVolts });
      if (ping.tetherState !== known.tetherState)
        this.#add(beforeMs, { type: 'tether', tetherState: ping.tetherState });
      known.ebikeVolts = ping.ebikeVolts;
      known.tetherState = ping.tetherState;
    }
    if (ping.reason === 'REASON_RESET') this.#takeReset(heard);
    const isState = ping.kind === 'cellular' && ping.reason === 'REASON_STATE_PING';
    if (ping.lockState !== 'unknown') this.#takeLockState(heard, ping.lockState, isState);
    if (isTheft(ping)) known.theftMs = heard.madeMs;
  }

  /** Settings and battery together, since together they say whether the lock is silent. */
  #takePower(heard: Heard, power: PowerSettings, batteryPercent: number): void {
    const known = this.#known;
    const change = changeFrom(known.power, power);
    if (change === null && batteryPercent === known.batteryPercent) return;
    const wasSilent = isSilentWith(known.power, known.batteryPercent);
    const silent = isSilentWith(power, batteryPercent);
    const atMs = this.#changedMs(heard, change !== null, wasSilent, silent);
    if (batteryPercent !== known.batteryPercent) this.#add(atMs, { type: 'battery', percent: batteryPercent });
    if (change !== null) this.#add(atMs, { type: 'settings', change });
    if (wasSilent && !silent) known.loudSinceMs = atMs;
    known.power = power;
    known.batteryPercent = batteryPercent;
  }

  /**
   * A lock says farewell the moment that it falls silent, or while a theft goes on makes that one's ping; and what
   * keeps a connection makes it the moment it may.
   */
  #changedMs(heard: Heard, isSet: boolean, wasSilent: boolean, silent: boolean): number {
    const { madeMs, connectedMs } = heard;
    const { body } = heard.uplink;
    const { madeMs: lastMs, theftMs } = this.#known;
    const isInTheft = body.kind !== 'ack' && isTheft(body) && madeMs <= theftMs + refreshEvery + TOLERANCE;
    if (silent && !wasSilent && (body.kind === 'close_connection' || isInTheft)) return madeMs;
    if (connectedMs === null || connectedMs <= lastMs) return this.#justBefore(heard);
    const isFirst = isFirstOfKept(heard);
    const awoke = wasSilent && !silent;
    return (isFirst && (awoke || isSet)) || (awoke && connectedMs < madeMs) ? connectedMs : this.#justBefore(heard);
  }

  /**
   * A change that has its ping happened with it. One without was made while the lock was silent; and so was one that
   * must lie between two pings of the same state.
   */
  #takeLockState(heard: Heard, lockState: 'locked' | 'unlocked', isTold: boolean): void {
    const known = this.#known;
    const { madeMs } = heard;
    const beforeMs = this.#justBefore(heard);
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
   * The modem restarted by itself, unless it was asked to, and so broke its connection or made one. It connected for
   * nothing while the lock was silent: then it restarted before.
   */
  #takeReset({ connectedMs, madeMs }: Heard): void {
    if (this.#resetsAsked > 0) {
      this.#resetsAsked -= 1;
      return;
    }
    const startedMs = connectedMs ?? madeMs;
    this.#add(startedMs === this.#known.loudSinceMs ? startedMs - 1 : startedMs, { type: 'modem-reset' });
  }

  /**
   * A boot breaks the connection, and the lock makes it again; where it did not it may have booted while the network
   * was away. One that broke none is noticed with the next uplink.
   */
  #bootedMs(heard: Heard): number {
    const { madeMs, connectedMs } = heard;
    const { madeMs: lastMs } = this.#known;
    const link = this.#record.links.find((one) => one.endedMs > lastMs && one.endedMs <= madeMs && wasBroken(one));
    if (link === undefined) return this.#justBefore(heard);
    const isLater = connectedMs !== null && connectedMs > link.endedMs + TOLERANCE;
    return isLater && madeMs === connectedMs && isFirstOfKept(heard) ? connectedMs : link.endedMs;
  }

  /** The last moment of which an uplink need not know: a theft's begins when its motion does. */
  #justBefore({ madeMs, uplink: { body } }: Heard): number {
    const { madeMs: lastMs, theftMs } = this.#known;
    const begins = body.kind !== 'ack' && isTheft(body) && !isNear(madeMs, theftMs + refreshEvery);
    return Math.max(madeMs - (begins ? theftAfterMotion + 2 : 0) - 1, lastMs);
  }

  /** What an uplink tells that is not the first of its moment came after what made the one before. */
  #add(atMs: number, change: WorldChange): void {
    this.#clues.push({ atMs, change, ...(atMs === this.#known.madeMs && { rank: LATE }) });
  }
}

function isTheft(ping: Ping): boolean {
  return ping.kind === 'cellular' && ping.reason === 'REASON_THEFT' && ping.lockState !== 'unlocked';
}

/** What is said first on a connection that nothing but the settings asked for. */
const FIRST_OF_KEPT: ReadonlySet<string> = new Set(['REASON_NETWORK_PING', 'REASON_RESET']);

function isFirstOfKept({ uplink: { body } }: Heard): boolean {
  return body.kind === 'cellular' && FIRST_OF_KEPT.has(body.reason);
}

/** Whether a connection ended without a word of the lock. */
export function wasBroken({ cause }: HeardLink): boolean {
  return cause !== null && cause !== 'closed';
}

/** What of the settings differs; null where nothing does. */
function changeFrom(before: PowerSettings, after: PowerSettings): Omit<PowerChange, 'highWindow'> | null {
  const change = {
    ...(after.mode !== before.mode && { mode: after.mode }),
    ...(after.rideTracking !== before.rideTracking && { rideTracking: after.rideTracking }),
    ...(after.airplane !== before.airplane && { airplane: after.airplane }),
    ...(after.recovery !== before.recovery && { recovery: after.recovery }),
  };
  return Object.keys(change).length === 0 ? null : change;
}
