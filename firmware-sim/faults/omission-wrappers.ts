/**
 * Wrappers that give a *healthy* lock, a simulated lock without bugs, a bug of omission-bugs.ts: the lock leaves out or
 * falsifies what it must do. Only omission-bugs.ts uses them. bug-wrappers.ts has the wrappers for the bugs of locks
 * that do what they must not (forbidden-bugs.ts), and what both files build on. All wrappers can be combined.
 *
 * A wrapper turns a step function (proto/power/step/) into a faulty one. A step function changes the lock's state
 * (`Draft`) in place, appends to `effects` what the lock does, and returns when the lock must next wake up. Of the
 * effects, `made` says that the lock made an uplink, which then waits in `state.waiting` until it is acknowledged;
 * `publish` sends a waiting uplink, one at a time (`state.inFlight`).
 */
import { Minutes } from '../../proto/clock.js';
import type { PowerModel, TriggerName, TriggerRow } from '../../proto/power/model.js';
import type { StepEffect, StepInput } from '../../proto/power/step/io.js';
import type { Draft } from '../../proto/power/step/state.js';
import type { CommandAck, Downlink, Ping, Position, Uplink } from '../../proto/wire/ping.js';
import { changePings, changeUplinks, type StepWrapper } from './bug-wrappers.js';

/** A command id as it is read from uninitialised flash: all bits are set. */
const UNINITIALISED_ID = 0xffffffff;
/** How far the clock of `clock-steps-back` goes back: further than the 5 min that the rule `clock-back` tolerates. */
const STEP_BACK_MS = Minutes(6);

/** The model with other reasons for a trigger's pings; null makes none. */
export function changeReasons(
  model: PowerModel,
  trigger: TriggerName,
  change: Partial<Pick<TriggerRow, 'cellularReason' | 'gpsReason'>>,
): PowerModel {
  return { ...model, triggers: model.triggers.map((row) => (row.trigger === trigger ? { ...row, ...change } : row)) };
}

/**
 * Makes an additional uplink after an uplink of the healthy lock.
 *
 * @param bodyAfter the content of the uplink to add after the given one; null to add none
 */
function addUplinks(bodyAfter: (uplink: Uplink, state: Draft) => Ping | CommandAck | null): StepWrapper {
  return (healthy) => (model, state, input, nowMs, effects) => {
    const firstIndex = effects.length;
    const wakeAtMs = healthy(model, state, input, nowMs, effects);
    const endIndex = effects.length;
    for (let index = firstIndex; index < endIndex; index++) {
      const effect = effects[index] as StepEffect;
      const body = effect.type === 'made' ? bodyAfter(effect.uplink, state) : null;
      if (body !== null) addUplink(model, state, effects, nowMs, body);
    }
    return wakeAtMs;
  };
}

/**
 * Makes an uplink that waits behind all others, or is sent at once if none waits. Does nothing if the lock's buffer,
 * the list of waiting uplinks, is full.
 */
function addUplink(
  { bufferUplinks }: PowerModel,
  state: Draft,
  effects: StepEffect[],
  nowMs: number,
  body: Ping | CommandAck,
): void {
  if (state.waiting.length >= bufferUplinks) return;
  state.sequence += 1;
  const { boot, sequence, power, dropped } = state;
  // `kept`: how many uplinks wait in the lock. `dropped`: how many it has discarded because its buffer was full.
  const uplink: Uplink = { boot, sequence, timeMs: nowMs, power, kept: state.waiting.length, dropped, body };
  state.waiting = [...state.waiting, uplink];
  effects.push({ type: 'made', uplink });
  if (state.link !== 'up' || state.inFlight) return;
  state.inFlight = true;
  state.sentOnLink += 1;
  state.trafficAtMs = nowMs;
  effects.push({ type: 'publish', uplink });
}

/** Sends the GPS ping of a ride as a cellular ping with the same reason. */
export const sendRideGpsAsCellular: StepWrapper = changePings((ping, { firmwareVersion }) => {
  if (ping.kind !== 'gps' || ping.reason !== 'REASON_UNLOCKED_PING') return ping;
  const { reason, lockState, batteryPercent, ebikeVolts, tetherState } = ping;
  const sensorValues = { lockState, batteryPercent, ebikeVolts, tetherState };
  return { kind: 'cellular', reason, ...sensorValues, firmwareVersion, position: null };
});

/** Ends each connection with DISCONNECT and without a close-connection ping. */
export const closeWithoutPing: StepWrapper = (healthy) => {
  /** The locks that are about to disconnect, once nothing waits any more. */
  const closing = new WeakSet<Draft>();
  return (model, state, input, nowMs, effects) => {
    const firstIndex = effects.length;
    const wakeAtMs = healthy(model, state, input, nowMs, effects);
    const close = effects.slice(firstIndex).find(isMadeClose)?.uplink;
    if (close !== undefined) {
      removeLastUplink(state, effects, firstIndex, close);
      // The removed ping may have been the notice that the lock falls silent, which the lock would then make again.
      state.silenceNotice = 'none';
      closing.add(state);
    }
    if (!closing.has(state)) return wakeAtMs;
    if (state.link !== 'up') closing.delete(state);
    else if (!state.inFlight && state.waiting.length === 0) {
      closing.delete(state);
      state.link = 'ending';
      effects.push({ type: 'disconnect' });
    }
    return wakeAtMs;
  };
};

function isMadeClose(effect: StepEffect): effect is StepEffect & { type: 'made' } {
  return effect.type === 'made' && effect.uplink.body.kind === 'close_connection';
}

/** Takes back the last uplink of this step. If the lock connects only to send that uplink, it does not connect. */
function removeLastUplink(state: Draft, effects: StepEffect[], firstIndex: number, uplink: Uplink): void {
  state.waiting = state.waiting.filter((each) => each !== uplink);
  state.sequence -= 1;
  const isOnlyForUplink = state.link === 'connecting' && state.waiting.length === 0;
  const others = effects.slice(firstIndex).filter((effect) => {
    if (effect.type === 'publish' && effect.uplink === uplink) state.inFlight = false;
    if (isOnlyForUplink && effect.type === 'connect') {
      // The lock began to connect in this step. If it began earlier, for another uplink, it goes on.
      state.link = 'down';
      return false;
    }
    return !('uplink' in effect && effect.uplink === uplink);
  });
  effects.splice(firstIndex, effects.length - firstIndex, ...others);
}

/** In MID, sends REASON_NETWORK_PING on each connection. */
export const sendNetworkPingInMid: StepWrapper = (healthy) => (model, state, input, nowMs, effects) => {
  const wakeAtMs = healthy(model, state, input, nowMs, effects);
  if (input.type !== 'connected' || state.link !== 'up' || state.stateName !== 'MID') return wakeAtMs;
  const { lockState, batteryPercent, firmwareVersion, ebikeVolts, tetherState } = state;
  const sensorValues = { lockState, batteryPercent, ebikeVolts, tetherState };
  const ping: Ping = {
    kind: 'cellular',
    reason: 'REASON_NETWORK_PING',
    ...sensorValues,
    firmwareVersion,
    position: null,
  };
  addUplink(model, state, effects, nowMs, ping);
  return wakeAtMs;
};

/** Sends the position of a state change again, as a REASON_GPS_PING without a command. */
export const sendUnaskedLocate: StepWrapper = addUplinks(({ body }) => {
  return body.kind === 'gps' && body.reason === 'REASON_STATE_PING' ? { ...body, reason: 'REASON_GPS_PING' } : null;
});

/** Acknowledges, with the daily ping, a command that was never sent. */
export const acknowledgeUnasked: StepWrapper = addUplinks(({ body }) => {
  if (body.kind !== 'cellular' || body.reason !== 'REASON_PERIOD_TRACKING') return null;
  return { kind: 'ack', commandId: UNINITIALISED_ID, result: 'ok', detail: '', highWindow: null };
});

/** Acknowledges set-power, unlock and lock as ok, without carrying them out. */
export const acknowledgeWithoutDoing: StepWrapper = (healthy) => (model, state, input, nowMs, effects) => {
  const idleDownlink = input.type === 'command' ? idleCommand(input.downlink) : undefined;
  if (idleDownlink === undefined) return healthy(model, state, input, nowMs, effects);
  const firstIndex = effects.length;
  const wakeAtMs = healthy(model, state, { type: 'command', downlink: idleDownlink }, nowMs, effects);
  const others = effects.slice(firstIndex).filter(({ type }) => type !== 'siren');
  effects.splice(firstIndex, effects.length - firstIndex, ...others);
  return wakeAtMs;
};

/** A command with the same id that changes nothing; undefined for a command that the lock does carry out. */
function idleCommand(downlink: Downlink): Downlink | undefined {
  const { type } = downlink.command;
  if (type === 'set-power') return { ...downlink, command: { type } };
  // A siren of 0 s; its sound is taken out of the effects.
  return type === 'unlock' || type === 'lock' ? { ...downlink, command: { type: 'siren', seconds: 0 } } : undefined;
}

/** An input that replaces a command: only time passes. */
const NOTHING: StepInput = Object.freeze({ type: 'tick', fix: null, cellPosition: null });

/** Ignores every command. */
export const ignoreCommands: StepWrapper = (healthy) => (model, state, input, nowMs, effects) => {
  return healthy(model, state, input.type === 'command' ? NOTHING : input, nowMs, effects);
};

/** The clock steps back while a connection closes, and is right again afterwards. */
export const stepClockBackAtClose: StepWrapper = changeUplinks((uplink) => {
  return uplink.body.kind === 'close_connection' ? { ...uplink, timeMs: uplink.timeMs - STEP_BACK_MS } : uplink;
});

/** The lock does everything by a clock that is `behindMs` behind. */
export function setClockBehind(behindMs: number): StepWrapper {
  return (healthy) => (model, state, input, nowMs, effects) => {
    return healthy(model, state, input, nowMs - behindMs, effects) + behindMs;
  };
}

/** Each GPS ping has the position of the first one since the lock was switched on. */
export const freezePosition: StepWrapper = (healthy) => {
  const positions = new WeakMap<Draft, Position>();
  return changePings((ping, state) => {
    if (ping.kind !== 'gps') return ping;
    const first = positions.get(state);
    if (first === undefined) positions.set(state, ping.position);
    return first === undefined ? ping : { ...ping, position: first };
  })(healthy);
};

/** Exchanges latitude and longitude in each position. */
export const swapCoordinates: StepWrapper = changePings((ping) => {
  if (ping.kind === 'gps') return { ...ping, position: swapped(ping.position) };
  return ping.kind === 'cellular' && ping.position !== null ? { ...ping, position: swapped(ping.position) } : ping;
});

function swapped({ latitudeDegrees, longitudeDegrees, uncertaintyMeters }: Position): Position {
  return { latitudeDegrees: longitudeDegrees, longitudeDegrees: latitudeDegrees, uncertaintyMeters };
}
