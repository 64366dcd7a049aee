/**
 * A lock's state from its log, where the row that had it is damaged: all that was ever stored of the lock is judged
 * once more, in the order in which it came. What the judge finds on the way is in the store already, and is not told
 * again.
 */
import type { Mac } from '../proto/mac.js';
import { judgeInPlace } from '../proto/power-judge.js';
import { newVerdict } from '../proto/power-judge-event.js';
import { POWER_MODEL } from '../proto/power-model.js';
import { type DeviceState, newDeviceState, noteUplink } from './device-state.js';
import type { StateRebuilt } from './events.js';
import { judgeEventOf } from './operator/trace-export.js';
import type { Store } from './store/store.js';

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
      judgeInPlace(POWER_MODEL, state.belief, event, newVerdict());
      if (event.type === 'uplink' && event.source === 'lock')
        noteUplink(state, event.credential, event.uplink, event.atMs);
    }
  }
  return state;
}
