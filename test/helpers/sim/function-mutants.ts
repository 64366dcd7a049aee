/**
 * Firmware that lacks or falsifies one function (protocol.md §3, "What a lock must do"). For each such firmware: how to
 * make its trace (the recorded messages of its locks) from the trace of a healthy fleet, the bug of the simulator that
 * does the same, and what each of the three checks of a trace must say: the judge, the certificate and the `owed`
 * check.
 */
import type { Bug } from '../../../firmware-sim/faults/bug.js';
import { BUGS } from '../../../firmware-sim/faults/bugs.js';
import { Hours } from '../../../proto/clock.js';
import type { RuleName } from '../../../proto/power/rules.js';
import { type Mutation, mutantOf } from './mutant-trace.js';

/** One function that is left out or falsified. */
export interface FunctionMutant {
  readonly name: string;
  /** Makes the trace of such firmware from the trace of a healthy fleet. The lines of omitted pings become empty. */
  readonly mutate: (lines: readonly string[]) => string[];
  /** The same firmware in the simulator. */
  readonly bug: Bug;
  /** The rule of the judge that finds the fault; null if no rule can, since the judge sees only messages. */
  readonly rule: RuleName | null;
  /**
   * The requirement (row) of the certificate that fails for this firmware. Some rows exist for each power state, such
   * as `theft-gps-mid`; this is their common name, `theft-gps`. `position-true` needs `world` events, which say what
   * truly happened.
   */
  readonly row: string;
  /**
   * What the finding of the `owed` check says, which compares the trace with its `world` events; null for no finding.
   */
  readonly owed: RegExp | null;
}

/** A ping as in a line of a trace. */
type Ping = Parameters<Mutation>[0];

const isGps = ({ ping_type }: Ping): boolean => ping_type === 'gps';

/** Omits the pings of a reason: all of them, or those that `isOmitted` selects. */
function omitPings(reason: string, isOmitted: (ping: Ping) => boolean = () => true): FunctionMutant['mutate'] {
  return (lines) => mutantOf(lines, (ping) => (ping.reason === reason && isOmitted(ping) ? null : ping));
}

function bugNamed(name: string): Bug {
  const bug = BUGS.find((candidate) => candidate.name === name);
  if (bug === undefined) throw new Error(`there is no bug ${name}`);
  return bug;
}

/** Each GPS ping states the position of the lock's first GPS ping. */
function freezePositions(lines: readonly string[]): string[] {
  const firstPositions = new Map<string, object>();
  return mutantOf(lines, (ping, mac) => {
    if (!isGps(ping)) return ping;
    const { latitude, longitude } = ping;
    const position = firstPositions.get(mac) ?? { latitude, longitude };
    firstPositions.set(mac, position);
    return { ...ping, ...position };
  });
}

/** The locks' pings and acknowledgements state a time 2 h before the true time. */
function setClocksBack(lines: readonly string[]): string[] {
  return lines.map((line) => {
    const event = JSON.parse(line) as Partial<Record<'ping' | 'ack', { date: string }>> & { source?: string };
    const uplink = event.ping ?? event.ack;
    if (uplink === undefined || event.source === 'phone') return line;
    uplink.date = new Date(Date.parse(uplink.date) - Hours(2)).toISOString();
    return JSON.stringify(event);
  });
}

/** All functions that the checks are tested with. */
export const FUNCTION_MUTANTS: readonly FunctionMutant[] = [
  {
    name: 'no theft pings',
    mutate: omitPings('REASON_THEFT'),
    bug: bugNamed('no-theft-pings'),
    rule: null,
    row: 'theft-cellular',
    owed: /REASON_THEFT/,
  },
  {
    name: 'no state pings',
    mutate: omitPings('REASON_STATE_PING'),
    bug: bugNamed('no-state-pings'),
    rule: 'change-untold',
    row: 'state-change-cellular',
    owed: /REASON_STATE_PING/,
  },
  {
    name: 'no GPS of theft',
    mutate: omitPings('REASON_THEFT', isGps),
    bug: bugNamed('no-theft-gps'),
    rule: null,
    row: 'theft-gps',
    owed: /no GPS REASON_THEFT/,
  },
  {
    name: 'no GPS of period',
    mutate: omitPings('REASON_PERIOD_TRACKING', isGps),
    bug: bugNamed('no-period-gps'),
    rule: 'gps-missing',
    row: 'daily-gps',
    owed: /no GPS REASON_PERIOD_TRACKING/,
  },
  {
    name: 'no GPS of ride',
    mutate: omitPings('REASON_UNLOCKED_PING'),
    bug: bugNamed('no-ride-gps'),
    rule: null,
    row: 'ride-tracking',
    owed: /no GPS REASON_UNLOCKED_PING/,
  },
  {
    name: 'no network pings',
    mutate: omitPings('REASON_NETWORK_PING'),
    bug: bugNamed('no-network-pings'),
    rule: 'network-ping-missing',
    row: 'network-ping',
    owed: null,
  },
  {
    name: 'no close-connection pings',
    mutate: omitPings('REASON_CLOSE_CONNECTION'),
    bug: bugNamed('no-close-pings'),
    rule: 'close-missing',
    row: 'close-connection',
    owed: null,
  },
  {
    name: 'no movement pings',
    mutate: omitPings('REASON_UNLOCKED_MOVEMENT'),
    bug: bugNamed('no-movement-pings'),
    rule: 'refresh-missing',
    row: 'ride-movement',
    owed: /no cellular REASON_UNLOCKED_MOVEMENT/,
  },
  {
    name: 'no reset ping',
    mutate: omitPings('REASON_RESET'),
    bug: bugNamed('no-reset-ping'),
    rule: null,
    row: 'reset-ping',
    owed: /no cellular REASON_RESET/,
  },
  {
    name: 'swapped coordinates',
    mutate: (lines) =>
      mutantOf(lines, (ping) => (isGps(ping) ? { ...ping, latitude: ping.longitude, longitude: ping.latitude } : ping)),
    bug: bugNamed('swapped-coordinates'),
    rule: null,
    row: 'position-true',
    owed: /m from the true one/,
  },
  {
    name: 'frozen position',
    mutate: freezePositions,
    bug: bugNamed('frozen-position'),
    rule: 'motion-unlikely',
    row: 'position-plausible',
    owed: /m from the true one/,
  },
  {
    name: 'clock 2 h behind',
    mutate: setClocksBack,
    bug: bugNamed('clock-2h-behind'),
    rule: 'clock-behind',
    row: 'clock-true',
    owed: null,
  },
];
