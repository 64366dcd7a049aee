/**
 * States from the log. Where a row that had one is damaged, all that was stored of its lock is judged once more, in the
 * order in which it came. Where it is only old (unsettled-states.ts), the uplinks that came after it are. What the
 * judge finds on the way is in the store already, and is not told again.
 */
import type { Mac } from '../proto/mac.js';
import { judgeInPlace } from '../proto/power-judge.js';
import { type JudgeEvent, newVerdict } from '../proto/power-judge-event.js';
import { POWER_MODEL } from '../proto/power-model.js';
import { type DeviceState, newDeviceState, noteUplink } from './device-state.js';
import type { StateRebuilt } from './events.js';
import { judgeEventOf } from './operator/trace-export.js';
import type { Store } from './store/store.js';
import { UNSETTLED_MOST } from './unsettled-states.js';

/** Entries of the log read at once. */
const PIECE = 500;

/** The state, and what it was made from. One for which the log is no help either begins as a new lock's does. */
export async function rebuildState(
  store: Store,
  deviceId: number,
  mac: Mac,
  nowMs: number,
): Promise<{ readonly state: DeviceState; readonly from: StateRebuilt['from'] }> {
  try {
    const state = await replay(store, deviceId, mac);
    if (state !== undefined) return { state, from: 'log' };
  } catch {
    // The damage is not in the state alone. A lock that is new to its gateway is better than none.
  }
  return { state: newDeviceState(mac, nowMs, nowMs), from: 'nothing' };
}

async function replay(store: Store, deviceId: number, mac: Mac): Promise<DeviceState | undefined> {
  let state: DeviceState | undefined;
  for await (const piece of store.readLog(deviceId, PIECE)) {
    for (const entry of piece) {
      const event = judgeEventOf(entry);
      state ??= newDeviceState(mac, event.atMs, event.atMs);
      judgeAgain(state, event);
    }
  }
  return state;
}

function judgeAgain(state: DeviceState, event: JudgeEvent): void {
  judgeInPlace(POWER_MODEL, state.belief, event, newVerdict());
  if (event.type === 'uplink' && event.source === 'lock') noteUplink(state, event.credential, event.uplink, event.atMs);
}

/** A lock whose state was brought up to the log, and what of the log could not be read on the way. */
export interface Replayed {
  readonly deviceId: number;
  readonly why: string | undefined;
}

/**
 * Brings states up to the log: judges what came after each was stored. `stateOf` gives the state that is stored of a
 * lock, which is written in place; undefined where it is of no interest. An uplink that is damaged is left out.
 */
export async function replayTail(
  store: Store,
  stateOf: (deviceId: number) => DeviceState | undefined,
): Promise<readonly Replayed[]> {
  const replayed = new Map<number, string | undefined>();
  for await (const piece of store.readUnsettled(UNSETTLED_MOST, PIECE)) {
    for (const uplink of piece) {
      const state = stateOf(uplink.deviceId);
      if (state === undefined) continue;
      const why = replayed.get(uplink.deviceId);
      try {
        judgeAgain(state, judgeEventOf({ type: 'uplink', uplink }));
        replayed.set(uplink.deviceId, why);
      } catch (error) {
        replayed.set(uplink.deviceId, why ?? (error as Error).message);
      }
    }
  }
  return [...replayed].map(([deviceId, why]) => ({ deviceId, why }));
}
