/** All scenarios of the mutation check, including one for each row of the state table in protocol.md §2. */
import { Hours, Minutes } from '../../../proto/clock.js';
import { COMMAND_SCENARIOS, CONNECTION_SCENARIOS, SILENCE_SCENARIOS } from './link-scenarios.js';
import type { PairRun } from './run.js';
import { kindsIn, power, type Scenario, sendCommand, unlockManually } from './scenario.js';
import { RANK_SCENARIOS, TRIGGER_SCENARIOS } from './trigger-scenarios.js';

/** Hour of the UTC day. */
const NOON = 12;

/** Causes every kind of uplink: a theft, a ride, two days of time, and a command while the lock is connected. */
function causeAllEvents(run: PairRun): void {
  run.input({ type: 'motion', moving: true }).advance(Minutes(1));
  sendCommand(run, 1, { type: 'siren', seconds: 1 });
  unlockManually(run).advance(Minutes(1));
  run.input({ type: 'motion', moving: false }).advance(Hours(48));
}

// The kinds of events that causeAllEvents leads to, as event lines without times. A state shows those that it allows.
const STATE_AND_PERIOD = ['STATE_PING', 'PERIOD_TRACKING'].flatMap((reason) => [`cellular ${reason}`, `gps ${reason}`]);
const THEFT_AND_RIDE = ['cellular THEFT', 'cellular UNLOCKED_MOVEMENT', 'gps THEFT', 'gps UNLOCKED_PING'];
const COMMAND_ANSWERS = ['ack 1 ok', 'siren 1 s'];
const CLOSE = ['close', 'disconnect closed'];
const RIDE_TRACKING = { rideTracking: true };

/** The scenario for a row of the state table in protocol.md §2: the kinds of events that a lock in that state shows. */
function stateScenario(name: string, lock: Scenario['lock'], expectedKinds: readonly string[]): Scenario {
  const expected = JSON.stringify([...expectedKinds].sort());
  return {
    name: `all events in ${name}`,
    citation: `the table's row ${name}`,
    hour: NOON,
    ...(lock && { lock }),
    play: causeAllEvents,
    expect: (eventLines) => {
      const kinds = kindsIn(eventLines);
      return JSON.stringify(kinds) === expected ? undefined : kinds.join(', ') || 'nothing at all';
    },
  };
}

const STATE_SCENARIOS: readonly Scenario[] = [
  stateScenario('AIRPLANE', { power: power({ ...RIDE_TRACKING, airplane: true }) }, []),
  stateScenario(
    'AIRPLANE before RECOVERY and HIGH',
    { power: power({ ...RIDE_TRACKING, airplane: true, recovery: true, mode: 'HIGH' }) },
    [],
  ),
  stateScenario(
    'AIRPLANE before LOW_BATTERY',
    { power: power({ ...RIDE_TRACKING, airplane: true }), batteryPercent: 5 },
    [],
  ),
  stateScenario('LOW_BATTERY', { power: power(RIDE_TRACKING), batteryPercent: 9 }, [
    'connect',
    'cellular THEFT',
    'gps THEFT',
    ...CLOSE,
  ]),
  stateScenario(
    'LOW_BATTERY before RECOVERY and HIGH',
    { power: power({ ...RIDE_TRACKING, recovery: true, mode: 'HIGH' }), batteryPercent: 9 },
    ['connect', 'cellular THEFT', 'gps THEFT', ...CLOSE],
  ),
  stateScenario('RECOVERY', { power: power({ ...RIDE_TRACKING, recovery: true }) }, [
    'connect',
    'cellular NETWORK_PING',
    ...STATE_AND_PERIOD,
    ...THEFT_AND_RIDE,
    ...COMMAND_ANSWERS,
  ]),
  stateScenario('HIGH', { power: power({ ...RIDE_TRACKING, mode: 'HIGH' }) }, [
    'connect',
    'cellular NETWORK_PING',
    ...STATE_AND_PERIOD,
    ...THEFT_AND_RIDE,
    ...COMMAND_ANSWERS,
    ...CLOSE,
  ]),
  stateScenario('MID at exactly 10 %', { power: power(RIDE_TRACKING), batteryPercent: 10 }, [
    'connect',
    ...STATE_AND_PERIOD,
    ...THEFT_AND_RIDE,
    ...COMMAND_ANSWERS,
    ...CLOSE,
  ]),
];

/** All scenarios. */
export const SCENARIOS: readonly Scenario[] = [
  ...TRIGGER_SCENARIOS,
  ...RANK_SCENARIOS,
  ...CONNECTION_SCENARIOS,
  ...COMMAND_SCENARIOS,
  ...STATE_SCENARIOS,
  ...SILENCE_SCENARIOS,
];
