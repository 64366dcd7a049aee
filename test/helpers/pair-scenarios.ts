/** The scenarios of the mutation check: what must be seen of a lock in a given world, by protocol.md §2. */
import { Hours, Minutes, Seconds } from '../../proto/clock.js';
import type { PowerSettings } from '../../proto/ping.js';
import type { PairRun } from './pair-run.js';
import { kindsIn, type Scenario, type Story, secondsOf, tellLock } from './pair-scenario.js';

const NOON = 12;
/** When the test's lock makes its Period Ping: the minute of the day that its MAC gives it. */
const PERIOD_HOUR = 6.35;

function power(some: Partial<PowerSettings>): PowerSettings {
  return { mode: 'MID', rideTracking: false, airplane: false, recovery: false, ...some };
}

const RECOVERY = { power: power({ recovery: true }) };
const HIGH = { power: power({ mode: 'HIGH' }) };

const moves = (run: PairRun, span: number): PairRun =>
  run.give({ type: 'motion', moving: true }).pass(span).give({ type: 'motion', moving: false });
const locks = (run: PairRun): PairRun => run.give({ type: 'lock-state', lockState: 'locked' });
const unlocks = (run: PairRun): PairRun => run.give({ type: 'lock-state', lockState: 'unlocked' });

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

const TRIGGERS: readonly Scenario[] = [
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

const RANKS: readonly Scenario[] = [
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

/** Quarters of an hour in seconds, from one up to another that is left out. */
const quarters = (from: number, to: number): string[] => {
  const lines: string[] = [];
  for (let seconds = from; seconds < to; seconds += 900) lines.push(`${seconds} cellular NETWORK_PING`);
  return lines;
};

const without = (story: Story, ...whats: string[]): string[] =>
  story.filter((line) => !whats.some((what) => line.endsWith(what)));

const KEPT: readonly Scenario[] = [
  {
    name: 'a day in HIGH',
    says: 'HIGH inside its window (07:00–19:00 at UTC offset 0): REASON_NETWORK_PING on connecting and every 15 min',
    hour: PERIOD_HOUR + 0.1,
    lock: HIGH,
    play: (run) => run.pass(Hours(23)),
    expect: (story) => {
      const opens = Math.round((7 - PERIOD_HOUR - 0.1) * 3600);
      const wanted = [
        `${opens} connect`,
        ...quarters(opens, opens + 12 * 3600),
        `${opens + 12 * 3600} close`,
        `${opens + 12 * 3600} disconnect closed`,
      ];
      return sameStory(story, wanted);
    },
  },
  {
    name: 'a night in RECOVERY',
    says: 'RECOVERY always',
    hour: 19,
    lock: RECOVERY,
    play: (run) => run.pass(Hours(11)),
    expect: ['0 connect', ...quarters(0, 11 * 3600 + 1)],
  },
  {
    name: 'a night in RECOVERY and HIGH',
    says: 'recovery keeps the connection "at all times", which the HIGH window does not',
    hour: 19,
    lock: { power: power({ recovery: true, mode: 'HIGH' }) },
    play: (run) => run.pass(Hours(11)),
    expect: ['0 connect', ...quarters(0, 11 * 3600 + 1)],
  },
  {
    name: 'a connection that dies',
    says: 'keepalive 300 s; tries again after 10 s',
    hour: NOON,
    lock: { ...RECOVERY, skyOpen: false },
    play: (run) => {
      run.pass(Seconds(100)).network.die();
      run.pass(Seconds(100));
      unlocks(run).pass(Seconds(400));
    },
    expect: (story) =>
      sameStory(without(story, 'keepalive', 'dropped'), [
        '0 connect',
        '0 cellular NETWORK_PING',
        '510 connect',
        '510 cellular STATE_PING',
        '510 cellular NETWORK_PING',
      ]),
  },
  {
    name: 'a gateway that is gone',
    says: 'tries again after 10, 30 and 60 s, then every 5 min ± 20 %',
    hour: NOON,
    play: (run) => {
      run.listen(false);
      unlocks(run).pass(Hours(6));
    },
    expect: (story) => {
      const tries = secondsOf(story, 'tries');
      const waits = tries.slice(1).map((seconds, index) => Math.round(seconds - (tries[index] ?? 0)));
      const first = waits.slice(0, 3).join();
      if (first !== '10,30,60') return `waited ${first} s first`;
      const later = waits.slice(3);
      const [least, most] = [Math.min(...later), Math.max(...later)];
      // Of 70 waits that are spread evenly from 240 to 360 s, some come near to either end.
      return least >= 240 && least < 255 && most <= 360 && most > 345 ? undefined : `then ${least} to ${most} s`;
    },
  },
  {
    name: 'more than the buffer holds',
    says: 'It keeps what it made: 256 uplinks, of which the oldest that is not REASON_THEFT goes first',
    hour: NOON,
    lock: { skyOpen: false },
    play: (run) => {
      run.give({ type: 'coverage', covered: false });
      for (let change = 0; change < 300; change++) {
        (change % 2 === 0 ? unlocks(run) : locks(run)).pass(Seconds(1));
      }
      run.give({ type: 'coverage', covered: true }).pass(Hours(1));
    },
    expect: (story, run) => {
      const seen = secondsOf(story, 'cellular STATE_PING').length;
      const dropped = run.newest?.dropped ?? 0;
      return seen === 256 && dropped === 44 ? undefined : `${seen} of 300 came, ${dropped} were told to be dropped`;
    },
  },
];

function sameStory(story: Story, wanted: Story): string | undefined {
  const index = Array.from({ length: Math.max(story.length, wanted.length) }).findIndex(
    (_, at) => story[at] !== wanted[at],
  );
  return index < 0 ? undefined : `${story[index] ?? 'nothing more'}, not ${wanted[index] ?? 'nothing more'}`;
}

const COMMANDS: readonly Scenario[] = [
  {
    name: 'locked by command',
    says: 'lock (the lock gives a 5 s warning tone first)',
    hour: NOON,
    lock: { ...RECOVERY, lockState: 'unlocked', skyOpen: false },
    play: (run) => {
      tellLock(run.pass(Seconds(60)), 1, { type: 'lock' });
      run.pass(Seconds(60));
    },
    expect: ['0 connect', '0 cellular NETWORK_PING', '60 tone 5 s', '65 lock', '65 cellular STATE_PING', '65 ack 1 ok'],
  },
  {
    name: 'located by command',
    says: 'one GPS ping REASON_GPS_PING, or one cellular ping with a position REASON_CELL_PING',
    hour: NOON,
    lock: RECOVERY,
    play: (run) => {
      tellLock(run.pass(Seconds(60)), 1, { type: 'locate-gps' });
      run.pass(Seconds(60));
      tellLock(run, 2, { type: 'locate-cell' });
      run.pass(Seconds(60));
    },
    expect: [
      '0 connect',
      '0 cellular NETWORK_PING',
      '90 gps GPS_PING',
      '90 ack 1 ok',
      '120 cellular CELL_PING',
      '120 ack 2 ok',
    ],
  },
  {
    name: 'the modem restarted by command',
    says: 'by command after a close-connection ping: one cellular ping REASON_RESET, first on the next connection',
    hour: NOON,
    lock: RECOVERY,
    play: (run) => {
      tellLock(run.pass(Seconds(60)), 1, { type: 'reset' });
      run.pass(Seconds(60));
    },
    expect: [
      '0 connect',
      '0 cellular NETWORK_PING',
      '60 ack 1 ok',
      '60 close',
      '60 disconnect closed',
      '60 connect',
      '60 cellular RESET',
      '60 cellular NETWORK_PING',
    ],
  },
];

/** Whatever a lock can say by itself, it says: a theft, a ride, two days; and a command while it is connected. */
function livesThroughAll(run: PairRun): void {
  run.give({ type: 'motion', moving: true }).pass(Minutes(1));
  tellLock(run, 1, { type: 'siren', seconds: 1 });
  unlocks(run).pass(Minutes(1));
  run.give({ type: 'motion', moving: false }).pass(Hours(48));
}

const AWAKE = ['STATE_PING', 'PERIOD_TRACKING'].flatMap((reason) => [`cellular ${reason}`, `gps ${reason}`]);
const MOVED = ['cellular THEFT', 'cellular UNLOCKED_MOVEMENT', 'gps THEFT', 'gps UNLOCKED_PING'];
const ANSWERS = ['ack 1 ok', 'siren 1 s'];
const SLEEPS = ['close', 'disconnect closed'];
const TRACKED = { rideTracking: true };

/** A row of the table in protocol.md §2, as what is seen of a lock in that state. */
function row(name: string, lock: Scenario['lock'], seen: readonly string[]): Scenario {
  const wanted = JSON.stringify([...seen].sort());
  return {
    name: `all that happens, in ${name}`,
    says: `the table's row ${name}`,
    hour: NOON,
    ...(lock && { lock }),
    play: livesThroughAll,
    expect: (story) =>
      JSON.stringify(kindsIn(story)) === wanted ? undefined : kindsIn(story).join(', ') || 'nothing at all',
  };
}

const ROWS: readonly Scenario[] = [
  row('AIRPLANE', { power: power({ ...TRACKED, airplane: true }) }, []),
  row('AIRPLANE over the others', { power: power({ ...TRACKED, airplane: true, recovery: true, mode: 'HIGH' }) }, []),
  row('AIRPLANE over LOW_BATTERY', { power: power({ ...TRACKED, airplane: true }), batteryPercent: 5 }, []),
  row('LOW_BATTERY', { power: power(TRACKED), batteryPercent: 9 }, [
    'connect',
    'cellular THEFT',
    'gps THEFT',
    ...SLEEPS,
  ]),
  row(
    'LOW_BATTERY over the others',
    { power: power({ ...TRACKED, recovery: true, mode: 'HIGH' }), batteryPercent: 9 },
    ['connect', 'cellular THEFT', 'gps THEFT', ...SLEEPS],
  ),
  row('RECOVERY', { power: power({ ...TRACKED, recovery: true }) }, [
    'connect',
    'cellular NETWORK_PING',
    ...AWAKE,
    ...MOVED,
    ...ANSWERS,
  ]),
  row('HIGH', { power: power({ ...TRACKED, mode: 'HIGH' }) }, [
    'connect',
    'cellular NETWORK_PING',
    ...AWAKE,
    ...MOVED,
    ...ANSWERS,
    ...SLEEPS,
  ]),
  row('MID at exactly 10 %', { power: power(TRACKED), batteryPercent: 10 }, [
    'connect',
    ...AWAKE,
    ...MOVED,
    ...ANSWERS,
    ...SLEEPS,
  ]),
];

const SILENCE: readonly Scenario[] = [
  {
    name: 'the battery runs low while asleep',
    says: 'on entering LOW_BATTERY it sends a close-connection ping that carries the new battery (connecting for it)',
    hour: NOON,
    play: (run) => {
      run.give({ type: 'battery', percent: 9 }).pass(Hours(30));
    },
    expect: (story, run) =>
      sameStory(story, ['0 connect', '0 close', '0 disconnect closed']) ??
      (run.judge.belief.batteryPercent === 9 ? undefined : 'the battery was not told'),
  },
  {
    name: 'switched to airplane mode by command',
    says: 'The lock acknowledges, sends its close-connection ping, and is silent',
    hour: NOON,
    lock: RECOVERY,
    play: (run) => {
      run.pass(Seconds(60));
      run.order({ id: 1, command: { type: 'set-power', airplane: true }, expiresMs: run.nowMs + Hours(1) });
      run.pass(Minutes(1));
      moves(run, Minutes(1)).pass(Hours(30));
    },
    expect: ['0 connect', '0 cellular NETWORK_PING', '60 ack 1 ok', '60 close', '60 disconnect closed'],
  },
];

/** All of them. */
export const SCENARIOS: readonly Scenario[] = [...TRIGGERS, ...RANKS, ...KEPT, ...COMMANDS, ...ROWS, ...SILENCE];
