/** Scenarios of what makes a lock speak by itself, and of which speaks first (protocol.md §2, "Triggers"). */
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { locks, moves, PERIOD_HOUR, power, type Scenario, secondsOf, unlocks } from './scenario.js';

const NOON = 12;

/** The opening of a connection, and its end 20 s after the last that was said. */
function visit(fromSeconds: number, reason: string, fixAfterSeconds: number): string[] {
  const closes = fromSeconds + fixAfterSeconds + 20;
  return [
    `${fromSeconds} connect`,
    `${fromSeconds} cellular ${reason}`,
    `${fromSeconds + fixAfterSeconds} gps ${reason}`,
    `${closes} close`,
    `${closes} disconnect closed`,
  ];
}

export const TRIGGERS: readonly Scenario[] = [
  {
    name: 'a theft',
    says: 'locked and moving for more than 6 s; a GPS ping every 10 s while moving; ends 2 min without motion',
    hour: NOON,
    play: (run) => moves(run, Seconds(60)).pass(Minutes(10)),
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
    name: 'a long theft under a roof',
    says: 'While theft or ride lasts, a cellular ping of its reason is sent at least every 5 min',
    hour: NOON,
    lock: { skyOpen: false },
    play: (run) => moves(run, Minutes(11)).pass(Minutes(10)),
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
    name: 'unlocked three times in a day',
    says: 'time to a first fix 30 s (5 s when the last fix is under 2 h old); closes 20 s after its last uplink',
    hour: NOON,
    play: (run) => {
      unlocks(run).pass(Seconds(30) + Minutes(110));
      locks(run).pass(Seconds(5) + Minutes(130));
      unlocks(run).pass(Minutes(10));
    },
    expect: [...visit(0, 'STATE_PING', 30), ...visit(6630, 'STATE_PING', 5), ...visit(14_435, 'STATE_PING', 30)],
  },
  {
    name: 'unlocked under a roof',
    says: 'The search for a fix ends after 120 s, keeps the connection open while it lasts',
    hour: NOON,
    lock: { skyOpen: false },
    play: (run) => unlocks(run).pass(Minutes(10)),
    expect: ['0 connect', '0 cellular STATE_PING', '120 close', '120 disconnect closed'],
  },
  {
    name: 'a ride',
    says: 'REASON_UNLOCKED_MOVEMENT (cellular); with ride tracking on, a GPS ping REASON_UNLOCKED_PING every 30 s',
    hour: NOON,
    lock: { lockState: 'unlocked', power: power({ rideTracking: true }) },
    play: (run) => moves(run, Seconds(100)).pass(Minutes(10)),
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
    says: 'a cellular ping of its reason is sent at least every 5 min; ends 2 min without motion',
    hour: NOON,
    lock: { lockState: 'unlocked' },
    play: (run) => moves(run, Minutes(11)).pass(Minutes(10)),
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
    says: 'once daily, at a minute of the day of the lock’s own',
    hour: PERIOD_HOUR,
    play: (run) => run.pass(Hours(71)),
    expect: [0, 86_400, 172_800].flatMap((seconds) => visit(seconds, 'PERIOD_TRACKING', 30)),
  },
  {
    name: 'a host that is late',
    says: 'period-too-soon: a sequence begins less than 23 h after another',
    hour: PERIOD_HOUR - 1,
    play: (run) => run.oversleep(Hours(3)).pass(Hours(24)),
    expect: (story) => {
      const [first = 0, second = 0] = secondsOf(story, 'cellular PERIOD_TRACKING');
      return second - first >= 23 * 3600 && second - first <= 25 * 3600 ? undefined : `${first}, then ${second}`;
    },
  },
];

export const RANKS: readonly Scenario[] = [
  {
    name: 'locked while it moves',
    says: 'Theft outranks state change',
    hour: NOON,
    lock: { lockState: 'unlocked' },
    play: (run) => {
      run.give({ type: 'motion', moving: true }).pass(Seconds(10));
      locks(run).pass(Seconds(34));
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
    says: 'state change outranks ride',
    hour: NOON,
    lock: { power: power({ rideTracking: true }) },
    play: (run) => {
      unlocks(run).pass(Seconds(1)).give({ type: 'motion', moving: true }).pass(Seconds(40));
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
    says: 'ride outranks period',
    hour: PERIOD_HOUR - 10 / 3600,
    lock: { lockState: 'unlocked', power: power({ rideTracking: true }) },
    play: (run) => run.give({ type: 'motion', moving: true }).pass(Seconds(50)),
    expect: [
      '0 connect',
      '0 cellular UNLOCKED_MOVEMENT',
      '10 cellular PERIOD_TRACKING',
      '30 gps UNLOCKED_PING',
      '30 gps PERIOD_TRACKING',
    ],
  },
];
