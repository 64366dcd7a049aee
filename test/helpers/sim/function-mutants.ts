/**
 * Firmware that lacks or falsifies one function (protocol.md §3, "What a lock must do"): how the trace of a healthy
 * fleet becomes that of such a fleet, the bug of the simulator that does the same, and what tells the two apart.
 */
import type { Bug } from '../../../firmware-sim/faults/bug.js';
import { BUGS } from '../../../firmware-sim/faults/bugs.js';
import { Hours } from '../../../proto/clock.js';
import type { RuleName } from '../../../proto/power/rules.js';
import { type Mutation, mutantOf } from './mutant-trace.js';

/** One function that is left out or falsified. */
export interface FunctionMutant {
  readonly name: string;
  /** The trace of such firmware, from that of a healthy fleet. Left-out lines are empty. */
  readonly mutate: (lines: readonly string[]) => string[];
  /** The same firmware in the simulator. */
  readonly bug: Bug;
  /** The rule that finds it without a world; null if that can be none. */
  readonly rule: RuleName | null;
  /** The row of the certificate, without a state, that no longer passes; `position-true` needs a world. */
  readonly row: string;
  /** What the sentences of `owed` say, if the world is known; null if nothing is owed. */
  readonly owed: RegExp | null;
}

type Ping = Parameters<Mutation>[0];

const isGps = ({ ping_type }: Ping): boolean => ping_type === 'gps';

function without(reason: string, isLeftOut: (ping: Ping) => boolean = () => true): FunctionMutant['mutate'] {
  return (lines) => mutantOf(lines, (ping) => (ping.reason === reason && isLeftOut(ping) ? null : ping));
}

function bugNamed(name: string): Bug {
  const bug = BUGS.find((each) => each.name === name);
  if (bug === undefined) throw new Error(`there is no bug ${name}`);
  return bug;
}

/** Each GPS ping says the position of the lock's first one. */
function freeze(lines: readonly string[]): string[] {
  const first = new Map<string, object>();
  return mutantOf(lines, (ping, mac) => {
    if (!isGps(ping)) return ping;
    const { latitude, longitude } = ping;
    const position = first.get(mac) ?? { latitude, longitude };
    first.set(mac, position);
    return { ...ping, ...position };
  });
}

/** Pings and acknowledgements of locks say a time 2 h before the right one. */
function setBack(lines: readonly string[]): string[] {
  return lines.map((line) => {
    const event = JSON.parse(line) as Partial<Record<'ping' | 'ack', { date: string }>> & { source?: string };
    const uplink = event.ping ?? event.ack;
    if (uplink === undefined || event.source === 'phone') return line;
    uplink.date = new Date(Date.parse(uplink.date) - Hours(2)).toISOString();
    return JSON.stringify(event);
  });
}

export const FUNCTION_MUTANTS: readonly FunctionMutant[] = [
  {
    name: 'no theft pings',
    mutate: without('REASON_THEFT'),
    bug: bugNamed('no-theft-pings'),
    rule: null,
    row: 'theft-cellular',
    owed: /REASON_THEFT/,
  },
  {
    name: 'no state pings',
    mutate: without('REASON_STATE_PING'),
    bug: bugNamed('no-state-pings'),
    rule: 'change-untold',
    row: 'state-change-cellular',
    owed: /REASON_STATE_PING/,
  },
  {
    name: 'no GPS of theft',
    mutate: without('REASON_THEFT', isGps),
    bug: bugNamed('no-theft-gps'),
    rule: null,
    row: 'theft-gps',
    owed: /no GPS REASON_THEFT/,
  },
  {
    name: 'no GPS of period',
    mutate: without('REASON_PERIOD_TRACKING', isGps),
    bug: bugNamed('no-period-gps'),
    rule: 'gps-missing',
    row: 'daily-gps',
    owed: /no GPS REASON_PERIOD_TRACKING/,
  },
  {
    name: 'no GPS of ride',
    mutate: without('REASON_UNLOCKED_PING'),
    bug: bugNamed('no-ride-gps'),
    rule: null,
    row: 'ride-tracking',
    owed: /no GPS REASON_UNLOCKED_PING/,
  },
  {
    name: 'no network pings',
    mutate: without('REASON_NETWORK_PING'),
    bug: bugNamed('no-network-pings'),
    rule: 'network-ping-missing',
    row: 'network-ping',
    owed: null,
  },
  {
    name: 'no close-connection pings',
    mutate: without('REASON_CLOSE_CONNECTION'),
    bug: bugNamed('no-close-pings'),
    rule: 'close-missing',
    row: 'close-connection',
    owed: null,
  },
  {
    name: 'no movement pings',
    mutate: without('REASON_UNLOCKED_MOVEMENT'),
    bug: bugNamed('no-movement-pings'),
    rule: 'refresh-missing',
    row: 'ride-movement',
    owed: /no cellular REASON_UNLOCKED_MOVEMENT/,
  },
  {
    name: 'no reset ping',
    mutate: without('REASON_RESET'),
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
    mutate: freeze,
    bug: bugNamed('frozen-position'),
    rule: 'motion-unlikely',
    row: 'position-plausible',
    owed: /m from the true one/,
  },
  {
    name: 'clock 2 h behind',
    mutate: setBack,
    bug: bugNamed('clock-2h-behind'),
    rule: 'clock-behind',
    row: 'clock-true',
    owed: null,
  },
];
