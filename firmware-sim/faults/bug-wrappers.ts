/**
 * Wrappers that give a *healthy* lock, a simulated lock without bugs, a bug of forbidden-bugs.ts: the lock does what it
 * must not. omission-bugs.ts and omission-wrappers.ts use some of them too.
 *
 * A step function (proto/power/step/) changes the lock's state (`Draft`) in place, appends to `effects` what the lock
 * does, and returns when the lock must next wake up, ms since the epoch. Of the effects, `made` says that the lock made
 * an uplink, which then waits in `state.waiting` until it is acknowledged; `publish` sends a waiting uplink. A wrapper
 * turns a healthy step function into a faulty one, by another power model or other effects. One wrapper misuses the
 * link, the lock's connection, instead. As each takes and returns a step function or a link, bugs can be combined.
 */

import type { EffectiveState, PowerModel, StateRow } from '../../proto/power/model.js';
import type { StepEffect } from '../../proto/power/step/io.js';
import { rowOfState } from '../../proto/power/step/reading.js';
import type { Draft } from '../../proto/power/step/state.js';
import type { CellularPing, Ping, Uplink } from '../../proto/wire/ping.js';
import type { LinkEvents, OpenLink } from '../link/link.js';
import type { StepFunction } from '../lock/lock.js';

/** Makes a step function with the bug from a step function without the bug. */
export type StepWrapper = (healthy: StepFunction) => StepFunction;

/** The lock follows a changed power model. */
export function changeModel(change: (model: PowerModel) => PowerModel): StepWrapper {
  const changedModels = new WeakMap<PowerModel, PowerModel>();
  return (healthy) => (model, state, input, nowMs, effects) => {
    let changedModel = changedModels.get(model);
    if (changedModel === undefined) {
      changedModel = change(model);
      changedModels.set(model, changedModel);
    }
    return healthy(changedModel, state, input, nowMs, effects);
  };
}

/** The model with one state's row changed. */
export function changeRow(model: PowerModel, state: EffectiveState, change: Partial<StateRow>): PowerModel {
  return { ...model, states: model.states.map((row) => (row.state === state ? { ...row, ...change } : row)) };
}

/**
 * The model with one state's row moved directly behind another state's. If the conditions of several states hold, the
 * first row counts.
 */
export function rankBehind(model: PowerModel, state: EffectiveState, precedingState: EffectiveState): PowerModel {
  const others = model.states.filter((row) => row.state !== state);
  const newIndex = others.findIndex((row) => row.state === precedingState) + 1;
  return { ...model, states: others.toSpliced(newIndex, 0, rowOfState(model, state)) };
}

/** The behaviour of MID, the ordinary state, to be copied into the row of another state. */
export function behaviourOfMid(model: PowerModel): Partial<StateRow> {
  const { state: _, when: __, ...behaviour } = rowOfState(model, 'MID');
  return behaviour;
}

/** Changes the uplinks that a healthy lock makes. `change` returns the same object for an unchanged uplink. */
export function changeUplinks(change: (uplink: Uplink, state: Draft) => Uplink): StepWrapper {
  return (healthy) => (model, state, input, nowMs, effects) => {
    const firstIndex = effects.length;
    const wakeAtMs = healthy(model, state, input, nowMs, effects);
    for (let index = firstIndex; index < effects.length; index++) {
      const effect = effects[index] as StepEffect;
      if (effect.type !== 'made') continue;
      const changed = change(effect.uplink, state);
      if (changed !== effect.uplink) replaceMade(state, effects, firstIndex, effect.uplink, changed);
    }
    return wakeAtMs;
  };
}

/** Replaces an uplink of this step among the waiting uplinks and in the effects that make and publish it. */
function replaceMade(state: Draft, effects: StepEffect[], firstIndex: number, made: Uplink, changed: Uplink): void {
  state.waiting = state.waiting.map((uplink) => (uplink === made ? changed : uplink));
  for (let index = firstIndex; index < effects.length; index++) {
    const effect = effects[index] as StepEffect;
    if ((effect.type === 'made' || effect.type === 'publish') && effect.uplink === made)
      effects[index] = { ...effect, uplink: changed };
  }
}

/**
 * A lock that misreads its boot counter has booted at least this often before, so that the counter visibly goes back.
 */
const MIN_BOOT_NUMBER = 40;

/**
 * The lock has booted often, and misreads its boot counter as 1 whenever it makes an uplink that `isMisread` selects.
 * Such uplinks are numbered separately, and the next uplink has the sequence number that the misread one would have
 * had.
 */
export function misreadBootCounter(isMisread: (uplink: Uplink) => boolean): StepWrapper {
  /** How many misread uplinks each lock has made. */
  const misreadCounts = new WeakMap<Draft, number>();
  const withMisreadBoots = changeUplinks((uplink, state) => {
    // Only the number of the last uplink can be given back. A boot's first uplink is not misread, so that the gateway
    // knows the true boot.
    if (uplink.sequence !== state.sequence || uplink.sequence < 2 || !isMisread(uplink)) return uplink;
    const sequence = (misreadCounts.get(state) ?? 0) + 1;
    misreadCounts.set(state, sequence);
    state.sequence -= 1;
    return { ...uplink, boot: 1, sequence };
  });
  return (healthy) =>
    withMisreadBoots((model, state, input, nowMs, effects) => {
      if (input.type === 'boot') state.boot = Math.max(state.boot, MIN_BOOT_NUMBER);
      return healthy(model, state, input, nowMs, effects);
    });
}

/** Changes pings only. */
export function changePings(change: (ping: Ping, state: Draft) => Ping): StepWrapper {
  return changeUplinks((uplink, state) => {
    if (uplink.body.kind === 'ack') return uplink;
    const body = change(uplink.body, state);
    return body === uplink.body ? uplink : { ...uplink, body };
  });
}

/** Whether a ping is the cellular ping of a ride. */
export function isRidePing(ping: Ping): ping is CellularPing {
  return ping.kind === 'cellular' && ping.reason === 'REASON_UNLOCKED_MOVEMENT';
}

/** Whether the lock must be silent in this state. Most bugs are inactive then, since they would break a second rule. */
export function mustBeSilent(state: Draft): boolean {
  return state.stateName === 'AIRPLANE' || state.stateName === 'LOW_BATTERY';
}

/** Makes the next Period Ping, which is due once a day, come `periodMs` after the last one. */
export function repeatPeriodPing(periodMs: number): StepWrapper {
  return (healthy) => (model, state, input, nowMs, effects) => {
    const wakeAtMs = healthy(model, state, input, nowMs, effects);
    const nextMs = state.lastPeriodMs + periodMs;
    // A negative time: the lock has made no Period Ping yet.
    if (state.lastPeriodMs < 0 || nextMs >= state.nextPeriodMs) return wakeAtMs;
    state.nextPeriodMs = Math.max(nextMs, nowMs);
    return rowOfState(model, state.stateName).period ? Math.min(wakeAtMs, state.nextPeriodMs) : wakeAtMs;
  };
}

/** Drops an idle connection silently: removes the close-connection ping that the healthy step made. */
export const dropWithoutClosePing: StepWrapper = (healthy) => (model, state, input, nowMs, effects) => {
  const firstIndex = effects.length;
  const wakeAtMs = healthy(model, state, input, nowMs, effects);
  // A connection is closed properly if it announces that the lock falls silent, or that the modem restarts.
  if (state.link !== 'up' || mustBeSilent(state) || state.resetAfterClose) return wakeAtMs;
  const close = effects.slice(firstIndex).find(isMadeClose)?.uplink;
  if (close === undefined) return wakeAtMs;
  const others = effects.slice(firstIndex).filter((effect) => !('uplink' in effect) || effect.uplink !== close);
  effects.splice(firstIndex, effects.length - firstIndex, ...others, { type: 'drop' });
  state.waiting = state.waiting.filter((uplink) => uplink !== close);
  state.sequence -= 1;
  state.link = 'down';
  state.inFlight = false;
  // An immediate wake-up: the healthy step then computes what is due next.
  return nowMs;
};

function isMadeClose(effect: StepEffect): effect is StepEffect & { type: 'made' } {
  return effect.type === 'made' && effect.uplink.body.kind === 'close_connection';
}

/** Sends one more ping after the close-connection ping. */
export const sendAfterClosePing: StepWrapper = (healthy) => (model, state, input, nowMs, effects) => {
  const firstIndex = effects.length;
  const wakeAtMs = healthy(model, state, input, nowMs, effects);
  const disconnectIndex = effects.findIndex((effect, index) => index >= firstIndex && effect.type === 'disconnect');
  if (disconnectIndex < 0 || mustBeSilent(state)) return wakeAtMs;
  state.sequence += 1;
  const { boot, sequence, power, dropped, lockState, batteryPercent, firmwareVersion, ebikeVolts, tetherState } = state;
  const body: Ping = {
    kind: 'cellular',
    reason: 'REASON_NETWORK_PING',
    lockState,
    batteryPercent,
    firmwareVersion,
    ebikeVolts,
    tetherState,
    position: null,
  };
  // `kept`: how many uplinks wait in the lock. `dropped`: how many it has discarded because its buffer was full.
  const uplink: Uplink = { boot, sequence, timeMs: nowMs, power, kept: state.waiting.length, dropped, body };
  effects.splice(disconnectIndex, 0, { type: 'made', uplink }, { type: 'publish', uplink });
  return wakeAtMs;
};

/**
 * The lock closes each connection first and sends the close-connection ping afterwards. Only a gateway that accepts
 * uplinks without a connection receives that ping, so the bug exists only in virtual runs, which simulate locks without
 * MQTT.
 */
export function sendClosePingTooLate(open: OpenLink): OpenLink {
  return (mac, events) => {
    /** Whether this link has closed the connection before the lock asked for it. */
    let wasClosedEarly = false;
    const filteredEvents: LinkEvents = {
      ...events,
      // The lock gets no callback about this early close: it has not asked to disconnect yet.
      disconnected: (trouble) => (wasClosedEarly && trouble === null ? undefined : events.disconnected(trouble)),
    };
    const link = open(mac, filteredEvents);
    return {
      connect: () => link.connect(),
      publish: (uplink) => {
        if (uplink.body.kind !== 'close_connection') return link.publish(uplink);
        wasClosedEarly = true;
        link.disconnect();
        link.publish(uplink);
        // Without a connection the link reports no acknowledgement, and the lock would send the ping again.
        events.acknowledged(uplink);
      },
      disconnect: () => {
        if (!wasClosedEarly) return link.disconnect();
        wasClosedEarly = false;
        events.disconnected(null);
      },
      drop: () => {
        wasClosedEarly = false;
        link.drop();
      },
      breakConnection: (afterBytes) => link.breakConnection(afterBytes),
      abandon: () => link.abandon(),
      close: () => link.close(),
    };
  };
}
