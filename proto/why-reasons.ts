/**
 * Why a lock sends a ping of some reason: a row for each row of the table in reasons.ts, with the trigger of the power
 * model behind it (protocol.md §2), and one for what is no ping and for a reason that the table lacks.
 */
import type { Command } from './ping.js';
import type { StateRow } from './power-model.js';
import type { KnownReason } from './reasons.js';
import { SECTIONS, type Section } from './why-step.js';

/** A trigger as the state table has it: the column that allows it. */
type StateColumn = keyof Pick<
  StateRow,
  'theft' | 'period' | 'stateChange' | 'cellOnInRide' | 'rideTracking' | 'commands'
>;

export interface ReasonWhy {
  /** What made the lock send a cellular ping of this reason. */
  readonly cellular: string;
  /** The same for a GPS ping. */
  readonly gps: string;
  /** What the state table must allow for it, and how people call that; null where no column stands for it. */
  readonly needs: { readonly column: StateColumn; readonly name: string } | null;
  /** Commands that may have asked for it. */
  readonly commands: readonly Command['type'][];
  readonly restsOn: Section;
}

const RIDE = 'The lock was unlocked and moving: a ride, in which its cellular connection is on';
const FAREWELL = 'The lock was about to leave the network, and says so before it disconnects';

/** The rows, in the order of the specification. */
export const REASON_WHY: Readonly<Record<KnownReason, ReasonWhy>> = Object.freeze({
  REASON_THEFT: {
    cellular:
      'The lock was locked and had been moving for more than 6 s, which counts as theft: it says so at once, without ' +
      'waiting for a fix, and again at least every 5 min.',
    gps:
      'The lock was locked and had been moving for more than 6 s, which counts as theft: it sends its GPS position ' +
      'every 10 s while it moves.',
    needs: { column: 'theft', name: 'theft tracking' },
    commands: [],
    restsOn: SECTIONS.power,
  },
  REASON_PERIOD_TRACKING: {
    cellular: 'The lock’s own minute of the day had come: it sends its daily ping.',
    gps: 'The lock’s own minute of the day had come, and it had found a fix: its daily ping, with the position.',
    needs: { column: 'period', name: 'the daily ping' },
    commands: [],
    restsOn: SECTIONS.limits,
  },
  REASON_STATE_PING: {
    cellular: 'The lock was locked or unlocked: each change makes its own ping, with that moment’s state.',
    gps: 'The lock was locked or unlocked, and had found a fix: one GPS ping follows for the latest change.',
    needs: { column: 'stateChange', name: 'state change pings' },
    commands: ['unlock', 'lock'],
    restsOn: SECTIONS.power,
  },
  REASON_UNLOCKED_PING: {
    cellular: `${RIDE}, and ride tracking is switched on; this reason is meant for GPS pings.`,
    gps: 'The lock was unlocked and moving, with ride tracking switched on: a ride, in which it sends its GPS position every 30 s.',
    needs: { column: 'rideTracking', name: 'ride tracking' },
    commands: [],
    restsOn: SECTIONS.power,
  },
  REASON_UNLOCKED_MOVEMENT: {
    cellular: `${RIDE}: it says so at its beginning and at least every 5 min.`,
    gps: `${RIDE}; this reason is meant for cellular pings.`,
    needs: { column: 'cellOnInRide', name: 'the connection in a ride' },
    commands: [],
    restsOn: SECTIONS.power,
  },
  REASON_GPS_PING: {
    cellular: 'The lock was asked by command where it is, by GPS; the answer is meant to be a GPS ping.',
    gps: 'The lock was asked by command where it is, by GPS, and had found a fix.',
    needs: { column: 'commands', name: 'commands' },
    commands: ['locate-gps'],
    restsOn: SECTIONS.model,
  },
  REASON_CELL_PING: {
    cellular: 'The lock was asked by command where it is, by the network’s cells.',
    gps: 'The lock was asked by command where it is, by the network’s cells; the answer is meant to be a cellular ping.',
    needs: { column: 'commands', name: 'commands' },
    commands: ['locate-cell'],
    restsOn: SECTIONS.model,
  },
  REASON_NETWORK_PING: {
    cellular:
      'The lock keeps its connection and waits for commands: it says so on connecting and every 15 min while the ' +
      'connection is kept.',
    gps: 'The lock keeps its connection and waits for commands; this reason is meant for cellular pings.',
    needs: null,
    commands: [],
    restsOn: SECTIONS.reasons,
  },
  REASON_RESET: {
    cellular: 'The lock’s modem had restarted: it says so first, on the next connection.',
    gps: 'The lock’s modem had restarted; this reason is meant for cellular pings.',
    needs: null,
    commands: ['reset'],
    restsOn: SECTIONS.reasons,
  },
  REASON_CLOSE_CONNECTION: {
    cellular: `${FAREWELL}; this reason is meant for close-connection pings.`,
    gps: `${FAREWELL}; this reason is meant for close-connection pings.`,
    needs: null,
    commands: [],
    restsOn: SECTIONS.reasons,
  },
  PHONE: {
    cellular: 'A user’s phone sent this instead of the lock, with the phone’s own coordinates.',
    gps: 'A user’s phone sent this instead of the lock, with the phone’s own coordinates.',
    needs: null,
    commands: [],
    restsOn: SECTIONS.reasons,
  },
});

/** Why a lock disconnects, by the state that the ping itself reports. */
export const CLOSE_WHY = Object.freeze({
  AIRPLANE: 'Airplane mode had been switched on: before the lock falls silent it says so, with the new switch.',
  LOW_BATTERY: 'The battery had fallen below 10 %: before the lock falls silent it says so, with the new battery.',
  RECOVERY: 'The lock was about to leave the network, though recovery mode keeps the connection: it may be restarting.',
  HIGH: 'Nothing kept the connection open: the high window was closed, or the lock connects anew at once.',
  MID: 'Nothing kept the connection open any longer: a lock closes it 20 s after its last uplink or downlink.',
});

/** For a reason number outside the table: kept and delivered as it is. */
export const UNRECOGNIZED_WHY =
  'What made the lock send it is not known: the number of its reason is not in the table, so it is kept as it came.';

/** For an acknowledgement. */
export const ACK_WHY = 'The lock had got a command, and says what it made of it.';
