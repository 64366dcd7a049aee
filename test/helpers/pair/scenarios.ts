/** The scenarios of the mutation check: what must be seen of a lock in a given world, by protocol.md §2. */
import { Hours, Minutes } from '../../../proto/clock.js';
import { COMMANDED, KEPT, SILENT } from './link-scenarios.js';
import type { PairRun } from './run.js';
import { kindsIn, power, type Scenario, tellLock, unlocks } from './scenario.js';
import { RANKS, TRIGGERS } from './trigger-scenarios.js';

const NOON = 12;

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

/** All of them. */
export const SCENARIOS: readonly Scenario[] = [...TRIGGERS, ...RANKS, ...KEPT, ...COMMANDED, ...ROWS, ...SILENT];
