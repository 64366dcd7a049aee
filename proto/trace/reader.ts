/**
 * Reads a trace line by line (protocol.md §4). Each line gives an event, or an error that says what is wrong with the
 * line. After the first line that can't be read, every further line gives the same error. Does no I/O.
 */
import { ok, type Problem, type Result } from '../errors.js';
import { isObject, type JsonObject, JsonReader } from '../json-reader.js';
import type { CommandBefore } from '../power/judge/belief.js';
import type { DisconnectCause } from '../power/judge/event.js';
import { describeTime } from '../power/judge/words.js';
import { type Mac, parseMac } from '../wire/mac.js';
import type { CommandAck, LockState, PingUplink, PowerSettings, Source, Uplink } from '../wire/ping.js';
import { readAckUplink, readCommand, readHighWindow, readPingUplink } from '../wire/ping-from-json.js';
import { MAX_REFLASH_MARKS } from '../wire/uplink-life.js';
import { CanonicalLine } from './canonical-line.js';
import { TraceMemory } from './memory.js';
import { readRaw } from './raw.js';
import { TRACE_NAME, TRACE_VERSION, type TraceEvent, type TraceHeader, type TraceLock, UNNAMED_LOCK } from './trace.js';

/** What is wrong with a line. The message also says what was expected; the caller adds the file's name. */
export interface TraceProblem extends Problem {
  readonly code: 'bad-trace';
  /** From 1. */
  readonly line: number;
}

/** Spellings of MACs in the cache, which saves parsing a MAC on every line. */
const MAX_MAC_SPELLINGS = 100_000;

const EVENTS = ['connect', 'disconnect', 'ping', 'ack', 'command', 'tick', 'gateway', 'world'] as const;
const SOURCES = ['lock', 'phone'] as const satisfies readonly Source[];
const CAUSES = ['closed', 'dropped', 'keepalive', 'takeover', 'gateway'] as const satisfies readonly DisconnectCause[];
const LOCK_STATES = ['locked', 'unlocked', 'unknown'] as const satisfies readonly LockState[];
const GATEWAY_STATES = ['start', 'stop'] as const;

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

  /** Reads the next line, without its line end. Returns null for the header and for an empty line. */
  read(text: string): Result<TraceEvent | null, TraceProblem> {
    this.#line += 1;
    this.#raw = null;
    if (this.#problem !== null) return { ok: false, error: this.#problem };
    const reader = new JsonReader();
    let event: TraceEvent | null = null;
    const json = parse(reader, text, this.#header === null);
    if (json === null) {
      // People may separate groups of lines by empty lines.
    } else if (this.#header === null) this.#header = this.#readHeader(reader, json);
    else event = this.#readEvent(reader, json);
    return reader.error === null ? ok(event) : this.#fail(reader.error);
  }

  /**
   * Reads the next line from bytes, from `start` up to but not including `end`. The same as {@link read}, but faster: a
   * lock's ping in the canonical spelling is not converted to a string first.
   */
  readBytes(bytes: Uint8Array, start: number, end: number): Result<TraceEvent | null, TraceProblem> {
    if (this.#header !== null && this.#problem === null) {
      const uplink = this.#canonicalLine.read(bytes, start, end);
      // If the time goes back, the slow path below reports it.
      if (uplink !== undefined && this.#canonicalLine.atMs >= this.#lastMs)
        return ok(this.#canonicalPing(bytes, uplink));
    }
    return this.read(textOf(bytes, start, end));
  }

  #canonicalPing(bytes: Uint8Array, uplink: PingUplink): TraceEvent {
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
    lock.memory.noteUplink('lock', uplink.boot, uplink.sequence);
    return { event: 'ping', atMs, mac: lock.mac, source: 'lock', uplink };
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
    if (json.trace !== TRACE_NAME) reader.expect(json.trace, '', 'trace', HEADER_EXPECTED);
    if (json.version !== TRACE_VERSION) reader.expect(json.version, '', 'version', `${TRACE_VERSION}`);
    const note = json.note === undefined ? '' : reader.text(json.note, '', 'note');
    const locks = new Map<Mac, TraceLock>();
    const named = json.locks === undefined ? {} : reader.object(json.locks, '', 'locks');
    for (const [text, value] of Object.entries(named)) {
      const mac = parseMac(text);
      if (!mac.ok) reader.error ??= `in locks, ${mac.error.message}`;
      else if (locks.has(mac.value)) reader.error ??= `in locks, ${text} stands twice: expected each lock once`;
      else locks.set(mac.value, readLock(reader, value, `locks.${text}`));
    }
    for (const [mac, lock] of locks) {
      const memory = new TraceMemory(lock.power);
      for (const { id, command } of lock.commands ?? []) memory.noteCommand(id, command);
      this.#locks.set(mac, { mac, memory });
    }
    return { note, locks };
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
    const raw = json.raw ?? (isObject(json[event]) ? json[event].raw : undefined);
    if (typeof raw === 'string') this.#raw = Buffer.from(raw, 'base64');
    if (event === 'ping') {
      const uplink =
        raw === undefined
          ? readPingLine(reader, json.ping, memory, source, atMs)
          : (readRaw(reader, raw, json.ping, event) as PingUplink);
      memory.noteUplink(source, uplink.boot, uplink.sequence);
      return { event, atMs, mac, source, uplink };
    }
    const uplink =
      raw === undefined
        ? readAckLine(reader, json.ack, memory, source, atMs)
        : (readRaw(reader, raw, json.ack, event) as Uplink<CommandAck>);
    memory.noteUplink(source, uplink.boot, uplink.sequence);
    memory.noteAck(source, uplink);
    return { event, atMs, mac, source, uplink };
  }

  #lockOf(reader: JsonReader, text: unknown): KnownLock {
    const known = this.#locksBySpelling.get(text as string);
    if (known !== undefined) return known;
    const mac = parseMac(reader.text(text, '', 'mac'));
    if (!mac.ok) {
      reader.error ??= mac.error.message;
      return { mac: '000000000000' as Mac, memory: new TraceMemory(UNNAMED_LOCK.power) };
    }
    const lock = this.#locks.get(mac.value) ?? { mac: mac.value, memory: new TraceMemory(UNNAMED_LOCK.power) };
    this.#locks.set(mac.value, lock);
    if (this.#locksBySpelling.size >= MAX_MAC_SPELLINGS) this.#locksBySpelling.clear();
    this.#locksBySpelling.set(text as string, lock);
    return lock;
  }
}

/** Commands that a header lists for a lock at most. */
const MAX_COMMANDS_BEFORE = 1000;

/** The length of a MAC with its colons. */
const MAC_LENGTH = 17;

function textOf(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8');
}

const HEADER_EXPECTED = `a header such as {"trace":"${TRACE_NAME}","version":${TRACE_VERSION},"locks":{}}`;

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

function readPingLine(
  reader: JsonReader,
  value: unknown,
  memory: TraceMemory,
  source: Source,
  atMs: number,
): PingUplink {
  return readPingUplink(reader, reader.object(value, 'ping', ''), 'ping', memory.defaults(source, atMs));
}

/** If the acknowledgement of a set-power omits the high window, the window that the command asked for is in force. */
function readAckLine(
  reader: JsonReader,
  value: unknown,
  memory: TraceMemory,
  source: Source,
  atMs: number,
): Uplink<CommandAck> {
  const json = reader.object(value, 'ack', '');
  const defaults = memory.ackDefaults(source, atMs, json.id, json.result);
  const uplink = readAckUplink(reader, json, 'ack', defaults);
  const highWindow = memory.changeOf(uplink.body.commandId)?.highWindow;
  if (highWindow === undefined || uplink.body.result !== 'ok' || uplink.body.highWindow !== null) return uplink;
  return { ...uplink, body: { ...uplink.body, highWindow } };
}

/** Reads a lock of the header. Every member may be omitted. */
function readLock(reader: JsonReader, value: unknown, name: string): TraceLock {
  const json = reader.object(value, name, '');
  const { high_window: window, last_period: period, connected, lock_state: state, reflashed, commands } = json;
  return {
    power: readHeaderPower(reader, json.power, name),
    highWindow: window === undefined ? null : readHighWindow(reader, window, name, 'high_window'),
    lockState: state === undefined ? 'unknown' : reader.word(state, name, 'lock_state', LOCK_STATES),
    connected: connected === undefined ? false : reader.flag(connected, name, 'connected'),
    lastPeriodMs: period === undefined || period === null ? null : reader.date(period, name, 'last_period'),
    ...(reflashed !== undefined && { reflashed: readReflashMarks(reader, reflashed, name) }),
    ...(commands !== undefined && { commands: readCommandsBefore(reader, commands, name) }),
  };
}

function readReflashMarks(reader: JsonReader, value: unknown, name: string): number[] {
  if (!Array.isArray(value) || value.length > MAX_REFLASH_MARKS) {
    reader.expect(value, name, 'reflashed', `a list of at most ${MAX_REFLASH_MARKS} dates`);
    return [];
  }
  return value.map((mark, index) => reader.date(mark, `${name}.reflashed`, String(index)));
}

function readCommandsBefore(reader: JsonReader, value: unknown, name: string): CommandBefore[] {
  if (!Array.isArray(value) || value.length > MAX_COMMANDS_BEFORE) {
    reader.expect(value, name, 'commands', `a list of at most ${MAX_COMMANDS_BEFORE} commands`);
    return [];
  }
  return value.map((each, index) => {
    const at = `${name}.commands.${index}`;
    const json = reader.object(each, at, '');
    return {
      id: reader.count(json.id, at, 'id'),
      command: readCommand(reader, json, at),
      atMs: reader.date(json.at, at, 'at'),
      ...(json.expires !== undefined &&
        json.expires !== null && { expiresMs: reader.date(json.expires, at, 'expires') }),
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
