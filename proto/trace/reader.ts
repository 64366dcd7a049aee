/**
 * Reads a trace line by line (protocol.md §4). Each line gives an event, or an error that says what is wrong with the
 * line. After the first line that can't be read, every further line gives the same error. A ping line in the *canonical
 * spelling*, exactly as writer.ts writes it, takes a fast path (canonical-line.ts). Does no I/O.
 */
import { ok, type Problem, type Result } from '../errors.js';
import { isObject, type JsonObject, JsonReader } from '../json-reader.js';
import type { DisconnectCause } from '../power/judge/event.js';
import { describeTime } from '../power/judge/words.js';
import { type Mac, parseMac } from '../wire/mac.js';
import type { CommandAck, PingUplink, Source, Uplink } from '../wire/ping.js';
import { type EnvelopeDefaults, readAckUplink, readCommand, readPingUplink } from '../wire/ping-from-json.js';
import { CanonicalLine } from './canonical-line.js';
import { HEADER_EXPECTED, readHeader } from './header-reader.js';
import { type Sender, TraceMemory } from './memory.js';
import { noteEvent, TraceNotes } from './notes.js';
import { readRaw } from './raw.js';
import { FIRST_CREDENTIAL, MAX_CREDENTIAL, type TraceEvent, type TraceHeader, UNNAMED_LOCK } from './trace.js';

/** What is wrong with a line. The message also says what was expected; the caller adds the file's name. */
export interface TraceProblem extends Problem {
  readonly code: 'bad-trace';
  /** From 1. */
  readonly line: number;
}

/** The maximum number of MAC spellings in the caches, which save parsing a MAC in every line. */
const MAX_MAC_SPELLINGS = 100_000;

const EVENTS = ['connect', 'disconnect', 'ping', 'ack', 'command', 'tick', 'gateway', 'world'] as const;
const SOURCES = ['lock', 'phone'] as const satisfies readonly Source[];
const CAUSES = ['closed', 'dropped', 'keepalive', 'takeover', 'gateway'] as const satisfies readonly DisconnectCause[];
const GATEWAY_STATES = ['start', 'stop'] as const;

/** The lock itself, with its only or oldest credential. */
const FIRST_SENDER: Sender = Object.freeze({ source: 'lock', credential: FIRST_CREDENTIAL });

/** A lock, and what the reader remembers of it for members that lines omit. */
interface KnownLock {
  readonly mac: Mac;
  readonly memory: TraceMemory;
}

/** Reads the lines of one trace, in order. */
export class TraceReader {
  #line = 0;
  #header: TraceHeader | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;
  #problem: TraceProblem | null = null;
  readonly #locks = new Map<Mac, KnownLock>();
  readonly #locksBySpelling = new Map<string, KnownLock>();
  readonly #locksByMacNumber = new Map<number, KnownLock>();
  readonly #canonicalLine = new CanonicalLine();
  readonly #notes = new TraceNotes();
  #raw: Buffer | null = null;

  /** The number of the last line read, from 1. */
  get line(): number {
    return this.#line;
  }

  /** Null until the first line has been read. */
  get header(): TraceHeader | null {
    return this.#header;
  }

  /** The bytes (`raw`) of the last line's uplink; null if the line has none. */
  get raw(): Uint8Array | null {
    return this.#raw;
  }

  /** The members read so far that the format does not have. */
  get notes(): TraceNotes {
    return this.#notes;
  }

  /** Reads the next line, without its line end. Returns null for the header and for an empty line. */
  read(text: string): Result<TraceEvent | null, TraceProblem> {
    this.#line += 1;
    this.#raw = null;
    if (this.#problem !== null) return { ok: false, error: this.#problem };
    const reader = new JsonReader();
    let event: TraceEvent | null = null;
    this.#notes.line = this.#line;
    const json = parse(reader, text, this.#header === null);
    if (json === null) {
      // People may separate groups of lines by empty lines.
    } else if (this.#header === null) this.#header = this.#readHeader(reader, json);
    else event = this.#readEvent(reader, json);
    return reader.error === null ? ok(event) : this.#fail(reader.error);
  }

  /**
   * Reads the next line from bytes, from `start` up to but not including `end`. The same as {@link read}, but faster: a
   * lock's ping, connect or disconnect in the canonical spelling is not converted to a string first.
   */
  readBytes(bytes: Uint8Array, start: number, end: number): Result<TraceEvent | null, TraceProblem> {
    if (this.#header !== null && this.#problem === null) {
      const uplink = this.#canonicalLine.read(bytes, start, end);
      // If the time goes back, the slow path below reports it.
      if (this.#canonicalLine.atMs >= this.#lastMs) {
        if (uplink !== undefined) return ok(this.#canonicalPing(bytes, uplink));
        if (this.#canonicalLine.connection !== null) return ok(this.#canonicalConnection(bytes));
      }
    }
    return this.read(textOf(bytes, start, end));
  }

  #canonicalPing(bytes: Uint8Array, uplink: PingUplink): TraceEvent {
    const { atMs, credential } = this.#canonicalLine;
    const { mac, memory } = this.#canonicalLock(bytes);
    // The line names no credential.
    if (credential === 0) {
      memory.noteUplink(FIRST_SENDER, uplink.boot, uplink.sequence);
      return { event: 'ping', atMs, mac, source: 'lock', uplink };
    }
    memory.noteUplink({ source: 'lock', credential }, uplink.boot, uplink.sequence);
    return { event: 'ping', atMs, mac, source: 'lock', credential, uplink };
  }

  #canonicalConnection(bytes: Uint8Array): TraceEvent {
    const { atMs, connection } = this.#canonicalLine;
    const { mac } = this.#canonicalLock(bytes);
    if (connection === null || connection === 'connect') return { event: 'connect', atMs, mac, source: 'lock' };
    return { event: 'disconnect', atMs, mac, source: 'lock', cause: connection };
  }

  /** Counts the line that was just read, and returns its lock. */
  #canonicalLock(bytes: Uint8Array): KnownLock {
    const { atMs, macNumber, macStart } = this.#canonicalLine;
    this.#line += 1;
    this.#raw = null;
    this.#lastMs = atMs;
    let lock = this.#locksByMacNumber.get(macNumber);
    if (lock === undefined) {
      lock = this.#lockOf(new JsonReader(), textOf(bytes, macStart, macStart + MAC_LENGTH));
      if (this.#locksByMacNumber.size >= MAX_MAC_SPELLINGS) this.#locksByMacNumber.clear();
      this.#locksByMacNumber.set(macNumber, lock);
    }
    return lock;
  }

  /** To be called after the last line. Returns the header, or an error if a line was wrong or there is no header. */
  end(): Result<TraceHeader, TraceProblem> {
    if (this.#problem !== null) return { ok: false, error: this.#problem };
    if (this.#header !== null) return ok(this.#header);
    this.#line = Math.max(this.#line, 1);
    return this.#fail(`there is no header: expected ${HEADER_EXPECTED}`);
  }

  #fail(message: string): { ok: false; error: TraceProblem } {
    this.#problem = { code: 'bad-trace', message, line: this.#line };
    return { ok: false, error: this.#problem };
  }

  #readHeader(reader: JsonReader, json: JsonObject): TraceHeader {
    const header = readHeader(reader, json, this.#notes);
    for (const [mac, lock] of header.locks) {
      const memory = new TraceMemory(lock.power);
      for (const { id, command } of lock.commands ?? []) memory.noteCommand(id, command);
      this.#locks.set(mac, { mac, memory });
    }
    return header;
  }

  #readEvent(reader: JsonReader, json: JsonObject): TraceEvent | null {
    const atMs = reader.date(json.at, '', 'at');
    if (reader.error === null && atMs < this.#lastMs) {
      const [at, last] = [describeTime(atMs), describeTime(this.#lastMs)];
      reader.error = `at ${at} is before ${last}, the time of a line above: expected that at never goes back`;
      return null;
    }
    this.#lastMs = atMs;
    const event = reader.word(json.event, '', 'event', EVENTS);
    noteEvent(this.#notes, json, event);
    if (event === 'ping' || event === 'ack') return this.#readUplink(reader, json, atMs, event);
    switch (event) {
      case 'tick':
        return { event, atMs };
      case 'gateway':
        return { event, atMs, state: reader.word(json.state, '', 'state', GATEWAY_STATES) };
      case 'world':
        return { event, atMs, mac: json.mac === undefined ? null : this.#lockOf(reader, json.mac).mac, members: json };
      case 'connect':
        return { event, atMs, mac: this.#lockOf(reader, json.mac).mac, source: readSource(reader, json) };
      case 'disconnect': {
        const cause = reader.word(json.cause, '', 'cause', CAUSES);
        return { event, atMs, mac: this.#lockOf(reader, json.mac).mac, source: readSource(reader, json), cause };
      }
      case 'command': {
        const { mac, memory } = this.#lockOf(reader, json.mac);
        const members = reader.object(json.command, '', 'command');
        const id = reader.count(members.id, 'command', 'id');
        const command = readCommand(reader, members, 'command');
        memory.noteCommand(id, command);
        if (members.expires === undefined || members.expires === null) return { event, atMs, mac, id, command };
        const expiresMs = reader.date(members.expires, 'command', 'expires');
        return { event, atMs, mac, id, command, expiresMs };
      }
    }
  }

  #readUplink(reader: JsonReader, json: JsonObject, atMs: number, event: 'ping' | 'ack'): TraceEvent {
    const { mac, memory } = this.#lockOf(reader, json.mac);
    const source = readSource(reader, json);
    const members = isObject(json[event]) ? json[event] : {};
    const credential = readCredential(reader, json.credential === undefined ? members.credential : json.credential);
    const sender = { source, credential: credential ?? FIRST_CREDENTIAL };
    const senderMembers = credential === undefined ? { source } : { source, credential };
    const raw = json.raw ?? members.raw;
    if (typeof raw === 'string') this.#raw = Buffer.from(raw, 'base64');
    // What `readRaw` returns is of the event's kind, or a placeholder that no caller uses; so the casts below hold.
    if (event === 'ping') {
      const uplink =
        raw === undefined
          ? readPingLine(reader, json.ping, memory.defaults(sender, atMs))
          : (readRaw(reader, raw, json.ping, event) as PingUplink);
      memory.noteUplink(sender, uplink.boot, uplink.sequence);
      return { event, atMs, mac, ...senderMembers, uplink };
    }
    const uplink =
      raw === undefined
        ? readAckLine(reader, json.ack, memory, sender, atMs)
        : (readRaw(reader, raw, json.ack, event) as Uplink<CommandAck>);
    memory.noteUplink(sender, uplink.boot, uplink.sequence);
    memory.noteAck(source, uplink);
    return { event, atMs, mac, ...senderMembers, uplink };
  }

  #lockOf(reader: JsonReader, text: unknown): KnownLock {
    // Only texts are keys, so another value finds nothing.
    const knownLock = this.#locksBySpelling.get(text as string);
    if (knownLock !== undefined) return knownLock;
    const mac = parseMac(reader.text(text, '', 'mac'));
    if (!mac.ok) {
      reader.error ??= mac.error.message;
      // A placeholder that no caller uses, since the reader has an error.
      return { mac: '000000000000' as Mac, memory: new TraceMemory(UNNAMED_LOCK.power) };
    }
    const lock = this.#locks.get(mac.value) ?? { mac: mac.value, memory: new TraceMemory(UNNAMED_LOCK.power) };
    this.#locks.set(mac.value, lock);
    if (this.#locksBySpelling.size >= MAX_MAC_SPELLINGS) this.#locksBySpelling.clear();
    this.#locksBySpelling.set(text as string, lock);
    return lock;
  }
}

/** The length of a MAC with its colons. */
const MAC_LENGTH = 17;

function textOf(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8');
}

/** The line's object; null for an empty line, and for a line that is no JSON object, with an error in `reader`. */
function parse(reader: JsonReader, text: string, isFirst: boolean): JsonObject | null {
  const expected = isFirst ? HEADER_EXPECTED : 'an event such as {"at":"2026-11-20T06:00:00.000Z","event":"tick"}';
  try {
    const json: unknown = JSON.parse(text);
    if (isObject(json)) return json;
    reader.error = `the line is no JSON object: expected ${expected}`;
  } catch (error) {
    // Editors may put a byte order mark before the first line.
    if (isFirst && text.charCodeAt(0) === 0xfeff) return parse(reader, text.slice(1), isFirst);
    if (text.trim() !== '') reader.error = `the line is no JSON (${(error as Error).message}): expected ${expected}`;
  }
  return null;
}

function readSource(reader: JsonReader, json: JsonObject): Source {
  return json.source === undefined ? 'lock' : reader.word(json.source, '', 'source', SOURCES);
}

/** The number of the credential; undefined if it is left out. */
function readCredential(reader: JsonReader, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (Number.isInteger(value) && Number(value) >= FIRST_CREDENTIAL && Number(value) <= MAX_CREDENTIAL)
    return Number(value);
  reader.reject(value, '', 'credential', `a whole number, ${FIRST_CREDENTIAL} to ${MAX_CREDENTIAL}`);
  return undefined;
}

function readPingLine(reader: JsonReader, value: unknown, defaults: EnvelopeDefaults): PingUplink {
  return readPingUplink(reader, reader.object(value, 'ping', ''), 'ping', defaults);
}

/** If the acknowledgement of a set-power omits the high window, the window that the command asked for is in force. */
function readAckLine(
  reader: JsonReader,
  value: unknown,
  memory: TraceMemory,
  sender: Sender,
  atMs: number,
): Uplink<CommandAck> {
  const json = reader.object(value, 'ack', '');
  const defaults = memory.ackDefaults(sender, atMs, json.id, json.result);
  const uplink = readAckUplink(reader, json, 'ack', defaults);
  const highWindow = memory.changeOf(uplink.body.commandId)?.highWindow;
  if (highWindow === undefined || uplink.body.result !== 'ok' || uplink.body.highWindow !== null) return uplink;
  return { ...uplink, body: { ...uplink.body, highWindow } };
}
