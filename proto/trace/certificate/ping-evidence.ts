/** What one ping of a lock shows by itself: functions of its state, and its content. Pure. */
import type { EffectiveState, TriggerName } from '../../power/model.js';
import type { Ping, PowerSettings } from '../../wire/ping.js';
import { isKnownReason, type Reason } from '../../wire/reasons.js';
import { functionRowOf, stateRowId } from './function-rows.js';

type Note = (row: string) => void;

/** The trigger of each reason that is not the close-connection ping's or the phone's. */
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

/** Notes the rows that a ping shows by itself. */
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

/** Whether lock state, ping type and position are what the reason asks for. */
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
