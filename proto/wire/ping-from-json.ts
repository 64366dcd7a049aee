/**
 * Reads uplinks and commands from JSON; ping-json.ts writes it. An error names the member, its value and what was
 * expected; `name` and `parent` are the names of the JSON object in that error. Unknown members are ignored, so that
 * the body of a webhook can be read too. The *envelope* of an uplink is everything but its ping or acknowledgement.
 */
import { ok, problem, type Result } from '../errors.js';
import { readPing } from '../gen/ping-json.js';
import { isObject, type JsonObject, JsonReader } from '../json-reader.js';
import {
  type Command,
  type CommandAck,
  type CommandResult,
  DEFAULT_POWER,
  type HighWindow,
  type Ping,
  type PingUplink,
  type PowerMode,
  type PowerSettings,
  type Uplink,
} from './ping.js';

const RESULTS = ['ok', 'rejected', 'failed'] as const satisfies readonly CommandResult[];
const MODES = ['MID', 'HIGH'] as const satisfies readonly PowerMode[];

/** The values of omitted envelope members (protocol.md §4). A member whose default is undefined is required. */
export interface EnvelopeDefaults {
  readonly boot: number | undefined;
  /** The next sequence number in a boot. */
  nextSequence(boot: number): number | undefined;
  readonly timeMs: number | undefined;
  readonly power: PowerSettings;
}

/** All members are required, except power, which defaults to MID with every switch off as on the wire. */
const NO_DEFAULTS: EnvelopeDefaults = Object.freeze({
  boot: undefined,
  nextSequence: () => undefined,
  timeMs: undefined,
  power: DEFAULT_POWER,
});

/** Reads an uplink: an acknowledgement if it has a `result`, else a ping. Never throws. */
export function uplinkFromJson(json: unknown, name = ''): Result<Uplink> {
  const reader = new JsonReader();
  if (!isObject(json)) return problem('bad-uplink', 'the uplink is no object: expected a ping or an acknowledgement');
  const uplink =
    json.result === undefined
      ? readPingUplink(reader, json, name, NO_DEFAULTS)
      : readAckUplink(reader, json, name, NO_DEFAULTS);
  return reader.error === null ? ok(uplink) : problem('bad-uplink', reader.error);
}

/** Reads a ping without its envelope. Never throws. */
export function pingFromJson(json: unknown, name = 'ping'): Result<Ping> {
  const reader = new JsonReader();
  // No member: it is `json` itself that must be an object.
  const ping = readPing(reader, reader.object(json, name, ''), name);
  return reader.error === null ? ok(ping) : problem('bad-ping', reader.error);
}

/** Reads a ping and its envelope. Leaves an error in `reader`. */
export function readPingUplink(
  reader: JsonReader,
  json: JsonObject,
  name: string,
  defaults: EnvelopeDefaults,
): PingUplink {
  return readEnvelope(reader, json, name, defaults, readPing(reader, json, name));
}

/** Reads an acknowledgement and its envelope. Leaves an error in `reader`. */
export function readAckUplink(
  reader: JsonReader,
  json: JsonObject,
  name: string,
  defaults: EnvelopeDefaults,
): Uplink<CommandAck> {
  const { high_window: window } = json;
  return readEnvelope(reader, json, name, defaults, {
    kind: 'ack',
    commandId: reader.count(json.id, name, 'id'),
    result: reader.word(json.result, name, 'result', RESULTS),
    detail: json.detail === undefined ? '' : reader.text(json.detail, name, 'detail'),
    highWindow: window === undefined || window === null ? null : readHighWindow(reader, window, name, 'high_window'),
  });
}

function readEnvelope<Body extends Ping | CommandAck>(
  reader: JsonReader,
  json: JsonObject,
  name: string,
  defaults: EnvelopeDefaults,
  body: Body,
): Uplink<Body> {
  const boot = json.boot ?? defaults.boot;
  const knownBoot = reader.count(boot, name, 'boot');
  return {
    boot: knownBoot,
    sequence: reader.count(json.sequence ?? defaults.nextSequence(knownBoot), name, 'sequence'),
    timeMs: readTime(reader, json, name, defaults.timeMs),
    power: json.power === undefined ? defaults.power : readPower(reader, json.power, name, 'power'),
    kept: json.kept === undefined ? 0 : reader.count(json.kept, name, 'kept'),
    dropped: json.dropped === undefined ? 0 : reader.count(json.dropped, name, 'dropped'),
    body,
  };
}

/** When the lock made the uplink: `date`, else `time_ms`, else `defaultMs`; an error if all three are missing. */
function readTime(reader: JsonReader, json: JsonObject, name: string, defaultMs: number | undefined): number {
  if (json.date !== undefined) return reader.date(json.date, name, 'date');
  if (json.time_ms !== undefined) return reader.integer(json.time_ms, name, 'time_ms');
  if (defaultMs === undefined) reader.date(undefined, name, 'date');
  return defaultMs ?? 0;
}

/** Reads power settings. All four members are required. */
export function readPower(reader: JsonReader, value: unknown, parent: string, member: string): PowerSettings {
  const json = reader.object(value, parent, member);
  // First the usual case, without making the names that only an error needs: this runs for each ping of a trace.
  const mode = json.mode;
  if (
    (mode === 'MID' || mode === 'HIGH') &&
    typeof json.ride_tracking === 'boolean' &&
    typeof json.airplane === 'boolean' &&
    typeof json.recovery === 'boolean'
  )
    return { mode, rideTracking: json.ride_tracking, airplane: json.airplane, recovery: json.recovery };
  const name = `${parent}.${member}`;
  return {
    mode: reader.word(mode, name, 'mode', MODES),
    rideTracking: reader.flag(json.ride_tracking, name, 'ride_tracking'),
    airplane: reader.flag(json.airplane, name, 'airplane'),
    recovery: reader.flag(json.recovery, name, 'recovery'),
  };
}

/** Reads a high window: two times of the day and a UTC offset. */
export function readHighWindow(reader: JsonReader, value: unknown, parent: string, member: string): HighWindow {
  const json = reader.object(value, parent, member);
  const name = `${parent}.${member}`;
  const offset = json.utc_offset_minutes ?? 0;
  return {
    fromMinute: readMinute(reader, json.from, name, 'from'),
    toMinute: readMinute(reader, json.to, name, 'to'),
    utcOffsetMinutes: reader.integer(offset, name, 'utc_offset_minutes'),
  };
}

const TIME_OF_DAY = /^([01]\d|2[0-3]):([0-5]\d)$/;

function readMinute(reader: JsonReader, value: unknown, parent: string, member: string): number {
  const match = typeof value === 'string' ? TIME_OF_DAY.exec(value) : null;
  if (match !== null) return Number(match[1]) * 60 + Number(match[2]);
  reader.reject(value, parent, member, 'a time of the day such as 07:00');
  return 0;
}

/** All types of command. */
export const COMMAND_TYPES = [
  'unlock',
  'lock',
  'siren',
  'locate-gps',
  'locate-cell',
  'set-power',
  'reset',
] as const satisfies readonly Command['type'][];

/** Reads a command: its `type` and parameters. Leaves an error in `reader`. */
export function readCommand(reader: JsonReader, json: JsonObject, name: string): Command {
  const type = reader.word(json.type, name, 'type', COMMAND_TYPES);
  if (type === 'siren') return { type, seconds: reader.count(json.seconds ?? 0, name, 'seconds') };
  if (type !== 'set-power') return { type };
  return {
    type,
    ...(json.mode !== undefined && { mode: reader.word(json.mode, name, 'mode', MODES) }),
    ...(json.ride_tracking !== undefined && { rideTracking: reader.flag(json.ride_tracking, name, 'ride_tracking') }),
    ...(json.airplane !== undefined && { airplane: reader.flag(json.airplane, name, 'airplane') }),
    ...(json.recovery !== undefined && { recovery: reader.flag(json.recovery, name, 'recovery') }),
    ...(json.high_window !== undefined && {
      highWindow: readHighWindow(reader, json.high_window, name, 'high_window'),
    }),
  };
}
