/**
 * Device events: what can happen to one simulated lock, as a type and as a short text that a user types, such as `ride
 * 2km`, `battery 9 %`, `no coverage 10 min` or `airplane on by command`. Scenario files and the interactive shell
 * (`lockgate sim shell`) use the same verbs.
 *
 * VERBS is the closed table of verbs, each with its syntax and the resulting event. command-text.ts reads the texts of
 * commands. Pure: no I/O; a `FILE` in a text is only named, not opened.
 */
import type { Milliseconds } from '../../proto/clock.js';
import { didYouMean } from '../../proto/did-you-mean.js';
import { ok, problem, type Result } from '../../proto/errors.js';
import type { Command, PowerChange, TetherState } from '../../proto/wire/ping.js';
import { COMMAND_FORMS, readCommand } from './command-text.js';
import { parseMeters, parseSpan } from './quantity-text.js';

/** The destination of a ride or theft: a distance in some direction, a named place, or the route of a file. */
export type Destination =
  | { readonly type: 'meters'; readonly meters: number }
  | { readonly type: 'place'; readonly name: string }
  | { readonly type: 'file'; readonly file: string };

/** Something that can happen to a lock. */
export type DeviceEvent =
  /** Somebody opens or closes the lock manually. */
  | { readonly type: 'lock-state'; readonly lockState: 'locked' | 'unlocked' }
  | { readonly type: 'ride'; readonly destination: Destination }
  /** Somebody carries or wheels the bicycle away, locked or not. */
  | { readonly type: 'theft'; readonly destination: Destination }
  /** The bicycle is found: it stops moving and stays where it is. */
  | { readonly type: 'found' }
  /** Somebody bumps into the bicycle, which then moves on the spot for `span`. */
  | { readonly type: 'jostle'; readonly span: Milliseconds }
  | { readonly type: 'battery'; readonly percent: number }
  /** Coverage is lost or returns. After `span` the change is reversed; null for permanent. */
  | { readonly type: 'coverage'; readonly covered: boolean; readonly span: Milliseconds | null }
  /** GPS reception is lost or returns. `span` as for coverage. */
  | { readonly type: 'sky'; readonly open: boolean; readonly span: Milliseconds | null }
  /** The voltage of the e-bike's battery changes; null if the lock is connected to none. */
  | { readonly type: 'ebike'; readonly volts: number | null }
  /** The tether is plugged into the lock, or pulled out. */
  | { readonly type: 'tether'; readonly tetherState: TetherState }
  /** Somebody changes settings at the lock, without a command. */
  | { readonly type: 'settings'; readonly change: Omit<PowerChange, 'highWindow'> }
  | { readonly type: 'modem-reset' }
  | { readonly type: 'reboot' }
  /** A phone opens or closes the lock: the phone reports this, and the shackle moves. */
  | { readonly type: 'phone'; readonly lockState: 'locked' | 'unlocked' }
  /** The operator sends a command. */
  | { readonly type: 'command'; readonly command: Command }
  /** Nothing happens for a while. Only for interactive use. */
  | { readonly type: 'wait'; readonly span: Milliseconds };

/** A verb of the texts: its syntax and the resulting event. */
export interface Verb {
  /** The first word. */
  readonly word: string;
  /** Examples of its syntax, for help and for error messages. */
  readonly forms: string;
  readonly sentence: string;
  /** Reads the text after the verb, trimmed; returns undefined for invalid text. */
  readonly read: (argument: string) => DeviceEvent | undefined;
}

/** No e-bike's battery has a higher voltage. */
const MAX_EBIKE_VOLTS = 100;
/** The name of a file with a route. */
const ROUTE_FILE = /\.(gpx|geojson|json)$/i;
/** A longer text is refused, since an error quotes the text and a regular expression should not run on a long one. */
const MAX_EVENT_CHARACTERS = 300;

const withoutArgument =
  (event: DeviceEvent) =>
  (argument: string): DeviceEvent | undefined =>
    argument === '' ? event : undefined;

const withOnOrOff =
  (make: (on: boolean) => DeviceEvent) =>
  (argument: string): DeviceEvent | undefined =>
    argument === 'on' || argument === 'off' ? make(argument === 'on') : undefined;

const settingsEvent = (change: Omit<PowerChange, 'highWindow'>): DeviceEvent => ({ type: 'settings', change });

/** The table, in the order of the help. */
export const VERBS: readonly Verb[] = [
  {
    word: 'unlock',
    forms: 'unlock',
    sentence: 'Somebody opens the lock by hand.',
    read: withoutArgument({ type: 'lock-state', lockState: 'unlocked' }),
  },
  {
    word: 'lock',
    forms: 'lock',
    sentence: 'Somebody closes the lock by hand, which ends a ride.',
    read: withoutArgument({ type: 'lock-state', lockState: 'locked' }),
  },
  {
    word: 'ride',
    forms: 'ride 2km, ride to PLACE, or ride FILE.gpx',
    sentence: 'A ride. If the lock is closed, it is opened first and closed again at the end.',
    read: (argument) => readTrip('ride', argument),
  },
  {
    word: 'steal',
    forms: 'steal, steal 800 m, steal to PLACE, or steal FILE.gpx',
    sentence: 'Somebody carries the locked bicycle away (1.2 km by default).',
    read: (argument) => readTrip('theft', argument === '' ? '1200 m' : argument),
  },
  {
    word: 'recover',
    forms: 'recover',
    sentence: 'The bicycle is found: it stops moving and stays where it is.',
    read: withoutArgument({ type: 'found' }),
  },
  {
    word: 'jostle',
    forms: 'jostle 3 s',
    sentence: 'Somebody bumps into the bicycle: it moves on the spot for this long.',
    read: (argument) => readWithSpan(argument, (span) => ({ type: 'jostle', span })),
  },
  {
    word: 'battery',
    forms: 'battery 9 or battery 9 %, a whole number from 0 to 100',
    sentence: 'Sets the charge of the lock’s battery.',
    read: (argument) => readPercent(argument),
  },
  {
    word: 'charge',
    forms: 'charge or charge to 80 %',
    sentence: 'The lock’s battery is charged, to 100 % by default.',
    read: (argument) =>
      argument === '' ? { type: 'battery', percent: 100 } : readPercent(argument.replace(/^to\s+/, '')),
  },
  {
    word: 'coverage',
    forms: 'coverage off, coverage off 10 min, or coverage on',
    sentence: 'The cellular network no longer reaches the lock, or does again.',
    read: (argument) => readSwitch(argument, (covered, span) => ({ type: 'coverage', covered, span })),
  },
  {
    word: 'gps',
    forms: 'gps off, gps off 10 min, or gps on',
    sentence: 'GPS can’t be received (a garage, a tunnel), or can again.',
    read: (argument) => readSwitch(argument, (open, span) => ({ type: 'sky', open, span })),
  },
  {
    word: 'no',
    forms: 'no coverage 10 min or no fix 10 min; permanent without a duration',
    sentence: 'The same as coverage off or gps off.',
    read: readNo,
  },
  {
    word: 'ebike',
    forms: `ebike 36.5 V, of 0 to ${MAX_EBIKE_VOLTS} V, or ebike off`,
    sentence: 'The lock is connected to an e-bike’s battery with this voltage, or to none.',
    read: readEbike,
  },
  {
    word: 'tether',
    forms: 'tether attached or tether detached',
    sentence: 'The tether is plugged into the lock, or pulled out.',
    read: (argument) => {
      return argument === 'attached' || argument === 'detached' ? { type: 'tether', tetherState: argument } : undefined;
    },
  },
  {
    word: 'mode',
    forms: 'mode HIGH or mode MID',
    sentence: 'The mode is changed by hand, at the lock.',
    read: (argument) => {
      const mode = argument.toUpperCase();
      return mode === 'HIGH' || mode === 'MID' ? settingsEvent({ mode }) : undefined;
    },
  },
  {
    word: 'airplane',
    forms: 'airplane on or airplane off',
    sentence: 'Airplane mode is switched by hand, the only way to leave it.',
    read: withOnOrOff((airplane) => settingsEvent({ airplane })),
  },
  {
    word: 'ride-tracking',
    forms: 'ride-tracking on or ride-tracking off',
    sentence: 'Ride tracking is switched by hand.',
    read: withOnOrOff((rideTracking) => settingsEvent({ rideTracking })),
  },
  {
    word: 'recovery',
    forms: 'recovery on or recovery off',
    sentence: 'Recovery mode is switched by hand.',
    read: withOnOrOff((recovery) => settingsEvent({ recovery })),
  },
  {
    word: 'reset',
    forms: 'reset',
    sentence: 'The modem restarts by itself, which does not count as a boot.',
    read: withoutArgument({ type: 'modem-reset' }),
  },
  {
    word: 'reboot',
    forms: 'reboot',
    sentence: 'The firmware restarts: everything but the flash is lost.',
    read: withoutArgument({ type: 'reboot' }),
  },
  {
    word: 'phone',
    forms: 'phone unlock or phone lock',
    sentence: 'A phone opens or closes the lock, and reports this itself with its own coordinates.',
    read: (argument) => {
      if (argument !== 'unlock' && argument !== 'lock') return undefined;
      return { type: 'phone', lockState: argument === 'unlock' ? 'unlocked' : 'locked' };
    },
  },
  {
    word: 'wait',
    forms: 'wait 10 min',
    sentence: 'Nothing happens for this long. Interactive use only.',
    read: (argument) => readWithSpan(argument, (span) => ({ type: 'wait', span })),
  },
];

/** The words at the end of a text that make it a command. */
const BY_COMMAND = /\s+by\s+command$/i;

/**
 * Reads one device event. A text that ends with `by command` is a command that the operator sends.
 *
 * @returns the event, or a `happening` error that quotes the text and says what was expected
 */
export function parseDeviceEvent(text: string): Result<DeviceEvent> {
  const trimmed = text.trim().replaceAll(/\s+/g, ' ');
  if (trimmed.length > MAX_EVENT_CHARACTERS)
    return problem('happening', `an event of ${trimmed.length} characters: expected at most ${MAX_EVENT_CHARACTERS}`);
  const quoted = JSON.stringify(trimmed);
  if (BY_COMMAND.test(trimmed)) {
    const command = readCommand(trimmed.replace(BY_COMMAND, ''));
    if (command !== undefined) return ok({ type: 'command', command });
    return problem(
      'happening',
      `${quoted} is not a command: expected ${COMMAND_FORMS}, each with "by command" after it`,
    );
  }
  const [word = '', ...argument] = trimmed.split(' ');
  const verb = VERBS.find((row) => row.word === word.toLowerCase());
  if (verb === undefined) return unknownVerb(quoted, trimmed);
  const event = verb.read(argument.join(' '));
  if (event !== undefined) return ok(event);
  return problem('happening', `${quoted} can't be read: expected ${verb.forms}`);
}

function unknownVerb(quoted: string, text: string): Result<DeviceEvent> {
  if (readCommand(text) !== undefined)
    return problem('happening', `${quoted} reaches a lock only as a command: expected ${text} by command`);
  const words = VERBS.map(({ word }) => word);
  const suggestion = didYouMean(text.split(' ', 1)[0] ?? '', words);
  return problem(
    'happening',
    `${quoted} does not start with a verb: expected one of ${words.join(', ')}${suggestion && `.${suggestion}`}`,
  );
}

function readTrip(type: 'ride' | 'theft', argument: string): DeviceEvent | undefined {
  const destination = readDestination(argument);
  return destination === undefined ? undefined : { type, destination };
}

function readDestination(argument: string): Destination | undefined {
  const name = /^to (.+)$/i.exec(argument)?.[1];
  if (name !== undefined) return { type: 'place', name };
  const meters = parseMeters(argument);
  if (meters !== undefined) return { type: 'meters', meters };
  return ROUTE_FILE.test(argument) ? { type: 'file', file: argument } : undefined;
}

/** Reads a duration and makes the event from it. A duration of 0, in which nothing would happen, is invalid. */
function readWithSpan(text: string, make: (span: Milliseconds) => DeviceEvent): DeviceEvent | undefined {
  const span = parseSpan(text);
  return span === undefined || span === 0 ? undefined : make(span);
}

function readPercent(text: string): DeviceEvent | undefined {
  const match = /^(\d{1,3})\s*%?$/.exec(text);
  // Without a match the number is NaN, which is not at most 100.
  const percent = Number(match?.[1] ?? Number.NaN);
  return percent <= 100 ? { type: 'battery', percent } : undefined;
}

/** Reads `on`, `off`, or `off` and a duration. */
function readSwitch(
  argument: string,
  make: (on: boolean, span: Milliseconds | null) => DeviceEvent,
): DeviceEvent | undefined {
  if (argument === 'on') return make(true, null);
  if (argument === 'off') return make(false, null);
  return argument.startsWith('off ')
    ? readWithSpan(argument.slice('off '.length), (span) => make(false, span))
    : undefined;
}

/** Reads what follows `no`: `coverage`, `fix` or `gps`, and a duration or nothing. */
function readNo(argument: string): DeviceEvent | undefined {
  const match = /^(coverage|fix|gps)(?: (.+))?$/.exec(argument);
  if (match === null) return undefined;
  const off = match[2] === undefined ? 'off' : `off ${match[2]}`;
  return readSwitch(off, (_on, span) => {
    return match[1] === 'coverage' ? { type: 'coverage', covered: false, span } : { type: 'sky', open: false, span };
  });
}

function readEbike(argument: string): DeviceEvent | undefined {
  if (argument === 'off') return { type: 'ebike', volts: null };
  const match = /^(\d{1,3}(?:\.\d{1,3})?)\s*V?$/i.exec(argument);
  const volts = Number(match?.[1] ?? Number.NaN);
  return volts <= MAX_EBIKE_VOLTS ? { type: 'ebike', volts } : undefined;
}
