/**
 * Scenarios for a lock's connection (kept open, lost, used for commands, closed) and for a full buffer (protocol.md
 * §2). Each scenario cites the sentence of protocol.md from which its expected lines follow. A line has the seconds
 * since the start, and the event that a gateway or a person at the lock observes.
 */
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import {
  type EventLines,
  firstDifference,
  lockManually,
  moveFor,
  PERIOD_HOUR,
  power,
  type Scenario,
  secondsOf,
  sendCommand,
  unlockManually,
} from './scenario.js';

/** Hour of the UTC day. */
const NOON = 12;
/** The interval of network pings on an open connection. */
const NETWORK_PING_SECONDS = 900;
/** Locks that always hold a connection, and that hold one in their window. */
const RECOVERY = { power: power({ recovery: true }) };
const HIGH = { power: power({ mode: 'HIGH' }) };

/** The lines of the network pings, one each 15 min, in seconds from `from` to `to` (exclusive). */
const networkPings = (from: number, to: number): string[] => {
  const lines: string[] = [];
  for (let seconds = from; seconds < to; seconds += NETWORK_PING_SECONDS)
    lines.push(`${seconds} cellular NETWORK_PING`);
  return lines;
};

/** The lines without those of these events. */
const omitEvents = (eventLines: EventLines, ...events: string[]): string[] =>
  eventLines.filter((line) => !events.some((event) => line.endsWith(event)));

/** Connections that a lock keeps open, loses, or can't open. */
export const CONNECTION_SCENARIOS: readonly Scenario[] = [
  {
    name: 'a day in HIGH',
    citation:
      'HIGH inside its window (07:00–19:00 at UTC offset 0): REASON_NETWORK_PING on connecting and every 15 min',
    // The scenario starts 0.1 h after the lock's daily Period Ping, so that there is none in its 23 hours.
    hour: PERIOD_HOUR + 0.1,
    lock: HIGH,
    play: (run) => run.advance(Hours(23)),
    expect: (eventLines) => {
      // The window opens at 07:00 and closes 12 h later, in seconds since the start.
      const opensAt = Math.round((7 - PERIOD_HOUR - 0.1) * 3600);
      const expected = [
        `${opensAt} connect`,
        ...networkPings(opensAt, opensAt + 12 * 3600),
        `${opensAt + 12 * 3600} close`,
        `${opensAt + 12 * 3600} disconnect closed`,
      ];
      return firstDifference(eventLines, expected);
    },
  },
  {
    name: 'a night in RECOVERY',
    citation: 'RECOVERY always',
    hour: 19,
    lock: RECOVERY,
    play: (run) => run.advance(Hours(11)),
    // The last ping comes exactly at the end.
    expect: ['0 connect', ...networkPings(0, 11 * 3600 + 1)],
  },
  {
    name: 'a night in RECOVERY and HIGH',
    citation: 'recovery keeps the connection "at all times", which the HIGH window does not',
    hour: 19,
    lock: { power: power({ recovery: true, mode: 'HIGH' }) },
    play: (run) => run.advance(Hours(11)),
    expect: ['0 connect', ...networkPings(0, 11 * 3600 + 1)],
  },
  {
    name: 'a connection that dies',
    citation: 'keepalive 300 s; tries again after 10 s',
    hour: NOON,
    lock: { ...RECOVERY, skyOpen: false },
    play: (run) => {
      run.advance(Seconds(100)).network.dieSilently();
      run.advance(Seconds(100));
      unlockManually(run).advance(Seconds(400));
    },
    expect: (eventLines) =>
      firstDifference(omitEvents(eventLines, 'keepalive', 'dropped'), [
        '0 connect',
        '0 cellular NETWORK_PING',
        // The lock publishes at 200 s, gives the connection up 300 s later (keepalive), and tries again after 10 s.
        '510 connect',
        '510 cellular STATE_PING',
        '510 cellular NETWORK_PING',
      ]),
  },
  {
    name: 'a gateway that is gone',
    citation: 'tries again after 10, 30 and 60 s, then every 5 min ± 20 %',
    hour: NOON,
    play: (run) => {
      run.setListening(false);
      unlockManually(run).advance(Hours(6));
    },
    expect: (eventLines) => {
      const attempts = secondsOf(eventLines, 'tries');
      const waits = attempts.slice(1).map((seconds, index) => Math.round(seconds - (attempts[index] ?? 0)));
      const firstWaits = waits.slice(0, 3).join();
      if (firstWaits !== '10,30,60') return `waited ${firstWaits} s first`;
      const laterWaits = waits.slice(3);
      const [shortest, longest] = [Math.min(...laterWaits), Math.max(...laterWaits)];
      // Six hours have about 70 waits, uniformly distributed from 240 to 360 s. Some are close to each bound.
      const isSpread = shortest >= 240 && shortest < 255 && longest <= 360 && longest > 345;
      return isSpread ? undefined : `then ${shortest} to ${longest} s`;
    },
  },
  {
    name: 'more than the buffer holds',
    citation: 'It keeps what it made: 256 uplinks, of which the oldest that is not REASON_THEFT goes first',
    hour: NOON,
    lock: { skyOpen: false },
    play: (run) => {
      run.input({ type: 'coverage', covered: false });
      for (let change = 0; change < 300; change++) {
        (change % 2 === 0 ? unlockManually(run) : lockManually(run)).advance(Seconds(1));
      }
      run.input({ type: 'coverage', covered: true }).advance(Hours(1));
    },
    expect: (eventLines, run) => {
      const received = secondsOf(eventLines, 'cellular STATE_PING').length;
      const dropped = run.newest?.dropped ?? 0;
      // 300 pings were made and 256 fit in the buffer, so 44 were dropped.
      if (received === 256 && dropped === 44) return undefined;
      return `${received} of 300 came, ${dropped} were reported as dropped`;
    },
  },
];

/** Commands to a connected lock. */
export const COMMAND_SCENARIOS: readonly Scenario[] = [
  {
    name: 'locked by command',
    citation: 'lock (the lock gives a 5 s warning tone first)',
    hour: NOON,
    lock: { ...RECOVERY, lockState: 'unlocked', skyOpen: false },
    play: (run) => {
      sendCommand(run.advance(Seconds(60)), 1, { type: 'lock' });
      run.advance(Seconds(60));
    },
    expect: ['0 connect', '0 cellular NETWORK_PING', '60 tone 5 s', '65 lock', '65 cellular STATE_PING', '65 ack 1 ok'],
  },
  {
    name: 'located by command',
    citation: 'one GPS ping REASON_GPS_PING, or one cellular ping with a position REASON_CELL_PING',
    hour: NOON,
    lock: RECOVERY,
    play: (run) => {
      sendCommand(run.advance(Seconds(60)), 1, { type: 'locate-gps' });
      run.advance(Seconds(60));
      sendCommand(run, 2, { type: 'locate-cell' });
      run.advance(Seconds(60));
    },
    // A first GPS fix takes 30 s.
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
    citation: 'by command after a close-connection ping: one cellular ping REASON_RESET, first on the next connection',
    hour: NOON,
    lock: RECOVERY,
    play: (run) => {
      sendCommand(run.advance(Seconds(60)), 1, { type: 'reset' });
      run.advance(Seconds(60));
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

/** Locks that close their connection and are then silent. */
export const SILENCE_SCENARIOS: readonly Scenario[] = [
  {
    name: 'the battery runs low while asleep',
    citation:
      'on entering LOW_BATTERY it sends a close-connection ping that carries the new battery (connecting for it)',
    hour: NOON,
    play: (run) => {
      run.input({ type: 'battery', percent: 9 }).advance(Hours(30));
    },
    expect: (eventLines, run) =>
      firstDifference(eventLines, ['0 connect', '0 close', '0 disconnect closed']) ??
      (run.judge.belief.batteryPercent === 9 ? undefined : 'the battery was not reported'),
  },
  {
    name: 'switched to airplane mode by command',
    citation: 'The lock acknowledges, sends its close-connection ping, and is silent',
    hour: NOON,
    lock: RECOVERY,
    play: (run) => {
      run.advance(Seconds(60));
      run.enqueueCommand({ id: 1, command: { type: 'set-power', airplane: true }, expiresMs: run.nowMs + Hours(1) });
      run.advance(Minutes(1));
      moveFor(run, Minutes(1)).advance(Hours(30));
    },
    expect: ['0 connect', '0 cellular NETWORK_PING', '60 ack 1 ok', '60 close', '60 disconnect closed'],
  },
];
