/**
 * What can happen to one lock, as a type and as a short text that a person types: `ride 2km`, `battery 9 %`,
 * `no coverage 10 min`, `airplane on by command`. Scenarios and the shell read the same verbs.
 *
 * VERBS is the closed table: the word, what may follow it, and what it does. device-event-command.ts has those that
 * reach the lock as a command.
 */
import type { Milliseconds } from '../../proto/clock.js';
import { didYouMean } from '../../proto/did-you-mean.js';
import { ok, problem, type Result } from '../../proto/errors.js';
import type { Command, PowerChange, TetherState } from '../../proto/wire/ping.js';
import { COMMAND_FORMS, readCommand } from './device-event-command.js';
import { parseMeters, parseSpan } from './span-words.js';

/** Where a way leads to: so far in some direction, to a place by its name, or along the line of a file. */
export type Goal =
  | { readonly type: 'meters'; readonly meters: number }
  | { readonly type: 'place'; readonly name: string }
  | { readonly type: 'file'; readonly file: string };

export type DeviceEvent =
  /** Somebody turns the key, or pushes the shackle in. */
  | { readonly type: 'lock-state'; readonly lockState: 'locked' | 'unlocked' }
  | { readonly type: 'ride'; readonly goal: Goal }
  /** Somebody carries or wheels the bicycle away, as it is. */
  | { readonly type: 'theft'; readonly goal: Goal }
  /** Whatever moves the bicycle ends: it is found, and stands where it is. */
  | { readonly type: 'found' }
  /** Somebody bumps into it. */
  | { readonly type: 'jostle'; readonly span: Milliseconds }
  | { readonly type: 'battery'; readonly percent: number }
  /** `span`: after which it is as before again; null where it stays. */
  | { readonly type: 'coverage'; readonly covered: boolean; readonly span: Milliseconds | null }
  | { readonly type: 'sky'; readonly open: boolean; readonly span: Milliseconds | null }
  | { readonly type: 'ebike'; readonly volts: number | null }
  | { readonly type: 'tether'; readonly tetherState: TetherState }
  /** By hand, at the lock. */
  | { readonly type: 'settings'; readonly change: Omit<PowerChange, 'highWindow'> }
  | { readonly type: 'modem-reset' }
  | { readonly type: 'reboot' }
  /** A phone acts for the lock: it tells so itself, and the shackle moves. */
  | { readonly type: 'phone'; readonly lockState: 'locked' | 'unlocked' }
  | { readonly type: 'command'; readonly command: Command }
  /** Nothing, for so long. Only where somebody types one thing after another. */
  | { readonly type: 'wait'; readonly span: Milliseconds };

/** A verb: what is typed, and what it does, for people. */
export interface Verb {
  /** The word with which it begins. */
  readonly word: string;
  /** What is typed, by examples, for help and for the sentence on what was expected. */
  readonly forms: string;
  readonly sentence: string;
  /** Reads what follows the word, trimmed; undefined where that is wrong. */
  readonly read: (rest: string) => DeviceEvent | undefined;
}

/** A battery of a bicycle has no more. */
const MOST_VOLTS = 100;
const WAY_FILE = /\.(gpx|geojson|json)$/i;
/** No happening is longer to type. */
const MOST_CHARACTERS = 300;

const bare =
  (happening: DeviceEvent) =>
  (rest: string): DeviceEvent | undefined =>
    rest === '' ? happening : undefined;

const onOff =
  (make: (on: boolean) => DeviceEvent) =>
  (rest: string): DeviceEvent | undefined =>
    rest === 'on' || rest === 'off' ? make(rest === 'on') : undefined;

const byHand = (change: Omit<PowerChange, 'highWindow'>): DeviceEvent => ({ type: 'settings', change });

/** The table, in the order in which help shows it. */
export const VERBS: readonly Verb[] = [
  {
    word: 'unlock',
    forms: 'unlock',
    sentence: 'Somebody opens the lock by hand.',
    read: bare({ type: 'lock-state', lockState: 'unlocked' }),
  },
  {
    word: 'lock',
    forms: 'lock',
    sentence: 'Somebody closes the lock by hand; a ride under way ends there.',
    read: bare({ type: 'lock-state', lockState: 'locked' }),
  },
  {
    word: 'ride',
    forms: 'ride 2km, ride to PLACE, or ride FILE.gpx',
    sentence: 'A ride. One that finds the lock closed opens it, and closes it again at its end.',
    read: (rest) => asWay('ride', rest),
  },
  {
    word: 'steal',
    forms: 'steal, steal 800 m, steal to PLACE, or steal FILE.gpx',
    sentence: 'Somebody carries the bicycle away, locked as it is (1.2 km where nothing says how far).',
    read: (rest) => asWay('theft', rest === '' ? '1200 m' : rest),
  },
  {
    word: 'recover',
    forms: 'recover',
    sentence: 'The bicycle is found: whatever moves it ends, and it stands where it is.',
    read: bare({ type: 'found' }),
  },
  {
    word: 'jostle',
    forms: 'jostle 3 s',
    sentence: 'Somebody bumps into the bicycle: it moves on the spot for so long.',
    read: (rest) => withSpan(rest, (span) => ({ type: 'jostle', span })),
  },
  {
    word: 'battery',
    forms: 'battery 9 or battery 9 %, a whole number from 0 to 100',
    sentence: 'The lock’s battery is at so many percent.',
    read: (rest) => asPercent(rest),
  },
  {
    word: 'charge',
    forms: 'charge or charge to 80 %',
    sentence: 'The lock’s battery is charged, to 100 % where nothing else is said.',
    read: (rest) => (rest === '' ? { type: 'battery', percent: 100 } : asPercent(rest.replace(/^to\s+/, ''))),
  },
  {
    word: 'coverage',
    forms: 'coverage off, coverage off 10 min, or coverage on',
    sentence: 'The cellular network no longer reaches the lock, or does again.',
    read: (rest) => switched(rest, (covered, span) => ({ type: 'coverage', covered, span })),
  },
  {
    word: 'gps',
    forms: 'gps off, gps off 10 min, or gps on',
    sentence: 'GPS can’t be received (a garage, a tunnel), or can again.',
    read: (rest) => switched(rest, (open, span) => ({ type: 'sky', open, span })),
  },
  {
    word: 'no',
    forms: 'no coverage 10 min or no fix 10 min; without a span it stays so',
    sentence: 'The same as coverage off and gps off.',
    read: readNo,
  },
  {
    word: 'ebike',
    forms: `ebike 36.5 V, of 0 to ${MOST_VOLTS} V, or ebike off`,
    sentence: 'The lock is connected to an e-bike’s battery of so many volts, or to none.',
    read: readEbike,
  },
  {
    word: 'tether',
    forms: 'tether attached or tether detached',
    sentence: 'The cable is plugged into the lock, or pulled out.',
    read: (rest) => {
      return rest === 'attached' || rest === 'detached' ? { type: 'tether', tetherState: rest } : undefined;
    },
  },
  {
    word: 'mode',
    forms: 'mode HIGH or mode MID',
    sentence: 'The mode is set by hand, at the lock.',
    read: (rest) => {
      const mode = rest.toUpperCase();
      return mode === 'HIGH' || mode === 'MID' ? byHand({ mode }) : undefined;
    },
  },
  {
    word: 'airplane',
    forms: 'airplane on or airplane off',
    sentence: 'Airplane mode, by hand: the only way out of it.',
    read: onOff((airplane) => byHand({ airplane })),
  },
  {
    word: 'ride-tracking',
    forms: 'ride-tracking on or ride-tracking off',
    sentence: 'Ride tracking, by hand.',
    read: onOff((rideTracking) => byHand({ rideTracking })),
  },
  {
    word: 'recovery',
    forms: 'recovery on or recovery off',
    sentence: 'Recovery mode, by hand.',
    read: onOff((recovery) => byHand({ recovery })),
  },
  {
    word: 'reset',
    forms: 'reset',
    sentence: 'The modem restarts by itself. This is no boot.',
    read: bare({ type: 'modem-reset' }),
  },
  {
    word: 'reboot',
    forms: 'reboot',
    sentence: 'The firmware restarts: all but the flash is forgotten.',
    read: bare({ type: 'reboot' }),
  },
  {
    word: 'phone',
    forms: 'phone unlock or phone lock',
    sentence: 'A phone opens or closes the lock, and tells so itself with its own coordinates.',
    read: (rest) => {
      if (rest !== 'unlock' && rest !== 'lock') return undefined;
      return { type: 'phone', lockState: rest === 'unlock' ? 'unlocked' : 'locked' };
    },
  },
  {
    word: 'wait',
    forms: 'wait 10 min',
    sentence: 'Nothing, for so long: where one types one thing after another.',
    read: (rest) => withSpan(rest, (span) => ({ type: 'wait', span })),
  },
];

/** What follows what reaches the lock as a command. */
const BY_COMMAND = /\s+by\s+command$/i;

/**
 * Reads one happening. A text that ends with `by command` is what the operator sends the lock.
 *
 * An error's message quotes the text and says what was expected.
 */
export function parseDeviceEvent(text: string): Result<DeviceEvent> {
  const trimmed = text.trim().replaceAll(/\s+/g, ' ');
  if (trimmed.length > MOST_CHARACTERS)
    return problem('happening', `a happening of ${trimmed.length} characters: expected at most ${MOST_CHARACTERS}`);
  const quoted = JSON.stringify(trimmed);
  if (BY_COMMAND.test(trimmed)) {
    const command = readCommand(trimmed.replace(BY_COMMAND, ''));
    if (command !== undefined) return ok({ type: 'command', command });
    return problem('happening', `${quoted} is no command: expected ${COMMAND_FORMS}, each with "by command" after it`);
  }
  const [word = '', ...rest] = trimmed.split(' ');
  const verb = VERBS.find((row) => row.word === word.toLowerCase());
  if (verb === undefined) return unknownVerb(quoted, trimmed);
  const happening = verb.read(rest.join(' '));
  if (happening !== undefined) return ok(happening);
  return problem('happening', `${quoted} can't be read: expected ${verb.forms}`);
}

function unknownVerb(quoted: string, text: string): Result<DeviceEvent> {
  if (readCommand(text) !== undefined)
    return problem('happening', `${quoted} reaches a lock as a command alone: expected ${text} by command`);
  const words = VERBS.map(({ word }) => word);
  const meant = didYouMean(text.split(' ', 1)[0] ?? '', words);
  return problem(
    'happening',
    `${quoted} begins with no verb: expected one of ${words.join(', ')}${meant && `.${meant}`}`,
  );
}

function asWay(type: 'ride' | 'theft', rest: string): DeviceEvent | undefined {
  const goal = readGoal(rest);
  return goal === undefined ? undefined : { type, goal };
}

function readGoal(rest: string): Goal | undefined {
  const name = /^to (.+)$/i.exec(rest)?.[1];
  if (name !== undefined) return { type: 'place', name };
  const meters = parseMeters(rest);
  if (meters !== undefined) return { type: 'meters', meters };
  return WAY_FILE.test(rest) ? { type: 'file', file: rest } : undefined;
}

function withSpan(text: string, make: (span: Milliseconds) => DeviceEvent): DeviceEvent | undefined {
  const span = parseSpan(text);
  return span === undefined || span === 0 ? undefined : make(span);
}

function asPercent(text: string): DeviceEvent | undefined {
  const match = /^(\d{1,3})\s*%?$/.exec(text);
  const percent = Number(match?.[1] ?? Number.NaN);
  return percent <= 100 ? { type: 'battery', percent } : undefined;
}

function switched(
  rest: string,
  make: (on: boolean, span: Milliseconds | null) => DeviceEvent,
): DeviceEvent | undefined {
  if (rest === 'on') return make(true, null);
  if (rest === 'off') return make(false, null);
  return rest.startsWith('off ') ? withSpan(rest.slice('off '.length), (span) => make(false, span)) : undefined;
}

function readNo(rest: string): DeviceEvent | undefined {
  const match = /^(coverage|fix|gps)(?: (.+))?$/.exec(rest);
  if (match === null) return undefined;
  const off = match[2] === undefined ? 'off' : `off ${match[2]}`;
  return switched(off, (_on, span) => {
    return match[1] === 'coverage' ? { type: 'coverage', covered: false, span } : { type: 'sky', open: false, span };
  });
}

function readEbike(rest: string): DeviceEvent | undefined {
  if (rest === 'off') return { type: 'ebike', volts: null };
  const match = /^(\d{1,3}(?:\.\d{1,3})?)\s*V?$/i.exec(rest);
  const volts = Number(match?.[1] ?? Number.NaN);
  return volts <= MOST_VOLTS ? { type: 'ebike', volts } : undefined;
}
