/**
 * Reads and checks the JSON of a request for commands: which command, for which locks, when. Unknown members are
 * refused, since ignoring a misspelt schedule would open a lock at once. The `JsonReader` notes the first error and
 * reads on with a default value; the error is thrown at the end. Pure: stores and sends nothing.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { isObject, type JsonObject, JsonReader } from '../../proto/json-reader.js';
import { type Mac, parseMac } from '../../proto/wire/mac.js';
import type { Command } from '../../proto/wire/ping.js';
import { COMMAND_TYPES, readCommand } from '../../proto/wire/ping-from-json.js';
import {
  defaultLifetime,
  MAX_LIFETIME,
  MAX_MACS_PER_REQUEST,
  MAX_SCHEDULE_AHEAD,
  MAX_SIREN_SECONDS,
  MAX_UTC_OFFSET_MINUTES,
} from './command-terms.js';

/** For named locks, or for all locks of a merchant. */
export type CommandTargets = { readonly macs: readonly Mac[] } | { readonly merchant: string };

/**
 * A checked request. Times are by the run's clock (wall-clock time, except in a sped-up simulation), ms since the
 * epoch.
 */
export interface CommandRequest {
  readonly targets: CommandTargets;
  /** The number of locks that the caller expects; undefined if the request does not state it. */
  readonly expectedCount: number | undefined;
  readonly command: Command;
  readonly notBeforeMs: number | null;
  readonly expiresAtMs: number;
  /** Whether the caller confirms that airplane mode cuts the lock off. */
  readonly confirmsAirplane: boolean;
  readonly askedBy: string;
}

/** A request's command, without its targets. */
export type CommandOrder = Omit<CommandRequest, 'targets' | 'expectedCount'>;

/** The members of the body. */
const MEMBERS = new Set([
  ...['macs', 'merchant', 'all', 'expected_count', 'type', 'parameters'],
  ...['expires_in', 'not_before', 'confirm_airplane', 'asked_by'],
]);
/** The members of `parameters` for each type of command. */
const PARAMETERS: Readonly<Record<Command['type'], readonly string[]>> = {
  unlock: [],
  lock: [],
  siren: ['seconds'],
  'locate-gps': [],
  'locate-cell': [],
  'set-power': ['mode', 'ride_tracking', 'airplane', 'recovery', 'high_window'],
  reset: [],
};
const MAX_ASKED_BY_CHARS = 100;
/** How much of an unknown member's name the error quotes. */
const MAX_QUOTED_NAME_CHARS = 40;

/** The members of the body of a merchant's request, whose path names the lock. */
const MERCHANT_MEMBERS = ['type', 'parameters', 'expires_in', 'not_before', 'confirm_airplane'];

/**
 * Reads the body of a merchant's request for a command to one lock (interfaces.md §2).
 *
 * @param askedBy who asks, in a few words
 * @throws LockgateError `input-command`, which names the member, its value and what was expected
 */
export function readMerchantCommand(body: unknown, nowMs: number, askedBy: string): CommandOrder {
  const reader = new JsonReader();
  const json = reader.object(body, '', 'the body');
  refuseUnknown(reader, json, '', new Set(MERCHANT_MEMBERS));
  const order = { ...readOrder(reader, json, nowMs), askedBy };
  if (reader.error !== null) throw new LockgateError('input-command', reader.error);
  return order;
}

/**
 * Reads the body of `POST /commands`; see README.md, Commands.
 *
 * @throws LockgateError `input-command`, which names the member, its value and what was expected
 */
export function readCommandRequest(body: unknown, nowMs: number): CommandRequest {
  const reader = new JsonReader();
  const json = reader.object(body, '', 'the body');
  refuseUnknown(reader, json, '', MEMBERS);
  const request: CommandRequest = {
    ...readOrder(reader, json, nowMs),
    targets: readTargets(reader, json),
    expectedCount:
      json.expected_count === undefined ? undefined : reader.count(json.expected_count, '', 'expected_count'),
    askedBy: readAskedBy(reader, json),
  };
  if (reader.error !== null) throw new LockgateError('input-command', reader.error);
  return request;
}

/** Which command, and when. */
function readOrder(reader: JsonReader, json: JsonObject, nowMs: number): Omit<CommandOrder, 'askedBy'> {
  const command = readCheckedCommand(reader, json);
  const notBeforeMs = readNotBefore(reader, json, nowMs);
  return {
    command,
    notBeforeMs,
    expiresAtMs: (notBeforeMs ?? nowMs) + readLifetime(reader, json, command),
    confirmsAirplane:
      json.confirm_airplane === undefined ? false : reader.flag(json.confirm_airplane, '', 'confirm_airplane'),
  };
}

function refuseUnknown(
  reader: JsonReader,
  json: JsonObject,
  path: string,
  known: { has(name: string): boolean },
): void {
  const unknown = Object.keys(json).find((name) => !known.has(name));
  if (unknown !== undefined)
    reader.reject(json[unknown], path, unknown.slice(0, MAX_QUOTED_NAME_CHARS), 'no such member');
}

function readTargets(reader: JsonReader, json: JsonObject): CommandTargets {
  if (json.macs === undefined) {
    if (json.all !== true) reader.reject(json.all, '', 'all', 'true together with merchant, or else macs');
    return { merchant: reader.text(json.merchant, '', 'merchant') };
  }
  if (json.merchant !== undefined) reader.reject(json.merchant, '', 'merchant', 'no such member together with macs');
  if (json.all !== undefined) reader.reject(json.all, '', 'all', 'no such member together with macs');
  const texts: readonly unknown[] = Array.isArray(json.macs) ? json.macs : [];
  if (texts.length === 0 || texts.length > MAX_MACS_PER_REQUEST)
    reader.reject(json.macs, '', 'macs', `a list of 1 to ${MAX_MACS_PER_REQUEST} MACs`);
  const macs = new Set<Mac>();
  texts.slice(0, MAX_MACS_PER_REQUEST).forEach((text, index) => {
    const mac = typeof text === 'string' ? parseMac(text) : undefined;
    if (mac?.ok === true) macs.add(mac.value);
    else reader.reject(text, '', `macs[${index}]`, '12 hex digits, such as A4:C1:38:F0:E1:D2');
  });
  return { macs: [...macs] };
}

function readCheckedCommand(reader: JsonReader, json: JsonObject): Command {
  const type = reader.word(json.type, '', 'type', COMMAND_TYPES);
  const parameters = json.parameters === undefined ? {} : reader.object(json.parameters, '', 'parameters');
  refuseUnknown(reader, parameters, 'parameters', new Set(PARAMETERS[type]));
  const command = readCommand(reader, { ...parameters, type }, 'parameters');
  // For a missing or faulty number of seconds, `command` has 0.
  if (command.type === 'siren' && !(Number(parameters.seconds) >= 1 && command.seconds <= MAX_SIREN_SECONDS))
    reader.reject(parameters.seconds, 'parameters', 'seconds', `a whole number of seconds, 1 to ${MAX_SIREN_SECONDS}`);
  if (command.type === 'set-power') checkPower(reader, parameters);
  return command;
}

/** Checks the parameters of a set-power command. */
function checkPower(reader: JsonReader, parameters: JsonObject): void {
  if (Object.keys(parameters).length === 0)
    reader.reject(undefined, '', 'parameters', `at least one of ${PARAMETERS['set-power'].join(', ')}`);
  if (parameters.airplane === false)
    reader.reject(false, 'parameters', 'airplane', 'true: nothing reaches a lock in airplane mode, to switch it off');
  const window = parameters.high_window;
  if (!isObject(window)) return;
  refuseUnknown(reader, window, 'parameters.high_window', new Set(['from', 'to', 'utc_offset_minutes']));
  const offset = window.utc_offset_minutes ?? 0;
  if (typeof offset !== 'number' || !Number.isInteger(offset) || Math.abs(offset) > MAX_UTC_OFFSET_MINUTES) {
    const range = `whole minutes, -${MAX_UTC_OFFSET_MINUTES} to ${MAX_UTC_OFFSET_MINUTES}`;
    reader.reject(offset, 'parameters.high_window', 'utc_offset_minutes', range);
  }
}

function readNotBefore(reader: JsonReader, json: JsonObject, nowMs: number): number | null {
  if (json.not_before === undefined || json.not_before === null) return null;
  const timeMs = reader.date(json.not_before, '', 'not_before');
  if (timeMs < nowMs || timeMs > nowMs + MAX_SCHEDULE_AHEAD)
    reader.reject(json.not_before, '', 'not_before', 'a future time, at most a year ahead (by the gateway’s clock)');
  return timeMs;
}

/** How long the command stays valid from when it may first be sent. In the JSON, `expires_in` is in seconds. */
function readLifetime(reader: JsonReader, json: JsonObject, command: Command): Milliseconds {
  if (json.expires_in === undefined) return defaultLifetime(command.type);
  const lifetime = Math.round(Seconds(reader.number(json.expires_in, '', 'expires_in')));
  if (lifetime < Seconds(1) || lifetime > MAX_LIFETIME)
    reader.reject(json.expires_in, '', 'expires_in', `seconds, 1 to ${MAX_LIFETIME / Seconds(1)}`);
  return lifetime;
}

function readAskedBy(reader: JsonReader, json: JsonObject): string {
  if (json.asked_by === undefined) return 'operator';
  const text = reader.text(json.asked_by, '', 'asked_by');
  if (text.length > MAX_ASKED_BY_CHARS) reader.reject(text, '', 'asked_by', `at most ${MAX_ASKED_BY_CHARS} characters`);
  return text;
}
