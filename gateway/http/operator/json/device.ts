/** A lock in answers to operators. Pure. */
import { type Presence, presence } from '../../../../proto/power/judge/presence.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { formatDate, highWindowToJson, isDatable, powerToJson } from '../../../../proto/wire/ping-json.js';
import type { JudgingStop } from '../../../ingest/judging.js';
import { type DeviceState, parseDeviceState } from '../../../locks/device-state.js';
import type { ListedLock } from '../../../locks/list/listed-lock.js';
import { troubleOf } from '../../../locks/list/lock-order.js';
import type { Locks } from '../../../locks/locks.js';
import type { DeviceReading } from '../../../store/contract/devices/device.js';
import type { Usage } from '../../../usage/usage.js';
import { presenceJson } from './event.js';

/** A lock, as the store returned it. */
export function deviceJson(
  { device, state }: DeviceReading,
  { usage, locks }: { readonly usage: Pick<Usage, 'sims'>; readonly locks: Pick<Locks, 'find'> },
  nowMs: number,
) {
  const parsed = state === null ? null : parseDeviceState(state);
  // The state in memory is newer than the stored one. A lock that isn't judged keeps the presence that it had then.
  const unjudged = locks.find(device.id)?.state.unjudged ?? parsed?.unjudged;
  const listed = { device, state: parsed, presence: presenceOf(parsed, unjudged?.sinceMs ?? nowMs), unjudged };
  return listedLockJson(listed, usage);
}

/** A lock with its present state, as lists of locks show it. */
export function listedLockJson(listed: ListedLock, usage: Pick<Usage, 'sims'>) {
  const { device, state, presence: now, unjudged } = listed;
  return {
    mac: formatMac(device.mac),
    name: device.name,
    labels: device.labels,
    merchant: device.merchantName,
    simulated: device.simulated,
    created_at: formatDate(device.createdAtMs),
    sim: simJson(usage.sims.activatedAtMs(device.mac)),
    unjudged: unjudged === undefined ? null : unjudgedJson(unjudged),
    trouble: troubleOf(listed),
    // A lock that isn't judged (judging.ts) keeps the state that it had when its judging failed.
    ...stateJson(state, now),
  };
}

/** Since when a lock is not judged, and why. */
export function unjudgedJson({ sinceMs, why, version }: JudgingStop) {
  return { since: formatDate(sinceMs), why, version };
}

/** The SIM is active from the lock's first accepted CONNECT (interfaces.md §5). */
function simJson(activatedAtMs: number | null) {
  return activatedAtMs === null
    ? { state: 'inactive', activated_at: null }
    : { state: 'active', activated_at: formatDate(activatedAtMs) };
}

function presenceOf(state: DeviceState | null, nowMs: number): Presence {
  return state === null ? { presence: 'never-seen' } : presence(POWER_MODEL, state.belief, nowMs);
}

function stateJson(state: DeviceState | null, now: Presence) {
  if (state === null) return { presence: 'never-seen', state: null };
  // The belief: what the gateway takes the lock's state to be, from its pings and the model of its power modes.
  const { belief, ping, firmware, receivedAtMs } = state;
  const { position } = belief;
  return {
    ...presenceJson(now),
    state: {
      received_at: receivedAtMs === null ? null : formatDate(receivedAtMs),
      power_state: belief.state,
      power: powerToJson(belief.power),
      high_window: highWindowToJson(belief.highWindow),
      ping_type: ping?.kind ?? null,
      reason: ping?.reason ?? null,
      lock_state: belief.lockState,
      battery_percent: belief.batteryPercent,
      firmware_version: firmware?.version ?? null,
      latitude: position?.latitudeDegrees ?? null,
      longitude: position?.longitudeDegrees ?? null,
      uncertainty: position?.uncertaintyMeters ?? null,
      // When the lock was there, by its own clock.
      position_date: position && isDatable(position.timeMs) ? formatDate(position.timeMs) : null,
    },
  };
}
