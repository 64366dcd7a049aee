/**
 * Stories: for each trigger of the power model (protocol.md §2) a short sequence of events around one lock. The table
 * has only the events; story-run.ts runs a simulated lock, and the power model decides what the lock sends.
 */
import { type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { type Command, DEFAULT_POWER, type PowerSettings } from '../../proto/wire/ping.js';
import type { WorldChange } from '../world/world.js';

/** An event at a time after the start of the story. */
export type StoryEvent = { readonly afterMs: Milliseconds } & StoryAction;

/** What happens in an event of a story. */
type StoryAction =
  /** A change in the world around the lock. */
  | { readonly type: 'world'; readonly change: WorldChange }
  /** The gateway sends a command. */
  | { readonly type: 'command'; readonly command: Command }
  /** A phone reports that it has locked or unlocked the lock. */
  | { readonly type: 'phone'; readonly lockState: 'locked' | 'unlocked' };

/** A short, fixed sequence of events around one lock, which makes the lock send certain pings. */
export interface Story {
  readonly name: string;
  /** A description for help texts: the events, and what the lock sends. */
  readonly sentence: string;
  /** The lock's settings at the start. */
  readonly power: PowerSettings;
  /** The battery at the start, if the story needs a certain charge; by default the lock's actual charge. */
  readonly batteryPercent?: number;
  /** Whether the story starts at the minute of the day in which this lock sends its daily ping. */
  readonly atPeriodMinute?: boolean;
  /** In order of time. */
  readonly events: readonly StoryEvent[];
  /** The time by which the lock has sent everything. */
  readonly endsAfterMs: Milliseconds;
}

const HIGH_MODE: PowerSettings = Object.freeze({ ...DEFAULT_POWER, mode: 'HIGH' });
const RIDE_TRACKING: PowerSettings = Object.freeze({ ...DEFAULT_POWER, rideTracking: true });

function worldEvent(afterMs: Milliseconds, change: WorldChange): StoryEvent {
  return { afterMs, type: 'world', change };
}

// Events of the world, named so that a list of them reads as a sentence.
const unlocked = (afterMs: Milliseconds) => worldEvent(afterMs, { type: 'lock-state', lockState: 'unlocked' });
const locked = (afterMs: Milliseconds) => worldEvent(afterMs, { type: 'lock-state', lockState: 'locked' });
const moves = (afterMs: Milliseconds) => worldEvent(afterMs, { type: 'motion', moving: true });
const stops = (afterMs: Milliseconds) => worldEvent(afterMs, { type: 'motion', moving: false });

/** Every story, in the order of the help text: the stories that users need most often are first. */
export const STORIES: readonly Story[] = Object.freeze([
  {
    name: 'theft',
    sentence: 'Somebody carries the locked bicycle away: an alarm at once, then a position every 10 s while it moves.',
    power: DEFAULT_POWER,
    events: [moves(0), stops(Seconds(90))],
    endsAfterMs: Minutes(6),
  },
  {
    name: 'commute',
    sentence: 'Unlocked, ridden with ride tracking (a position every 30 s), locked again.',
    power: RIDE_TRACKING,
    events: [unlocked(0), moves(Seconds(15)), stops(Minutes(4)), locked(Minutes(4) + Seconds(10))],
    endsAfterMs: Minutes(8),
  },
  {
    name: 'ride',
    sentence: 'Unlocked, ridden without ride tracking (a cellular ping every 5 min), locked again.',
    power: DEFAULT_POWER,
    events: [unlocked(0), moves(Seconds(15)), stops(Minutes(6)), locked(Minutes(6) + Seconds(10))],
    endsAfterMs: Minutes(10),
  },
  {
    name: 'state-change',
    sentence: 'Somebody unlocks it by hand: the new state at once, its position once there is a fix.',
    power: DEFAULT_POWER,
    events: [unlocked(0)],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'period',
    sentence: 'The ping that a lock sends once a day.',
    power: DEFAULT_POWER,
    atPeriodMinute: true,
    events: [],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'phone',
    sentence: 'A phone unlocks it and reports this with its own position; then the lock reports it too.',
    power: DEFAULT_POWER,
    events: [{ afterMs: 0, type: 'phone', lockState: 'unlocked' }, unlocked(Seconds(1))],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'network',
    sentence: 'The lock stays connected and waits for commands: a ping on connecting and every 15 min.',
    power: DEFAULT_POWER,
    events: [
      worldEvent(0, { type: 'settings', change: { mode: 'HIGH' } }),
      worldEvent(Minutes(16), { type: 'settings', change: { mode: 'MID' } }),
    ],
    endsAfterMs: Minutes(18),
  },
  {
    name: 'gps',
    sentence: 'A lock that is connected is asked where it is, by GPS.',
    power: HIGH_MODE,
    events: [{ afterMs: 0, type: 'command', command: { type: 'locate-gps' } }],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'cell',
    sentence: 'A lock that is connected is asked where it is, by the cellular network.',
    power: HIGH_MODE,
    events: [{ afterMs: 0, type: 'command', command: { type: 'locate-cell' } }],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'reset',
    sentence: 'The modem restarts by itself.',
    power: DEFAULT_POWER,
    events: [worldEvent(0, { type: 'modem-reset' })],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'low-battery',
    sentence:
      'The battery falls below 10 %: a close-connection ping and silence, except for a theft two minutes later.',
    power: DEFAULT_POWER,
    batteryPercent: 10,
    events: [worldEvent(0, { type: 'battery', percent: 9 }), moves(Minutes(2)), stops(Minutes(2) + Seconds(50))],
    endsAfterMs: Minutes(8),
  },
  {
    name: 'close',
    sentence: 'Airplane mode is switched on by hand: a close-connection ping, and silence.',
    power: DEFAULT_POWER,
    events: [worldEvent(0, { type: 'settings', change: { airplane: true } })],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'late',
    sentence: 'A tracked ride without coverage: all pings arrive together afterwards, marked as buffered.',
    power: RIDE_TRACKING,
    events: [
      worldEvent(0, { type: 'coverage', covered: false }),
      unlocked(Seconds(5)),
      moves(Seconds(20)),
      stops(Minutes(3)),
      locked(Minutes(3) + Seconds(10)),
      worldEvent(Minutes(6), { type: 'coverage', covered: true }),
    ],
    endsAfterMs: Minutes(14),
  },
] satisfies Story[]);
