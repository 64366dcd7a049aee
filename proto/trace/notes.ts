/**
 * Collects the members of a trace that the format does not have (protocol.md §4). The reader ignores such a member, so
 * a misspelt one could silently turn a rule off. Therefore each is noted, with the member that was probably meant. A
 * note is neither an error nor a finding. Does no I/O, and is bounded in size.
 */
import { nearestNames } from '../did-you-mean.js';
import { isObject, type JsonObject, showJson } from '../json-reader.js';
import { PING_FIELDS } from '../wire/ping-fields.js';

/** A member that the format does not have. */
export interface TraceNote {
  /** The first line that has it, from 1. */
  readonly line: number;
  /** Its path in that line, such as `ping.batery_percent`. */
  readonly member: string;
  /** What is unknown, and what was probably meant. */
  readonly message: string;
  /** How many times the trace has it in an object of this kind. */
  readonly times: number;
}

/** Different unknown members that are noted; further ones are only counted. */
const MAX_NOTES = 100;

/** How much of a member's name a note shows. */
const MAX_NAME_CHARACTERS = 60;

/** The members that the format has: of the header, of the objects in a line, and of each event. */
export const HEADER_MEMBERS = new Set(['trace', 'version', 'note', 'locks']);
const POWER_MEMBERS = new Set(['mode', 'ride_tracking', 'airplane', 'recovery']);
const HIGH_WINDOW_MEMBERS = new Set(['from', 'to', 'utc_offset_minutes']);
const COMMAND_PARAMETERS = ['id', 'type', 'expires', 'seconds', ...POWER_MEMBERS, 'high_window'];
export const COMMAND_MEMBERS = {
  inLine: new Set(COMMAND_PARAMETERS),
  inHeader: new Set([...COMMAND_PARAMETERS, 'at']),
} as const;
/** The members that pings and acknowledgements have in common. */
const ENVELOPE = ['boot', 'sequence', 'date', 'time_ms', 'power', 'kept', 'dropped', 'raw', 'credential'];
const PING_MEMBERS = new Set(['ping_type', ...Object.values(PING_FIELDS).map(({ json }) => json), ...ENVELOPE]);
const ACK_MEMBERS = new Set(['id', 'result', 'detail', 'high_window', ...ENVELOPE]);
const EVENT_MEMBERS = {
  connect: new Set(['at', 'event', 'mac', 'source']),
  disconnect: new Set(['at', 'event', 'mac', 'source', 'cause']),
  ping: new Set(['at', 'event', 'mac', 'source', 'credential', 'raw', 'ping']),
  ack: new Set(['at', 'event', 'mac', 'source', 'credential', 'raw', 'ack']),
  command: new Set(['at', 'event', 'mac', 'command']),
  // `trace export` writes a note where it leaves a damaged uplink out.
  tick: new Set(['at', 'event', 'note']),
  gateway: new Set(['at', 'event', 'state']),
} as const;

/** See the top of this file. */
export class TraceNotes {
  /** The number of the line that is being read, from 1. */
  line = 0;
  /** How many members were not noted because there were too many different ones. */
  leftOut = 0;
  readonly #notes = new Map<string, { -readonly [Member in keyof TraceNote]: TraceNote[Member] }>();

  /** The notes, in the order of their first lines. */
  all(): readonly TraceNote[] {
    return [...this.#notes.values()];
  }

  /**
   * Notes the members of `json` that are not `known`.
   *
   * @param path where the object is in the line; empty for the line itself
   * @param kind what the object is, for the message
   */
  check(json: JsonObject, path: string, kind: string, known: ReadonlySet<string>): void {
    for (const member in json) if (!known.has(member)) this.#add(member, path, kind, known);
  }

  #add(member: string, path: string, kind: string, known: ReadonlySet<string>): void {
    const key = `${kind} ${member}`;
    const knownNote = this.#notes.get(key);
    if (knownNote !== undefined) knownNote.times += 1;
    else if (this.#notes.size >= MAX_NOTES) this.leftOut += 1;
    else {
      const name = path === '' ? member : `${path}.${member}`;
      const suggested = suggestion(member, known);
      const message = `${showJson(member)} is no member of ${kind} and was ignored.${suggested}`;
      this.#notes.set(key, { line: this.line, member: name.slice(0, MAX_NAME_CHARACTERS), message, times: 1 });
    }
  }
}

/** The member that was probably meant: one of the same object, or one of another object of a line. */
function suggestion(member: string, known: ReadonlySet<string>): string {
  const word = member.slice(0, MAX_NAME_CHARACTERS);
  const nearest = nearestNames(word, known);
  if (nearest.length > 0) return ` Did you mean ${nearest.join(' or ')}?`;
  if (PING_MEMBERS.has(word)) return ` It belongs in "ping".`;
  return '';
}

/**
 * Notes the unknown members of an event's line. A `world` event, which records what truly happened around a
 * simulated lock, may have any members.
 */
export function noteEvent(notes: TraceNotes, json: JsonObject, event: keyof typeof EVENT_MEMBERS | 'world'): void {
  if (event === 'world') return;
  notes.check(json, '', `${event === 'ack' ? 'an' : 'a'} "${event}" event`, EVENT_MEMBERS[event]);
  if (event === 'command') noteCommand(notes, json.command, event, COMMAND_MEMBERS.inLine);
  if (event !== 'ping' && event !== 'ack') return;
  const uplink = json[event];
  if (!isObject(uplink)) return;
  notes.check(uplink, event, event === 'ack' ? '"ack"' : '"ping"', event === 'ack' ? ACK_MEMBERS : PING_MEMBERS);
  notePower(notes, uplink.power, `${event}.power`);
  noteHighWindow(notes, uplink.high_window, `${event}.high_window`);
}

/** Notes the unknown members of a command. */
export function noteCommand(notes: TraceNotes, value: unknown, path: string, known: ReadonlySet<string>): void {
  if (!isObject(value)) return;
  notes.check(value, path, 'a command', known);
  noteHighWindow(notes, value.high_window, `${path}.high_window`);
}

/** Notes the unknown members of power settings. */
export function notePower(notes: TraceNotes, value: unknown, path: string): void {
  if (isObject(value)) notes.check(value, path, '"power"', POWER_MEMBERS);
}

/** Notes the unknown members of a high window. */
export function noteHighWindow(notes: TraceNotes, value: unknown, path: string): void {
  if (isObject(value)) notes.check(value, path, '"high_window"', HIGH_WINDOW_MEMBERS);
}
