/** All scenarios of the mutation check, including one for each row of the state table in protocol.md §2. */
import { Hours, Minutes } from '../../../proto/clock.js';
import { COMMANDED, KEPT, SILENT } from './link-scenarios.js';
import type { PairRun } from './run.js';
import { kindsIn, power, type Scenario, sendCommand, unlockManually } from './scenario.js';
import { RANKS, TRIGGERS } from './trigger-scenarios.js';

const NOON = 12;

/** Causes every kind of uplink: a theft, a ride, two days of time, and a command while the lock is connected. */
function causeAllEvents(run: PairRun): void {
  run.input({ type: 'motion', moving: true }).advance(Minutes(1));
  sendCommand(run, 1, { type: 'siren', seconds: 1 });
  unlockManually(run).advance(Minutes(1));
  run.input({ type: 'motion', moving: false }).advance(Hours(48));
}

const AWAKE = ['STATE_PING', 'PERIOD_TRACKING'].flatMap((reason) => [`cellular ${reason}`, `gps ${reason}`]);
const MOVED = ['cellular THEFT', 'cellular UNLOCKED_MOVEMENT', 'gps THEFT', 'gps UNLOCKED_PING'];
const ANSWERS = ['ack 1 ok', 'siren 1 s'];
const SLEEPS = ['close', 'disconnect closed'];
const TRACKED = { rideTracking: true };

/** A scenario for a row of the table in protocol.md §2: the events that a lock in that state shows. */
function row(name: string, lock: Scenario['lock'], seen: readonly string[]): Scenario {
  const wanted = JSON.stringify([...seen].sort());
  return {
    name: `all that happens, in ${name}`,
    citation: `the table's row ${name}`,
    hour: NOON,
    ...(lock && { lock }),
    play: causeAllEvents,
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

/** All scenarios. */
export const SCENARIOS: readonly Scenario[] = [...TRIGGERS, ...RANKS, ...KEPT, ...COMMANDED, ...ROWS, ...SILENT];
