/**
 * Firmware bugs of simulated locks that leave out or falsify what a lock must do (protocol.md §3, "What a lock must
 * do"): one for each of those rules, and one for each function of the specification. If a missing function breaks a
 * rule, one row serves for both. Pure data.
 */
import { Hours, Seconds } from '../../proto/clock.js';
import type { PowerModel, StateRow } from '../../proto/power/model.js';
import { AT_STATE_CHANGES, type Bug } from './bug.js';
import { changeModel } from './bug-wrappers.js';
import {
  acknowledgeUnasked,
  acknowledgeWithoutDoing,
  changeReasons,
  closeWithoutPing,
  freezePosition,
  ignoreCommands,
  sendNetworkPingInMid,
  sendRideGpsAsCellular,
  sendUnaskedLocate,
  setClockBehind,
  stepClockBackAtClose,
  swapCoordinates,
} from './omission-wrappers.js';

const NO_RULE_FINDS_IT =
  'no rule finds it: compare with what happened, or look for "not seen" in a report of "lockgate trace certify"';

/** The model with one member changed in all its states. */
function changeStates(model: PowerModel, change: Partial<StateRow>): PowerModel {
  return { ...model, states: model.states.map((row) => ({ ...row, ...change })) };
}

/** The bugs that break a rule, in the order of the rules. */
export const OMISSION_BUGS: readonly Bug[] = [
  {
    name: 'ride-gps-as-cellular',
    rule: 'wrong-ping-type',
    sentence: 'The GPS pings of a ride come as cellular pings, without a position.',
    shows: 'a lock with ride tracking, in its rides (--mix mid+ride)',
    needs: ['tracked-rides'],
    wrapStep: sendRideGpsAsCellular,
  },
  {
    name: 'no-state-pings',
    rule: 'change-untold',
    also: ['ack-untrue'],
    sentence: 'No pings of state changes: when it is locked or unlocked, the lock stays silent.',
    shows: 'each lock, in the first ping after it was locked or unlocked',
    needs: ['rides'],
    wrapStep: changeModel((model) => changeStates(model, { stateChange: false })),
  },
  {
    name: 'no-period-cellular',
    rule: 'gps-before-cellular',
    also: ['period-overdue'],
    sentence: 'The daily ping comes as a GPS ping only, without the cellular ping before it.',
    shows: 'each lock, at its daily ping under an open sky',
    wrapStep: changeModel((model) => changeReasons(model, 'period', { cellularReason: null })),
  },
  {
    name: 'no-period-gps',
    rule: 'gps-missing',
    sentence: 'No GPS in the daily ping: only its cellular ping comes.',
    shows: 'a lock that nothing keeps connected, at its daily ping under an open sky',
    wrapStep: changeModel((model) => changeReasons(model, 'period', { gpsReason: null })),
  },
  {
    name: 'no-close-pings',
    rule: 'close-missing',
    also: ['change-untold', 'period-overdue', 'recovery-offline', 'state-unchanged', 'window-offline'],
    sentence: 'No close-connection pings: the lock disconnects without one.',
    shows: 'each lock, at the end of each connection',
    wrapStep: closeWithoutPing,
  },
  {
    name: 'no-network-pings',
    rule: 'network-ping-missing',
    also: ['connection-unexplained'],
    sentence: 'No network pings: a lock that keeps its connection does not say that it waits for commands.',
    shows: 'a lock in HIGH or recovery mode, at another ping over 17 min after it connected (--mix high)',
    needs: ['kept-connection'],
    wrapStep: changeModel((model) => changeReasons(model, 'kept-connection', { cellularReason: null })),
  },
  {
    name: 'network-pings-in-mid',
    rule: 'network-ping-unkept',
    sentence: 'In MID the lock sends REASON_NETWORK_PING on each connection, although it keeps none.',
    shows: 'a lock in MID, in each connection',
    needs: ['mid'],
    wrapStep: sendNetworkPingInMid,
  },
  {
    name: 'gps-every-5s',
    rule: 'cadence-too-fast',
    sentence: 'The GPS pings of thefts and rides come every 5 s.',
    shows: 'a lock with ride tracking in its rides, and each lock in a theft (--mix mid+ride)',
    needs: ['tracked-rides'],
    wrapStep: changeModel((model) => {
      return { ...model, timings: { ...model.timings, theftGpsEvery: Seconds(5), rideGpsEvery: Seconds(5) } };
    }),
  },
  {
    name: 'no-movement-pings',
    rule: 'refresh-missing',
    also: ['connection-unexplained'],
    sentence: 'No movement pings: the lock connects in rides, but sends no REASON_UNLOCKED_MOVEMENT.',
    shows: 'each lock, in rides of over 10 min, and of over 6 min with ride tracking (--mix mid+ride)',
    needs: ['rides'],
    wrapStep: changeModel((model) => changeReasons(model, 'ride', { cellularReason: null })),
  },
  {
    name: 'locates-unasked',
    rule: 'locate-unasked',
    sentence: 'After the GPS ping of a state change the lock sends the same position again, as REASON_GPS_PING.',
    shows: AT_STATE_CHANGES,
    needs: ['rides'],
    wrapStep: sendUnaskedLocate,
  },
  {
    name: 'acknowledges-unasked',
    rule: 'ack-unasked',
    sentence: 'With its daily ping the lock acknowledges command 4294967295, from uninitialised memory.',
    shows: 'each lock, at its daily ping',
    wrapStep: acknowledgeUnasked,
  },
  {
    name: 'acknowledges-untruly',
    rule: 'ack-untrue',
    sentence: 'The lock acknowledges set-power, unlock and lock as ok, and does nothing.',
    shows: 'a lock that gets such a command (a scenario, or a live run)',
    needs: ['commands'],
    wrapStep: acknowledgeWithoutDoing,
  },
  {
    name: 'ignores-commands',
    rule: 'command-ignored',
    sentence: 'The lock neither carries out nor acknowledges commands.',
    shows: 'a lock that gets a command, and sends an uplink over 3 min later (a scenario, or a live run)',
    needs: ['commands'],
    wrapStep: ignoreCommands,
  },
  {
    name: 'clock-steps-back',
    rule: 'clock-back',
    also: ['clock-behind', 'gps-missing'],
    sentence: 'The clock steps back by 6 min while a connection closes: the close-connection ping has that time.',
    shows: 'each lock, at the end of each connection',
    wrapStep: stepClockBackAtClose,
  },
  {
    name: 'clock-2h-behind',
    rule: 'clock-behind',
    also: ['connection-unexplained', 'locate-unasked', 'window-offline'],
    sentence: 'The clock of the lock is 2 h behind, and the lock lives by it.',
    shows: 'each lock, at the end of each connection',
    wrapStep: setClockBehind(Hours(2)),
  },
  {
    name: 'frozen-position',
    rule: 'motion-unlikely',
    sentence: 'Each GPS ping has the position of the first one since the lock was switched on.',
    shows:
      'a lock with ride tracking, in rides of over 10 min, and each lock in a theft of over 4 min (--mix mid+ride)',
    needs: ['tracked-rides'],
    wrapStep: freezePosition,
  },
];

/** The bugs that break no rule. A comparison with what truly happened shows them, or a certificate's "not seen". */
export const UNSEEN_BUGS: readonly Bug[] = [
  {
    name: 'no-theft-pings',
    rule: null,
    sentence: 'No theft pings: a lock that is carried away stays silent.',
    shows: `each lock, in a theft (--pace lively has thefts); ${NO_RULE_FINDS_IT}`,
    needs: ['thefts'],
    wrapStep: changeModel((model) => changeStates(model, { theft: false })),
  },
  {
    name: 'no-theft-gps',
    rule: null,
    sentence: 'No GPS in thefts: only the cellular pings of a theft come.',
    shows: `each lock, in a theft (--pace lively has thefts); ${NO_RULE_FINDS_IT}`,
    needs: ['thefts'],
    wrapStep: changeModel((model) => changeReasons(model, 'theft', { gpsReason: null })),
  },
  {
    name: 'no-ride-gps',
    rule: null,
    sentence: 'No GPS in rides: a lock with ride tracking sends only the cellular pings of a ride.',
    shows: `a lock with ride tracking, in its rides (--mix mid+ride); ${NO_RULE_FINDS_IT}`,
    needs: ['tracked-rides'],
    wrapStep: changeModel((model) => changeReasons(model, 'ride', { gpsReason: null })),
  },
  {
    name: 'no-reset-ping',
    rule: null,
    sentence: 'No reset ping: a lock whose modem restarted does not say so.',
    shows: `a lock whose modem restarts (--pace lively has resets); ${NO_RULE_FINDS_IT}`,
    wrapStep: changeModel((model) => changeReasons(model, 'reset', { cellularReason: null })),
  },
  {
    name: 'swapped-coordinates',
    rule: null,
    sentence: 'Latitude and longitude are exchanged.',
    shows: `each lock, in each position (out-of-range east of 90° E and west of 90° W); ${NO_RULE_FINDS_IT}`,
    wrapStep: swapCoordinates,
  },
];
