/**
 * Why a lock sends a ping of each reason: one row for each reason in ../wire/reasons.ts, with the trigger of the power
 * model that causes it (protocol.md §2). Also sentences for an acknowledgement and for an unknown reason number.
 */

import type { EffectiveState, StateRow } from '../power/model.js';
import type { Command } from '../wire/ping.js';
import type { KnownReason } from '../wire/reasons.js';
import { SECTIONS, type Section } from './step.js';

/** The columns of the power model's state table that allow or forbid a trigger. */
type StateColumn = keyof Pick<
  StateRow,
  'theft' | 'period' | 'stateChange' | 'cellOnInRide' | 'rideTracking' | 'commands'
>;

/** Why a lock sends a ping of one reason. */
export interface ReasonWhy {
  /** What made the lock send a cellular ping of this reason. */
  readonly cellular: string;
  /** The same for a GPS ping. */
  readonly gps: string;
  /** The column that must allow the ping, and its name for users; null if no column does. */
  readonly needs: { readonly column: StateColumn; readonly name: string } | null;
  /** Commands that may have caused the ping. */
  readonly commands: readonly Command['type'][];
  readonly restsOn: Section;
}

// Parts of sentences that several rows share.
const RIDE = 'sent while the lock is unlocked and moving: a ride, in which its cellular connection is on';
const FAREWELL = 'sent when the lock is about to leave the network, before it disconnects';
const FROM_A_PHONE = 'sent by the user’s phone instead of the lock, with the phone’s own coordinates';
const FOR_CELLULAR = '; it is meant for cellular pings';
const FOR_CLOSE = '; it is meant for close-connection pings';

/** The rows, in the order of the specification. Each sentence follows “REASON_…: ”. */
export const REASON_WHY: Readonly<Record<KnownReason, ReasonWhy>> = Object.freeze({
  REASON_THEFT: {
    cellular:
      'sent when the lock is locked and has been moving for more than 6 s, which counts as theft; at once, without ' +
      'waiting for a fix, and again at least every 5 min',
    gps:
      'sent when the lock is locked and has been moving for more than 6 s, which counts as theft; with its GPS ' +
      'position every 10 s while it moves',
    needs: { column: 'theft', name: 'theft tracking' },
    commands: [],
    restsOn: SECTIONS.power,
  },
  REASON_PERIOD_TRACKING: {
    cellular: 'the daily ping, sent once daily at the lock’s own minute of the day',
    gps: 'the daily ping, sent once daily at the lock’s own minute of the day; with the position, once there is a fix',
    needs: { column: 'period', name: 'the daily ping' },
    commands: [],
    restsOn: SECTIONS.limits,
  },
  REASON_STATE_PING: {
    cellular: 'sent when the lock is locked or unlocked; each change makes its own ping, with that moment’s state',
    gps: 'sent when the lock is locked or unlocked; one GPS ping follows for the latest change, once there is a fix',
    needs: { column: 'stateChange', name: 'state change pings' },
    commands: ['unlock', 'lock'],
    restsOn: SECTIONS.power,
  },
  REASON_UNLOCKED_PING: {
    cellular: `${RIDE}, with ride tracking switched on; it is meant for GPS pings`,
    gps:
      'sent while the lock is unlocked and moving, with ride tracking switched on: a ride, in which it sends its GPS ' +
      'position every 30 s',
    needs: { column: 'rideTracking', name: 'ride tracking' },
    commands: [],
    restsOn: SECTIONS.power,
  },
  REASON_UNLOCKED_MOVEMENT: {
    cellular: `${RIDE}; at its start and at least every 5 min`,
    gps: `${RIDE}${FOR_CELLULAR}`,
    needs: { column: 'cellOnInRide', name: 'the connection in a ride' },
    commands: [],
    restsOn: SECTIONS.power,
  },
  REASON_GPS_PING: {
    cellular: 'sent when the lock is asked by command where it is, by GPS; it is meant for GPS pings',
    gps: 'sent when the lock is asked by command where it is, by GPS, once there is a fix',
    needs: { column: 'commands', name: 'commands' },
    commands: ['locate-gps'],
    restsOn: SECTIONS.model,
  },
  REASON_CELL_PING: {
    cellular: 'sent when the lock is asked by command where it is, by the network’s cells',
    gps: `sent when the lock is asked by command where it is, by the network’s cells${FOR_CELLULAR}`,
    needs: { column: 'commands', name: 'commands' },
    commands: ['locate-cell'],
    restsOn: SECTIONS.model,
  },
  REASON_NETWORK_PING: {
    cellular: 'sent while the lock keeps its connection and waits for commands; on connecting, and every 15 min',
    gps: `sent while the lock keeps its connection and waits for commands${FOR_CELLULAR}`,
    needs: null,
    commands: [],
    restsOn: SECTIONS.reasons,
  },
  REASON_RESET: {
    cellular: 'sent when the lock’s modem has restarted; first, on the next connection',
    gps: `sent when the lock’s modem has restarted${FOR_CELLULAR}`,
    needs: null,
    commands: ['reset'],
    restsOn: SECTIONS.reasons,
  },
  REASON_CLOSE_CONNECTION: {
    cellular: `${FAREWELL}${FOR_CLOSE}`,
    gps: `${FAREWELL}${FOR_CLOSE}`,
    needs: null,
    commands: [],
    restsOn: SECTIONS.reasons,
  },
  PHONE: {
    cellular: FROM_A_PHONE,
    gps: FROM_A_PHONE,
    needs: null,
    commands: [],
    restsOn: SECTIONS.reasons,
  },
});

/** Why a lock disconnects, by the state that the ping itself reports. Follows “REASON_CLOSE_CONNECTION: ”. */
export const CLOSE_WHY: Readonly<Record<EffectiveState, string>> = Object.freeze({
  AIRPLANE: 'with airplane mode on the lock falls silent, and first reports the new switch',
  LOW_BATTERY: 'below 10 % the lock falls silent, and first reports the new battery level',
  RECOVERY: 'sent when the lock is about to leave the network, which recovery mode keeps: it connects again at once',
  HIGH: 'sent when nothing keeps the connection open, as outside the window: 20 s after the last uplink or downlink',
  MID: 'sent when nothing keeps the connection open any longer: 20 s after the last uplink or downlink',
});

/** For a reason number outside the table. Follows the reason and “: ”. */
export const UNRECOGNIZED_WHY =
  'its number is not in the table, so the cause of the ping is unknown; the ping is stored and delivered unchanged';

/** For an acknowledgement. */
export const ACK_WHY = 'An acknowledgement: sent each time the lock receives a command, to report the outcome.';
