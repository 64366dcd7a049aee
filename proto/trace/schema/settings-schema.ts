/**
 * The JSON Schema of a lock's settings and of commands, which the header and events of a trace share (protocol.md §1,
 * §4). Pure data.
 */
import type { Command } from '../../wire/ping.js';
import { COMMAND_TYPES } from '../../wire/ping-from-json.js';
import { closedObject, count, described, flag, type JsonSchema, nullable, oneWord, ref, words } from './json-schema.js';

const MODES = words(['MID', 'HIGH'], 'The power mode.');
const RIDE_TRACKING = flag('Whether the ride-tracking switch is on.');
const AIRPLANE = flag('Whether the airplane switch is on.');
const RECOVERY = flag('Whether the recovery switch is on.');

const POWER_MEMBERS = { mode: MODES, ride_tracking: RIDE_TRACKING, airplane: AIRPLANE, recovery: RECOVERY };

const TIME_OF_DAY: JsonSchema = {
  type: 'string',
  description: 'A time of the day, HH:MM.',
  pattern: '^([01]\\d|2[0-3]):[0-5]\\d$',
};

const HIGH_WINDOW = closedObject(
  {
    from: described('time_of_day', 'When the window opens, HH:MM.'),
    to: described(
      'time_of_day',
      'When it closes, HH:MM. The same as `from` is the full day; earlier is over midnight.',
    ),
    utc_offset_minutes: { type: 'integer', description: 'The offset of both times from UTC, in minutes. Default 0.' },
  },
  ['from', 'to'],
  'The time of the day in which mode HIGH keeps the connection.',
);

/** The members of a command besides `type`, for each type. */
const PARAMETERS: Readonly<Record<Command['type'], Readonly<Record<string, JsonSchema>>>> = {
  unlock: {},
  lock: {},
  siren: { seconds: count('How long the siren sounds, in seconds. Default 0.') },
  'locate-gps': {},
  'locate-cell': {},
  'set-power': { ...POWER_MEMBERS, high_window: ref('high_window') },
  reset: {},
};

const ID = count('The command’s id, which its acknowledgement repeats.');
const EXPIRES = nullable(described('date', 'When the command expires. Left out or null: never.'));

/** One variant for each type of command, with `further` members in each. */
function commandOf(further: Readonly<Record<string, JsonSchema>>, description: string): JsonSchema {
  const variants = COMMAND_TYPES.map((type) => {
    const properties = { id: ID, type: oneWord(type, 'The type of command.'), ...further, expires: EXPIRES };
    return closedObject({ ...properties, ...PARAMETERS[type] }, ['id', 'type', ...Object.keys(further)], `A ${type}.`);
  });
  return { description, oneOf: variants };
}

/** The definitions of settings and commands. */
export const SETTINGS_DEFINITIONS: Readonly<Record<string, JsonSchema>> = {
  time_of_day: TIME_OF_DAY,
  high_window: HIGH_WINDOW,
  power: closedObject(
    POWER_MEMBERS,
    Object.keys(POWER_MEMBERS),
    'The power settings of a lock. All four are required.',
  ),
  header_power: closedObject(
    POWER_MEMBERS,
    [],
    'The power settings of a lock before the first event. Each may be left out: mode MID, switches off.',
  ),
  changed_power: closedObject(POWER_MEMBERS, [], 'The power settings that changed at the lock.'),
  command: commandOf({}, 'A command that was sent to a lock.'),
  earlier_command: commandOf(
    { at: described('date', 'When the command was sent.') },
    'A command that was sent to a lock before the trace starts.',
  ),
};
