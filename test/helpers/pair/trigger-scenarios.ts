/**
 * Scenarios for the triggers of a lock's pings, and for the ranks of triggers (protocol.md §2, "Triggers"). Each
 * scenario cites the sentence from which its expected lines follow. A line has the seconds since the start, and the
 * event. A motion must last for more than 6 s, so that a theft starts at 6.001 s. A motion counts for 2 min after it
 * has stopped, so that the connection closes 120 s later.
 */
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { lockManually, moveFor, PERIOD_HOUR, power, type Scenario, secondsOf, unlockManually } from './scenario.js';

/** Hour of the UTC day. */
const NOON = 12;

/**
 * The lines of a connection with one cellular ping and, `fixAfterSeconds` later, one GPS ping. It closes 20 s after the
 * last ping.
 */
function connectionWithFix(fromSeconds: number, reason: string, fixAfterSeconds: number): string[] {
  const closeSeconds = fromSeconds + fixAfterSeconds + 20;
  return [
    `${fromSeconds} connect`,
    `${fromSeconds} cellular ${reason}`,
    `${fromSeconds + fixAfterSeconds} gps ${reason}`,
    `${closeSeconds} close`,
    `${closeSeconds} disconnect closed`,
  ];
}

export const TRIGGER_SCENARIOS: readonly Scenario[] = [
  {
    name: 'a theft',
    citation: 'locked and moving for more than 6 s; a GPS ping every 10 s while moving; ends 2 min without motion',
    hour: NOON,
    play: (run) => moveFor(run, Seconds(60)).advance(Minutes(10)),
    expect: [
      '6.001 connect',
      '6.001 cellular THEFT',
      '36.001 gps THEFT',
      '46.001 gps THEFT',
      '56.001 gps THEFT',
      '180 close',
      '180 disconnect closed',
    ],
  },
  {
    name: 'a theft of four minutes',
    citation: 'a GPS ping every 10 s while moving; motion-unlikely: 20 in a row say over 1 m/s at exactly one position',
    hour: NOON,
    play: (run) => moveFor(run, Minutes(4)).advance(Minutes(10)),
    expect: (eventLines) => {
      const pings = secondsOf(eventLines, 'gps THEFT').length;
      // The first fix comes after 36 s, and then one each 10 s up to 236 s. That is over 20 pings, so the judge would
      // find `motion-unlikely`, and fail the scenario, if the simulated lock reported one exact position.
      return pings === 21 ? undefined : `${pings} GPS pings`;
    },
  },
  {
    name: 'a long theft under a roof',
    citation: 'While theft or ride lasts, a cellular ping of its reason is sent at least every 5 min',
    hour: NOON,
    lock: { skyOpen: false },
    play: (run) => moveFor(run, Minutes(11)).advance(Minutes(10)),
    expect: [
      '6.001 connect',
      '6.001 cellular THEFT',
      '306.001 cellular THEFT',
      '606.001 cellular THEFT',
      '780 close',
      '780 disconnect closed',
    ],
  },
  {
    name: 'unlocked, locked and unlocked in a day',
    citation: 'time to a first fix 30 s (5 s when the last fix is under 2 h old); closes 20 s after its last uplink',
    hour: NOON,
    play: (run) => {
      unlockManually(run).advance(Seconds(30) + Minutes(110));
      lockManually(run).advance(Seconds(5) + Minutes(130));
      unlockManually(run).advance(Minutes(10));
    },
    // Locked after 30 s + 110 min, when the last fix is under 2 h old; unlocked 5 s + 130 min later.
    expect: [
      ...connectionWithFix(0, 'STATE_PING', 30),
      ...connectionWithFix(6630, 'STATE_PING', 5),
      ...connectionWithFix(14_435, 'STATE_PING', 30),
    ],
  },
  {
    name: 'unlocked under a roof',
    citation: 'The search for a fix ends after 120 s, keeps the connection open while it lasts',
    hour: NOON,
    lock: { skyOpen: false },
    play: (run) => unlockManually(run).advance(Minutes(10)),
    expect: ['0 connect', '0 cellular STATE_PING', '120 close', '120 disconnect closed'],
  },
  {
    name: 'a ride',
    citation: 'REASON_UNLOCKED_MOVEMENT (cellular); with ride tracking on, a GPS ping REASON_UNLOCKED_PING every 30 s',
    hour: NOON,
    lock: { lockState: 'unlocked', power: power({ rideTracking: true }) },
    play: (run) => moveFor(run, Seconds(100)).advance(Minutes(10)),
    expect: [
      '0 connect',
      '0 cellular UNLOCKED_MOVEMENT',
      '30 gps UNLOCKED_PING',
      '60 gps UNLOCKED_PING',
      '90 gps UNLOCKED_PING',
      '220 close',
      '220 disconnect closed',
    ],
  },
  {
    name: 'a long ride without tracking',
    citation: 'a cellular ping of its reason is sent at least every 5 min; ends 2 min without motion',
    hour: NOON,
    lock: { lockState: 'unlocked' },
    play: (run) => moveFor(run, Minutes(11)).advance(Minutes(10)),
    expect: [
      '0 connect',
      '0 cellular UNLOCKED_MOVEMENT',
      '300 cellular UNLOCKED_MOVEMENT',
      '600 cellular UNLOCKED_MOVEMENT',
      '780 close',
      '780 disconnect closed',
    ],
  },
  {
    name: 'three days at rest',
    citation: 'once daily, at a minute of the day of the lock’s own',
    // The third day is an hour short, so that a fourth ping would be a fault.
    hour: PERIOD_HOUR,
    play: (run) => run.advance(Hours(71)),
    // Once a day, from the first day on.
    expect: [0, 86_400, 172_800].flatMap((seconds) => connectionWithFix(seconds, 'PERIOD_TRACKING', 30)),
  },
  {
    name: 'a program that runs the lock late',
    citation: 'period-too-soon: a sequence begins less than 23 h after another',
    hour: PERIOD_HOUR - 1,
    play: (run) => run.advanceWithLateWakeUps(Hours(3)).advance(Hours(24)),
    expect: (eventLines) => {
      const [first = 0, second = 0] = secondsOf(eventLines, 'cellular PERIOD_TRACKING');
      return second - first >= 23 * 3600 && second - first <= 25 * 3600 ? undefined : `${first}, then ${second}`;
    },
  },
];

/** Two triggers at once: the pings of the trigger with the higher rank come first. */
export const RANK_SCENARIOS: readonly Scenario[] = [
  {
    name: 'locked while it moves',
    citation: 'Theft outranks state change',
    hour: NOON,
    lock: { lockState: 'unlocked' },
    play: (run) => {
      run.input({ type: 'motion', moving: true }).advance(Seconds(10));
      lockManually(run).advance(Seconds(34));
    },
    expect: [
      '0 connect',
      '0 cellular UNLOCKED_MOVEMENT',
      '10 cellular STATE_PING',
      '16.001 cellular THEFT',
      '40 gps THEFT',
      '40 gps STATE_PING',
    ],
  },
  {
    name: 'unlocked for a ride',
    citation: 'state change outranks ride',
    hour: NOON,
    lock: { power: power({ rideTracking: true }) },
    play: (run) => {
      unlockManually(run).advance(Seconds(1)).input({ type: 'motion', moving: true }).advance(Seconds(40));
    },
    expect: [
      '0 connect',
      '0 cellular STATE_PING',
      '1 cellular UNLOCKED_MOVEMENT',
      '30 gps STATE_PING',
      '30 gps UNLOCKED_PING',
    ],
  },
  {
    name: 'a ride at the minute of the Period Ping',
    citation: 'ride outranks period',
    hour: PERIOD_HOUR - 10 / 3600,
    lock: { lockState: 'unlocked', power: power({ rideTracking: true }) },
    play: (run) => run.input({ type: 'motion', moving: true }).advance(Seconds(50)),
    expect: [
      '0 connect',
      '0 cellular UNLOCKED_MOVEMENT',
      '10 cellular PERIOD_TRACKING',
      '30 gps UNLOCKED_PING',
      '30 gps PERIOD_TRACKING',
    ],
  },
];
