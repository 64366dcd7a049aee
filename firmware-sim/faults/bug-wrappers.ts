/**
 * Wrappers that give a healthy lock a bug: they use another power model, change the effects of the healthy step, or
 * misuse the link. A wrapper turns a step function (or a link) into a faulty one, so that bugs can be combined.
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

/** Steps by a changed power model. */
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

/** The model with one state ranked directly behind another. */
export function rankBehind(model: PowerModel, state: EffectiveState, by: EffectiveState): PowerModel {
  const others = model.states.filter((row) => row.state !== state);
  const behind = others.findIndex((row) => row.state === by) + 1;
  return { ...model, states: others.toSpliced(behind, 0, rowOfState(model, state)) };
}

/** The behaviour of MID, to be copied into the row of another state. */
export function behaviourOfMid(model: PowerModel): Partial<StateRow> {
  const { state: _, when: __, ...does } = rowOfState(model, 'MID');
  return does;
}

/** Changes the uplinks that a healthy lock makes. `change` returns the same object for an unchanged uplink. */
export function changeUplinks(change: (uplink: Uplink, state: Draft) => Uplink): StepWrapper {
  return (healthy) => (model, state, input, nowMs, effects) => {
    const before = effects.length;
    const wakeAtMs = healthy(model, state, input, nowMs, effects);
    for (let index = before; index < effects.length; index++) {
      const effect = effects[index] as StepEffect;
      if (effect.type !== 'made') continue;
      const changed = change(effect.uplink, state);
      if (changed !== effect.uplink) replaceMade(state, effects, before, effect.uplink, changed);
    }
    return wakeAtMs;
  };
}

/** Replaces an uplink of this step among the waiting uplinks and in the effects that make and publish it. */
function replaceMade(state: Draft, effects: StepEffect[], from: number, made: Uplink, changed: Uplink): void {
  state.waiting = state.waiting.map((uplink) => (uplink === made ? changed : uplink));
  for (let index = from; index < effects.length; index++) {
    const effect = effects[index] as StepEffect;
    if ((effect.type === 'made' || effect.type === 'publish') && effect.uplink === made)
      effects[index] = { ...effect, uplink: changed };
  }
}

/** The least boot number of a lock that misreads its boot counter, so that the counter visibly goes back. */
const MIN_BOOT_NUMBER = 40;

/**
 * The lock has booted often, and misreads its boot counter whenever it makes an uplink that `isMisread` selects. That
 * uplink has boot number 1, and the next uplink has the sequence number that the misread one would have had.
 */
export function misreadBootCounter(isMisread: (uplink: Uplink) => boolean): StepWrapper {
  const misread = new WeakMap<Draft, number>();
  const withMisreadBoots = changeUplinks((uplink, state) => {
    if (uplink.sequence !== state.sequence || uplink.sequence < 2 || !isMisread(uplink)) return uplink;
    const sequence = (misread.get(state) ?? 0) + 1;
    misread.set(state, sequence);
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

/** Makes the next Period Ping due `periodMs` after the last one. */
export function repeatPeriodPing(periodMs: number): StepWrapper {
  return (healthy) => (model, state, input, nowMs, effects) => {
    const wakeAtMs = healthy(model, state, input, nowMs, effects);
    const soonMs = state.lastPeriodMs + periodMs;
    if (state.lastPeriodMs < 0 || soonMs >= state.nextPeriodMs) return wakeAtMs;
    state.nextPeriodMs = Math.max(soonMs, nowMs);
    return rowOfState(model, state.stateName).period ? Math.min(wakeAtMs, state.nextPeriodMs) : wakeAtMs;
  };
}

/** Drops an idle connection silently: removes the close-connection ping that the healthy step made. */
export const dropWithoutClosePing: StepWrapper = (healthy) => (model, state, input, nowMs, effects) => {
  const before = effects.length;
  const wakeAtMs = healthy(model, state, input, nowMs, effects);
  if (state.link !== 'up' || mustBeSilent(state) || state.resetAfterClose) return wakeAtMs;
  const close = effects.slice(before).find(isMadeClose)?.uplink;
  if (close === undefined) return wakeAtMs;
  const others = effects.slice(before).filter((effect) => !('uplink' in effect) || effect.uplink !== close);
  effects.splice(before, effects.length - before, ...others, { type: 'drop' });
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
  const before = effects.length;
  const wakeAtMs = healthy(model, state, input, nowMs, effects);
  const disconnectIndex = effects.findIndex((effect, index) => index >= before && effect.type === 'disconnect');
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
  const uplink: Uplink = { boot, sequence, timeMs: nowMs, power, kept: state.waiting.length, dropped, body };
  effects.splice(disconnectIndex, 0, { type: 'made', uplink }, { type: 'publish', uplink });
  return wakeAtMs;
};

/**
 * Closes each connection first and sends the close-connection ping afterwards, to a listener that accepts uplinks
 * without a connection.
 */
export function sendClosePingTooLate(open: OpenLink): OpenLink {
  return (mac, events) => {
    let hasLeft = false;
    const filteredEvents: LinkEvents = {
      ...events,
      // The lock has not asked to disconnect yet.
      disconnected: (trouble) => (hasLeft && trouble === null ? undefined : events.disconnected(trouble)),
    };
    const link = open(mac, filteredEvents);
    return {
      connect: () => link.connect(),
      publish: (uplink) => {
        if (uplink.body.kind !== 'close_connection') return link.publish(uplink);
        hasLeft = true;
        link.disconnect();
        link.publish(uplink);
        events.acknowledged(uplink);
      },
      disconnect: () => {
        if (!hasLeft) return link.disconnect();
        hasLeft = false;
        events.disconnected(null);
      },
      drop: () => {
        hasLeft = false;
        link.drop();
      },
      breakConnection: (afterBytes) => link.breakConnection(afterBytes),
      abandon: () => link.abandon(),
      close: () => link.close(),
    };
  };
}
