/**
 * Reads the first line of a trace, the header: what is known of each lock before the first event (protocol.md §4).
 * Leaves errors in the `JsonReader`, and members that the format does not have in the `TraceNotes`. Does no I/O.
 */
import type { JsonObject, JsonReader } from '../json-reader.js';
import type { EarlierCommand } from '../power/judge/belief.js';
import { type Mac, parseMac } from '../wire/mac.js';
import type { LockState, PowerSettings } from '../wire/ping.js';
import { readCommand, readHighWindow } from '../wire/ping-from-json.js';
import { MAX_REFLASH_MARKS } from '../wire/uplink-life.js';
import { COMMAND_MEMBERS, HEADER_MEMBERS, noteCommand, noteHighWindow, notePower, type TraceNotes } from './notes.js';
import { TRACE_NAME, TRACE_VERSION, type TraceHeader, type TraceLock, UNNAMED_LOCK } from './trace.js';

/** What an error says was expected if the header is missing or wrong. */
export const HEADER_EXPECTED = `a header such as {"trace":"${TRACE_NAME}","version":${TRACE_VERSION},"locks":{}}`;

/** The maximum number of commands that a header lists for a lock. */
export const MAX_COMMANDS_BEFORE = 1000;

const LOCK_STATES = ['locked', 'unlocked', 'unknown'] as const satisfies readonly LockState[];

/** The members of a lock of the header. */
const LOCK_MEMBERS = new Set([
  'power',
  'high_window',
  'lock_state',
  'connected',
  'last_period',
  'reflashed',
  'commands',
]);

/**
 * Reads the header. Must not be used if `reader` has an error afterwards. An empty text in a call of the reader says
 * that the member is in the line itself.
 */
export function readHeader(reader: JsonReader, json: JsonObject, notes: TraceNotes): TraceHeader {
  if (json.trace !== TRACE_NAME) reader.reject(json.trace, '', 'trace', HEADER_EXPECTED);
  if (json.version !== TRACE_VERSION) reader.reject(json.version, '', 'version', `${TRACE_VERSION}`);
  notes.check(json, '', 'the header', HEADER_MEMBERS);
  const note = json.note === undefined ? '' : reader.text(json.note, '', 'note');
  const locks = new Map<Mac, TraceLock>();
  const locksJson = json.locks === undefined ? {} : reader.object(json.locks, '', 'locks');
  for (const [text, value] of Object.entries(locksJson)) {
    const mac = parseMac(text);
    if (!mac.ok) reader.error ??= `in locks, ${mac.error.message}`;
    else if (locks.has(mac.value)) reader.error ??= `in locks, ${text} is listed twice: expected each lock once`;
    else locks.set(mac.value, readLock(reader, value, `locks.${text}`, notes));
  }
  return { note, locks };
}

/** Reads a lock of the header. Every member may be omitted. */
function readLock(reader: JsonReader, value: unknown, name: string, notes: TraceNotes): TraceLock {
  const json = reader.object(value, name, '');
  notes.check(json, name, 'a lock of the header', LOCK_MEMBERS);
  notePower(notes, json.power, `${name}.power`);
  noteHighWindow(notes, json.high_window, `${name}.high_window`);
  const { high_window: window, last_period: lastPeriod, connected, lock_state: state, reflashed, commands } = json;
  return {
    power: readHeaderPower(reader, json.power, name),
    highWindow: window === undefined ? null : readHighWindow(reader, window, name, 'high_window'),
    lockState: state === undefined ? 'unknown' : reader.word(state, name, 'lock_state', LOCK_STATES),
    connected: connected === undefined ? false : reader.flag(connected, name, 'connected'),
    lastPeriodMs: lastPeriod === undefined || lastPeriod === null ? null : reader.date(lastPeriod, name, 'last_period'),
    ...(reflashed !== undefined && { reflashed: readReflashMarks(reader, reflashed, name) }),
    ...(commands !== undefined && { commands: readEarlierCommands(reader, commands, name, notes) }),
  };
}

function readReflashMarks(reader: JsonReader, value: unknown, name: string): number[] {
  if (!Array.isArray(value) || value.length > MAX_REFLASH_MARKS) {
    reader.reject(value, name, 'reflashed', `a list of at most ${MAX_REFLASH_MARKS} dates`);
    return [];
  }
  return value.map((mark, index) => reader.date(mark, `${name}.reflashed`, String(index)));
}

function readEarlierCommands(reader: JsonReader, value: unknown, name: string, notes: TraceNotes): EarlierCommand[] {
  if (!Array.isArray(value) || value.length > MAX_COMMANDS_BEFORE) {
    reader.reject(value, name, 'commands', `a list of at most ${MAX_COMMANDS_BEFORE} commands`);
    return [];
  }
  return value.map((each, index) => {
    const path = `${name}.commands.${index}`;
    const json = reader.object(each, path, '');
    noteCommand(notes, json, path, COMMAND_MEMBERS.inHeader);
    return {
      id: reader.count(json.id, path, 'id'),
      command: readCommand(reader, json, path),
      atMs: reader.date(json.at, path, 'at'),
      ...(json.expires !== undefined &&
        json.expires !== null && { expiresMs: reader.date(json.expires, path, 'expires') }),
    };
  });
}

function readHeaderPower(reader: JsonReader, value: unknown, name: string): PowerSettings {
  if (value === undefined) return UNNAMED_LOCK.power;
  const json = reader.object(value, name, 'power');
  const flag = (member: string): boolean =>
    json[member] === undefined ? false : reader.flag(json[member], `${name}.power`, member);
  return {
    mode: json.mode === undefined ? 'MID' : reader.word(json.mode, `${name}.power`, 'mode', ['MID', 'HIGH']),
    rideTracking: flag('ride_tracking'),
    airplane: flag('airplane'),
    recovery: flag('recovery'),
  };
}
