/**
 * Which rows of a certificate (row.ts) a single ping of a lock shows to hold: those about functions of its state, and
 * about its content. Pure: reports each row by calling `note` with the row's id.
 */
import type { EffectiveState, TriggerName } from '../../power/model.js';
import type { Ping, PowerSettings } from '../../wire/ping.js';
import { isKnownReason, type Reason } from '../../wire/reasons.js';
import { functionRowOf, stateRowId } from './function-rows.js';

type Note = (row: string) => void;

/** The trigger of the power model that makes pings of each reason. Close-connection and phone pings have no trigger. */
const TRIGGER_OF: Partial<Record<Reason, TriggerName>> = {
  REASON_THEFT: 'theft',
  REASON_STATE_PING: 'state-change',
  REASON_UNLOCKED_MOVEMENT: 'ride',
  REASON_UNLOCKED_PING: 'ride',
  REASON_PERIOD_TRACKING: 'period',
  REASON_NETWORK_PING: 'kept-connection',
  REASON_GPS_PING: 'locate-gps',
  REASON_CELL_PING: 'locate-cell',
  REASON_RESET: 'reset',
};

/** Reports the rows that a ping shows by itself. `state` and `power` are those in which the lock made it. */
export function notePingContent(state: EffectiveState, power: PowerSettings, ping: Ping, note: Note): void {
  if (isKnownReason(ping.reason)) {
    note('known-reasons');
    note('ping-types');
  }
  if (ping.kind === 'close_connection') {
    note(stateRowId('close-connection', state));
    return;
  }
  if (ping.ebikeVolts !== null) note('ebike-voltage');
  if (ping.tetherState !== 'unknown') note('tether-state');
  if (ping.kind === 'gps') note('values-in-range');
  else if (ping.firmwareVersion !== '' && ping.lockState !== 'unknown') note('cellular-content');
  noteFunction(state, power, ping, note);
}

/** Reports the rows about functions: the one for state, trigger and ping type, and those that hold in all states. */
function noteFunction(state: EffectiveState, power: PowerSettings, ping: Ping, note: Note): void {
  const trigger = TRIGGER_OF[ping.reason];
  if (trigger === undefined || !isAsAllowed(power, ping)) return;
  const row = functionRowOf({ state, trigger, pingType: ping.kind });
  if (row !== null) note(row);
  switch (ping.reason) {
    case 'REASON_THEFT':
      note('theft-only-locked');
      break;
    case 'REASON_UNLOCKED_MOVEMENT':
      note('ride-only-unlocked');
      if (!power.rideTracking) note('ride-tracking-switch');
      break;
    case 'REASON_UNLOCKED_PING':
      note('ride-only-unlocked');
      break;
    case 'REASON_NETWORK_PING':
      if (state === 'HIGH' || state === 'RECOVERY') note('network-ping-only-kept');
      break;
    case 'REASON_GPS_PING':
    case 'REASON_CELL_PING':
      note('locate-position');
      break;
  }
}

/** Whether lock state, ping type and position are as the ping's reason requires. */
function isAsAllowed(power: PowerSettings, ping: Ping): boolean {
  switch (ping.reason) {
    case 'REASON_THEFT':
      return ping.lockState === 'locked';
    case 'REASON_UNLOCKED_MOVEMENT':
      return ping.kind === 'cellular' && ping.lockState === 'unlocked';
    case 'REASON_UNLOCKED_PING':
      return ping.kind === 'gps' && ping.lockState === 'unlocked' && power.rideTracking;
    case 'REASON_CELL_PING':
      return ping.kind === 'cellular' && ping.position !== null;
    default:
      return true;
  }
}
