/**
 * Firmware bugs of simulated locks that do what a lock must not do: one for each rule of the first table of protocol.md
 * §3, and for `boot-back`. The *high window* is the part of the day in which a lock in HIGH keeps its connection open.
 * Bugs of locks that leave something out are in omission-bugs.ts. Pure data.
 */
import { Hours, Minutes } from '../../proto/clock.js';
import type { Draft } from '../../proto/power/step/state.js';
import type { Ping, Uplink } from '../../proto/wire/ping.js';
import { AT_STATE_CHANGES, type Bug, IN_RIDES } from './bug.js';
import {
  behaviourOfMid,
  changeModel,
  changePings,
  changeRow,
  changeUplinks,
  dropWithoutClosePing,
  isRidePing,
  misreadBootCounter,
  mustBeSilent,
  rankBehind,
  repeatPeriodPing,
  type StepWrapper,
  sendAfterClosePing,
  sendClosePingTooLate,
} from './bug-wrappers.js';

/** The degrees that a receiver reads from uninitialised memory: 2³¹−1 in an integer of the wire format. */
const GARBAGE_DEGREES = (2 ** 31 - 1) / 1e7;

/** Whether a ping is the GPS ping of a state change. Every lock makes such pings now and then. */
function isStateGps(ping: Ping): boolean {
  return ping.kind === 'gps' && ping.reason === 'REASON_STATE_PING';
}

/** Shifts the sequence number of a state change's GPS ping; later uplinks continue from the shifted number. */
function shiftSequence(by: number): StepWrapper {
  return changeUplinks((uplink: Uplink, state: Draft) => {
    // Later numbers can continue only from the last uplink's, and no number may fall below 1.
    const isLast = uplink.sequence === state.sequence && uplink.sequence > 1;
    if (uplink.body.kind === 'ack' || !isStateGps(uplink.body) || !isLast) return uplink;
    state.sequence += by;
    return { ...uplink, sequence: state.sequence };
  });
}

/** The bugs, in the order of their rules. */
export const FORBIDDEN_BUGS: readonly Bug[] = [
  {
    name: 'talks-in-airplane',
    rule: 'airplane-silence',
    also: ['close-missing'],
    sentence: 'Airplane mode is on, and the lock behaves as if it were in MID.',
    shows: 'a lock in airplane mode, when something happens to it (--mix airplane)',
    needs: ['airplane'],
    // Ranked behind low battery, so that a lock in both states obeys the limits of low battery.
    wrapStep: changeModel((model) =>
      rankBehind(changeRow(model, 'AIRPLANE', behaviourOfMid(model)), 'AIRPLANE', 'LOW_BATTERY'),
    ),
  },
  {
    name: 'talks-on-empty',
    rule: 'low-battery-theft-only',
    sentence: 'The battery is below 10 %, and the lock behaves as if it were in MID.',
    shows: 'a lock with a low battery, when something happens to it (--mix low-battery)',
    needs: ['low-battery'],
    wrapStep: changeModel((model) => changeRow(model, 'LOW_BATTERY', behaviourOfMid(model))),
  },
  {
    name: 'theft-while-unlocked',
    rule: 'theft-while-unlocked',
    also: ['refresh-missing'],
    sentence: 'The lock takes its owner for a thief: the pings of a ride have REASON_THEFT.',
    shows: IN_RIDES,
    needs: ['rides'],
    wrapStep: changePings((ping) => (isRidePing(ping) ? { ...ping, reason: 'REASON_THEFT' } : ping)),
  },
  {
    name: 'period-every-6h',
    rule: 'period-too-soon',
    sentence: 'The daily ping comes every 6 h.',
    shows: 'each lock, from 6 h after its first daily ping on',
    needs: ['six-hours'],
    wrapStep: repeatPeriodPing(Hours(6)),
  },
  {
    name: 'state-ping-in-rides',
    rule: 'state-unchanged',
    also: ['gps-missing', 'refresh-missing'],
    sentence: 'Moving off counts as a change of the lock state: the pings of a ride have REASON_STATE_PING.',
    shows: IN_RIDES,
    needs: ['rides'],
    wrapStep: changePings((ping) => (isRidePing(ping) ? { ...ping, reason: 'REASON_STATE_PING' } : ping)),
  },
  {
    name: 'misreports-ride-tracking',
    rule: 'ride-tracking-off',
    sentence: 'The GPS pings of a ride report that ride tracking is off.',
    shows: 'a lock with ride tracking, in its rides (--mix mid+ride)',
    needs: ['tracked-rides'],
    wrapStep: changeUplinks((uplink) => {
      if (uplink.body.kind !== 'gps' || uplink.body.reason !== 'REASON_UNLOCKED_PING') return uplink;
      return { ...uplink, power: { ...uplink.power, rideTracking: false } };
    }),
  },
  {
    name: 'ride-while-locked',
    rule: 'ride-while-locked',
    also: ['gps-before-cellular', 'refresh-missing'],
    sentence: 'The lock takes a thief for its owner: the cellular pings of a theft have REASON_UNLOCKED_MOVEMENT.',
    shows: 'each lock, in a theft while its battery is not low (--pace lively has thefts)',
    needs: ['thefts'],
    wrapStep: changePings((ping, state) => {
      if (ping.kind !== 'cellular' || ping.reason !== 'REASON_THEFT' || mustBeSilent(state)) return ping;
      return { ...ping, reason: 'REASON_UNLOCKED_MOVEMENT' };
    }),
  },
  {
    name: 'gps-ping-without-place',
    rule: 'position-missing',
    also: ['gps-missing', 'locate-unasked'],
    sentence: 'The GPS ping of a state change comes as a cellular REASON_GPS_PING, without a position.',
    shows: AT_STATE_CHANGES,
    needs: ['rides'],
    wrapStep: changePings((ping, { firmwareVersion }) => {
      if (ping.kind !== 'gps' || !isStateGps(ping)) return ping;
      const { lockState, batteryPercent, ebikeVolts, tetherState } = ping;
      const sensorValues = { lockState, batteryPercent, ebikeVolts, tetherState };
      return { kind: 'cellular', reason: 'REASON_GPS_PING', ...sensorValues, firmwareVersion, position: null };
    }),
  },
  {
    name: 'closes-too-late',
    rule: 'outside-connection',
    also: ['close-missing'],
    sentence: 'The lock disconnects first and sends its close-connection ping afterwards, without a connection.',
    shows: 'each lock, at the end of each connection',
    wrapVirtualLink: sendClosePingTooLate,
  },
  {
    name: 'talks-after-close',
    rule: 'after-close',
    also: ['network-ping-unkept'],
    sentence: 'After its close-connection ping the lock sends a REASON_NETWORK_PING.',
    shows: 'each lock, at the end of each connection',
    wrapStep: sendAfterClosePing,
  },
  {
    name: 'poses-as-phone',
    rule: 'wrong-source',
    also: ['refresh-missing'],
    sentence: 'The pings of a ride have the reason PHONE.',
    shows: IN_RIDES,
    needs: ['rides'],
    wrapStep: changePings((ping) => (isRidePing(ping) ? { ...ping, reason: 'PHONE' } : ping)),
  },
  {
    name: 'unheard-of-reason',
    rule: 'unknown-reason',
    also: ['refresh-missing'],
    sentence: 'The pings of a ride have an unknown reason, 42.',
    shows: IN_RIDES,
    needs: ['rides'],
    wrapStep: changePings((ping) => (isRidePing(ping) ? { ...ping, reason: 'REASON_UNRECOGNIZED_42' } : ping)),
  },
  {
    name: 'garbage-position',
    rule: 'out-of-range',
    sentence: 'The GPS ping of a state change has the position 214.7483647°, 214.7483647°, from uninitialised memory.',
    shows: AT_STATE_CHANGES,
    needs: ['rides'],
    wrapStep: changePings((ping) => {
      if (ping.kind !== 'gps' || !isStateGps(ping)) return ping;
      const position = { latitudeDegrees: GARBAGE_DEGREES, longitudeDegrees: GARBAGE_DEGREES, uncertaintyMeters: 0 };
      return { ...ping, position };
    }),
  },
  {
    name: 'sequence-repeats',
    rule: 'sequence-conflict',
    sentence: 'The GPS ping of a state change has the sequence number of the uplink before it.',
    shows: AT_STATE_CHANGES,
    needs: ['rides'],
    wrapStep: shiftSequence(-1),
  },
  {
    name: 'held-for-ever',
    rule: 'connection-unexplained',
    sentence: 'A connection that nothing keeps open is closed after 1 h instead of 20 s.',
    shows: 'each lock, in each connection that nothing keeps open',
    wrapStep: changeModel((model) => ({ ...model, timings: { ...model.timings, closeAfterIdle: Hours(1) } })),
  },
  {
    name: 'sequence-skips',
    rule: 'sequence-gap',
    sentence: 'The GPS ping of a state change skips three sequence numbers.',
    shows: AT_STATE_CHANGES,
    needs: ['rides'],
    wrapStep: shiftSequence(3),
  },
  {
    name: 'clock-ahead',
    rule: 'clock-ahead',
    also: ['network-ping-unkept'],
    sentence: 'The clock of the lock is 10 min ahead.',
    shows: 'each lock, in every uplink that is sent without delay',
    wrapStep: changeUplinks((uplink) => ({ ...uplink, timeMs: uplink.timeMs + Minutes(10) })),
  },
  {
    name: 'forgets-to-close',
    rule: 'not-closed',
    sentence: 'The lock drops an idle connection silently: no close-connection ping, no DISCONNECT.',
    shows: 'each lock, at the end of each connection, except where it announces that it falls silent',
    wrapStep: dropWithoutClosePing,
  },
  {
    name: 'forgets-period',
    rule: 'period-overdue',
    sentence: 'The daily ping never comes.',
    shows: 'each lock, 25 h after its first connection or later',
    needs: ['a-day'],
    wrapStep: changeModel((model) => ({ ...model, states: model.states.map((row) => ({ ...row, period: false })) })),
  },
  {
    name: 'sleeps-in-window',
    rule: 'window-offline',
    also: ['network-ping-missing'],
    sentence: 'In HIGH the lock closes its connection within the high window, as if it were in MID.',
    shows: 'a lock in HIGH, in its window (--mix high)',
    needs: ['high'],
    wrapStep: changeModel((model) => changeRow(model, 'HIGH', { connectionKept: 'never' })),
  },
  {
    name: 'sleeps-in-recovery',
    rule: 'recovery-offline',
    also: ['network-ping-missing'],
    sentence: 'In recovery mode the lock closes its connection, as if it were in MID.',
    shows: 'a lock in recovery mode (--mix recovery)',
    needs: ['recovery'],
    wrapStep: changeModel((model) => changeRow(model, 'RECOVERY', { connectionKept: 'never' })),
  },
  {
    name: 'flash-wiped',
    rule: 'boot-back',
    also: ['change-untold', 'gps-before-cellular', 'gps-missing'],
    sentence:
      'After 40 boots the flash page with the boot counter is erased: the GPS ping of a state change ' +
      'has boot number 1 again.',
    shows: AT_STATE_CHANGES,
    needs: ['rides'],
    wrapStep: misreadBootCounter(({ body }) => body.kind !== 'ack' && isStateGps(body)),
  },
];
