/**
 * Reads commands to a lock (protocol.md §1) from the text that a person types before `by command`, such as `siren 5 s`
 * in the scenario line `siren 5 s by command`. Only device-event.ts calls it. Pure.
 */
import { Minutes, Seconds } from '../../proto/clock.js';
import type { Command, HighWindow, PowerChange } from '../../proto/wire/ping.js';
import { parseSpan, parseTimeOfDay } from './quantity-text.js';

/** Examples of the commands that readCommand accepts, for help and for error messages. */
export const COMMAND_FORMS =
  'unlock, lock, siren 5 s, locate gps, locate cell, reset, or settings joined by commas (mode HIGH, airplane on, ' +
  'ride-tracking on, recovery on, high window 06:00-22:00 +01:00)';

const COMMANDS_WITHOUT_ARGUMENT: Readonly<Record<string, Command>> = {
  unlock: { type: 'unlock' },
  lock: { type: 'lock' },
  'locate gps': { type: 'locate-gps' },
  'locate-gps': { type: 'locate-gps' },
  'locate cell': { type: 'locate-cell' },
  'locate-cell': { type: 'locate-cell' },
  reset: { type: 'reset' },
};

/** The longest siren that the gateway accepts, seconds. */
const MAX_SIREN_SECONDS = 600;

/** Reads a command; returns undefined if the text is not a command. */
export function readCommand(text: string): Command | undefined {
  const trimmed = text.trim();
  if (Object.hasOwn(COMMANDS_WITHOUT_ARGUMENT, trimmed)) return COMMANDS_WITHOUT_ARGUMENT[trimmed];
  const siren = /^siren (.+)$/.exec(trimmed)?.[1];
  if (siren !== undefined) return readSiren(siren);
  let change: PowerChange = {};
  for (const settingText of trimmed.split(/\s*,\s*/)) {
    const setting = readSetting(settingText);
    // A setting that is given twice is ambiguous.
    if (setting === undefined || Object.keys(setting).some((key) => Object.hasOwn(change, key))) return undefined;
    change = { ...change, ...setting };
  }
  return { type: 'set-power', ...change };
}

function readSiren(text: string): Command | undefined {
  const span = parseSpan(text);
  // An unreadable text becomes NaN, which is no integer.
  const seconds = (span ?? Number.NaN) / Seconds(1);
  return Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_SIREN_SECONDS
    ? { type: 'siren', seconds }
    : undefined;
}

/** Reads one setting of a `set-power` command. */
function readSetting(text: string): PowerChange | undefined {
  const mode = /^mode (HIGH|MID)$/i.exec(text)?.[1]?.toUpperCase();
  if (mode === 'HIGH' || mode === 'MID') return { mode };
  const [, name, state] = /^(airplane|recovery|ride-tracking) (on|off)$/.exec(text) ?? [];
  if (name === 'airplane') return { airplane: state === 'on' };
  if (name === 'recovery') return { recovery: state === 'on' };
  if (name === 'ride-tracking') return { rideTracking: state === 'on' };
  const highWindow = readWindow(text);
  return highWindow && { highWindow };
}

/**
 * Reads the hours in which the lock uses the mode HIGH, with an optional offset from UTC: `high window 06:00-22:00
 * +01:00`.
 */
function readWindow(text: string): HighWindow | undefined {
  const match = /^high window (\d\d:\d\d)-(\d\d:\d\d)(?: ([+-])(\d\d):([0-5]\d))?$/.exec(text);
  if (match === null) return undefined;
  const [from, to] = [parseTimeOfDay(match[1] ?? ''), parseTimeOfDay(match[2] ?? '')];
  if (from === undefined || to === undefined) return undefined;
  const offsetMinutes = Number(match[4] ?? 0) * 60 + Number(match[5] ?? 0);
  if (offsetMinutes >= 24 * 60) return undefined;
  return {
    fromMinute: from / Minutes(1),
    toMinute: to / Minutes(1),
    utcOffsetMinutes: match[3] === '-' ? -offsetMinutes : offsetMinutes,
  };
}
