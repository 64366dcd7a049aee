/**
 * Stories: what may happen around one lock that makes it speak, a short one for each trigger of the power model
 * (protocol.md §2). A story says what happens; what the lock says to it is the power model's to decide (story-run.ts).
 */
import { type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { type Command, DEFAULT_POWER, type PowerSettings } from '../../proto/wire/ping.js';
import type { WorldChange } from './world.js';

/** What happens, at a time after the story's beginning. */
export type StoryEvent = { readonly afterMs: Milliseconds } & (
  | { readonly type: 'world'; readonly change: WorldChange }
  | { readonly type: 'command'; readonly command: Command }
  /** A phone tells that it has locked or unlocked the lock. */
  | { readonly type: 'phone'; readonly lockState: 'locked' | 'unlocked' }
);

export interface Story {
  readonly name: string;
  /** For people: what happens, and what comes of it. */
  readonly sentence: string;
  /** How the lock is set when the story begins. */
  readonly power: PowerSettings;
  /** Where the story needs a battery of its own; the lock's otherwise. */
  readonly batteryPercent?: number;
  /** The story begins at the lock's own minute of the day. */
  readonly atPeriodMinute?: boolean;
  /** In order of time. */
  readonly events: readonly StoryEvent[];
  /** When all is said. */
  readonly endsAfterMs: Milliseconds;
}

const HIGH: PowerSettings = Object.freeze({ ...DEFAULT_POWER, mode: 'HIGH' });
const TRACKED: PowerSettings = Object.freeze({ ...DEFAULT_POWER, rideTracking: true });

function happens(afterMs: Milliseconds, change: WorldChange): StoryEvent {
  return { afterMs, type: 'world', change };
}

const unlocked = (afterMs: Milliseconds) => happens(afterMs, { type: 'lock-state', lockState: 'unlocked' });
const locked = (afterMs: Milliseconds) => happens(afterMs, { type: 'lock-state', lockState: 'locked' });
const moves = (afterMs: Milliseconds) => happens(afterMs, { type: 'motion', moving: true });
const stands = (afterMs: Milliseconds) => happens(afterMs, { type: 'motion', moving: false });

/** Every story, those that merchants ask for most first. */
export const STORIES: readonly Story[] = Object.freeze([
  {
    name: 'theft',
    sentence: 'Somebody carries the locked bicycle away: an alarm at once, then a position every 10 s while it moves.',
    power: DEFAULT_POWER,
    events: [moves(0), stands(Seconds(90))],
    endsAfterMs: Minutes(6),
  },
  {
    name: 'commute',
    sentence: 'Unlocked, ridden with ride tracking (a position every 30 s), locked again.',
    power: TRACKED,
    events: [unlocked(0), moves(Seconds(15)), stands(Minutes(4)), locked(Minutes(4) + Seconds(10))],
    endsAfterMs: Minutes(8),
  },
  {
    name: 'ride',
    sentence: 'Unlocked, ridden without ride tracking (a sign of life every 5 min), locked again.',
    power: DEFAULT_POWER,
    events: [unlocked(0), moves(Seconds(15)), stands(Minutes(6)), locked(Minutes(6) + Seconds(10))],
    endsAfterMs: Minutes(10),
  },
  {
    name: 'state-change',
    sentence: 'Somebody unlocks it by hand: the new state at once, its position when there is a fix.',
    power: DEFAULT_POWER,
    events: [unlocked(0)],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'period',
    sentence: 'The ping that comes once a day.',
    power: DEFAULT_POWER,
    atPeriodMinute: true,
    events: [],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'phone',
    sentence: 'A phone unlocks it and says so, with its own position; then the lock says the same.',
    power: DEFAULT_POWER,
    events: [{ afterMs: 0, type: 'phone', lockState: 'unlocked' }, unlocked(Seconds(1))],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'network',
    sentence: 'The lock is kept connected and waits for commands: a ping on connecting and every 15 min.',
    power: DEFAULT_POWER,
    events: [
      happens(0, { type: 'settings', change: { mode: 'HIGH' } }),
      happens(Minutes(16), { type: 'settings', change: { mode: 'MID' } }),
    ],
    endsAfterMs: Minutes(18),
  },
  {
    name: 'gps',
    sentence: 'A lock that is connected is asked where it is, by GPS.',
    power: HIGH,
    events: [{ afterMs: 0, type: 'command', command: { type: 'locate-gps' } }],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'cell',
    sentence: 'A lock that is connected is asked where it is, by the cellular network.',
    power: HIGH,
    events: [{ afterMs: 0, type: 'command', command: { type: 'locate-cell' } }],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'reset',
    sentence: 'The modem restarts by itself.',
    power: DEFAULT_POWER,
    events: [happens(0, { type: 'modem-reset' })],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'low-battery',
    sentence:
      'The battery falls below 10 %: the lock takes its leave and is silent, but for a theft two minutes later.',
    power: DEFAULT_POWER,
    batteryPercent: 10,
    events: [happens(0, { type: 'battery', percent: 9 }), moves(Minutes(2)), stands(Minutes(2) + Seconds(50))],
    endsAfterMs: Minutes(8),
  },
  {
    name: 'close',
    sentence: 'Airplane mode is switched on by hand: a close-connection ping, and silence.',
    power: DEFAULT_POWER,
    events: [happens(0, { type: 'settings', change: { airplane: true } })],
    endsAfterMs: Minutes(3),
  },
  {
    name: 'late',
    sentence: 'A tracked ride without coverage: all of it arrives afterwards at once, marked buffered.',
    power: TRACKED,
    events: [
      happens(0, { type: 'coverage', covered: false }),
      unlocked(Seconds(5)),
      moves(Seconds(20)),
      stands(Minutes(3)),
      locked(Minutes(3) + Seconds(10)),
      happens(Minutes(6), { type: 'coverage', covered: true }),
    ],
    endsAfterMs: Minutes(14),
  },
] satisfies Story[]);
