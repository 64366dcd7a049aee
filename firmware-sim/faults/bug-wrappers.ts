/**
 * How a bug is put around a healthy lock: it steps by another model, changes the effects of the healthy step, or
 * misuses its link. Each wrapper is a small function from healthy to faulty, so that bugs can be combined.
 */

import type { EffectiveState, PowerModel, StateRow } from '../../proto/power/model.js';
import type { StepEffect } from '../../proto/power/step/io.js';
import { rowOfState } from '../../proto/power/step/reading.js';
import type { Draft } from '../../proto/power/step/state.js';
import type { CellularPing, Ping, Uplink } from '../../proto/wire/ping.js';
import type { LinkEvents, OpenLink } from '../link/link.js';
import type { StepFunction } from '../lock/lock.js';

/** Makes a step function with the bug from one without. */
export type StepWrapper = (healthy: StepFunction) => StepFunction;

/** Steps by another model than the given one. */
export function changeModel(change: (model: PowerModel) => PowerModel): StepWrapper {
  const changed = new WeakMap<PowerModel, PowerModel>();
  return (healthy) => (model, state, input, nowMs, effects) => {
    let other = changed.get(model);
    if (other === undefined) {
      other = change(model);
      changed.set(model, other);
    }
    return healthy(other, state, input, nowMs, effects);
  };
}

/** The model with one state's row changed. */
export function changeRow(model: PowerModel, state: EffectiveState, change: Partial<StateRow>): PowerModel {
  return { ...model, states: model.states.map((row) => (row.state === state ? { ...row, ...change } : row)) };
}

/** The model with one state ranked right behind another. */
export function rankBehind(model: PowerModel, state: EffectiveState, by: EffectiveState): PowerModel {
  const others = model.states.filter((row) => row.state !== state);
  const behind = others.findIndex((row) => row.state === by) + 1;
  return { ...model, states: others.toSpliced(behind, 0, rowOfState(model, state)) };
}

/** The behaviour of MID, for the row of another state. */
export function behaviourOfMid(model: PowerModel): Partial<StateRow> {
  const { state: _, when: __, ...does } = rowOfState(model, 'MID');
  return does;
}

/** Changes the uplinks that a healthy lock makes. An uplink that `change` returns as it was is left alone. */
export function changeUplinks(change: (uplink: Uplink, state: Draft) => Uplink): StepWrapper {
  return (healthy) => (model, state, input, nowMs, effects) => {
    const before = effects.length;
    const wakeAtMs = healthy(model, state, input, nowMs, effects);
    for (let index = before; index < effects.length; index++) {
      const effect = effects[index] as StepEffect;
      if (effect.type !== 'made') continue;
      const other = change(effect.uplink, state);
      if (other !== effect.uplink) replaceMade(state, effects, before, effect.uplink, other);
    }
    return wakeAtMs;
  };
}

/** An uplink made in this step is among those that wait, and may have been sent already. */
function replaceMade(state: Draft, effects: StepEffect[], from: number, made: Uplink, other: Uplink): void {
  state.waiting = state.waiting.map((uplink) => (uplink === made ? other : uplink));
  for (let index = from; index < effects.length; index++) {
    const effect = effects[index] as StepEffect;
    if ((effect.type === 'made' || effect.type === 'publish') && effect.uplink === made)
      effects[index] = { ...effect, uplink: other };
  }
}

/** The number of boots of a lock whose boot counter is to go back. */
const MIN_BOOT_NUMBER = 40;

/**
 * Has booted often, and misreads its boot counter whenever it makes an uplink that `isMisread` selects: that one is of
 * boot 1, and the next has the number that it would have had.
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

/** Whether it is the cellular ping of a ride, which most bugs turn into something else. */
export function isRidePing(ping: Ping): ping is CellularPing {
  return ping.kind === 'cellular' && ping.reason === 'REASON_UNLOCKED_MOVEMENT';
}

/** Whether the lock must be silent in this state. A bug that is to break one rule does nothing there. */
export function mustBeSilent(state: Draft): boolean {
  return state.stateName === 'AIRPLANE' || state.stateName === 'LOW_BATTERY';
}

/** Makes the next period ping due `every` ms after the last. */
export function repeatPeriodPing(periodMs: number): StepWrapper {
  return (healthy) => (model, state, input, nowMs, effects) => {
    const wakeAtMs = healthy(model, state, input, nowMs, effects);
    const soonMs = state.lastPeriodMs + periodMs;
    if (state.lastPeriodMs < 0 || soonMs >= state.nextPeriodMs) return wakeAtMs;
    state.nextPeriodMs = Math.max(soonMs, nowMs);
    return rowOfState(model, state.stateName).period ? Math.min(wakeAtMs, state.nextPeriodMs) : wakeAtMs;
  };
}

/** Drops an idle connection silently: the close-connection ping that the healthy step made is undone. */
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
  // The healthy step will say what is due next.
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
 * Ends each connection first, and sends the close-connection ping afterwards, to any listener that still accepts it.
 */
export function sendClosePingTooLate(open: OpenLink): OpenLink {
  return (mac, events) => {
    let hasLeft = false;
    const filteredEvents: LinkEvents = {
      ...events,
      // The lock has not asked for this end yet.
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
      cut: (afterBytes) => link.cut(afterBytes),
      abandon: () => link.abandon(),
      close: () => link.close(),
    };
  };
}
