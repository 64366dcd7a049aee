/** Turns a row of a CSV file into an event of a trace, by a column map (column-map.ts). Never throws. */
import { LockgateError, ok, problem, type Result } from '../../../proto/errors.js';
import type { DisconnectCause } from '../../../proto/power/judge/event.js';
import { decodeUplink, encodeUplink } from '../../../proto/wire/codec.js';
import { type Mac, parseMac } from '../../../proto/wire/mac.js';
import { isPingUplink, type Uplink } from '../../../proto/wire/ping.js';
import { uplinkFromJson } from '../../../proto/wire/ping-from-json.js';
import { formatDate, isDatable } from '../../../proto/wire/ping-json.js';
import { bytesOfHex, uplinkEvent } from '../payload-event.js';
import { parseRecordedTime, TIME_EXPECTED } from '../recorded-time.js';
import type { RecordedEvent, RecordingOptions } from '../recording.js';
import { type Sender, senderOf } from '../sender.js';
import type { ColumnMap, ColumnRule, PingMember, RowMember } from './column-map.js';

/** Why a row is not imported: `code` is one of few fixed sentences, `message` says what is wrong with this row. */
export interface RowProblem {
  readonly code: string;
  readonly message: string;
}

const NO_TIME = 'a row without a usable time';
const NO_LOCK = 'a row of an unknown lock (devices in the map, or --mac MAC, names it)';
const BAD_VALUE = 'a row with a value that can’t be read';
const LEFT_OUT = 'a row that the map leaves out';

/** Members of a ping that are whole numbers: fractions are rounded. */
const WHOLE_NUMBERS = new Set<PingMember>(['battery_percent', 'uncertainty', 'boot', 'sequence', 'kept', 'dropped']);
const NUMBERS = new Set<PingMember>([...WHOLE_NUMBERS, 'ebike_voltage', 'latitude', 'longitude', 'speed', 'direction']);
/**
 * Why a connection ended: the client sent DISCONNECT; the connection broke; nothing came for longer than the keepalive;
 * the client connected again; or the server closed it.
 */
const CAUSES: readonly DisconnectCause[] = ['closed', 'dropped', 'keepalive', 'takeover', 'gateway'];
const TRUE_WORDS = new Set(['true', 'yes', 'on', '1']);
/** The start of invented MACs. They are locally administered addresses, which no manufacturer uses. */
const INVENTED_PREFIX = '02';
/** Invented MACs have 40 bits for the device's number. */
const MAX_DEVICE_NUMBER = 2 ** 40 - 1;
/** The maximum length of a cell's text in an error. */
const MAX_QUOTED_CHARACTERS = 40;

/** Reads the rows of one file. */
export class RowReader {
  readonly #map: ColumnMap;
  readonly #options: RecordingOptions;
  /** The index of each column, by its name in the header. */
  readonly #columnIndexes: ReadonlyMap<string, number>;
  readonly #onInvented: (name: string, mac: Mac) => void;
  /** The cells of the current row. */
  #cells: readonly string[] = [];

  /**
   * @param columns the index of each column, by its name in the header
   * @param onInvented called when a MAC is invented for a device's name
   */
  constructor(
    map: ColumnMap,
    options: RecordingOptions,
    columns: ReadonlyMap<string, number>,
    onInvented: (name: string, mac: Mac) => void,
  ) {
    this.#map = map;
    this.#options = options;
    this.#columnIndexes = columns;
    this.#onInvented = onInvented;
  }

  /** The event of a row, given the texts of its cells. */
  read(cells: readonly string[]): Result<RecordedEvent, RowProblem> {
    this.#cells = cells;
    if (this.#map.row.only !== undefined && !TRUE_WORDS.has((this.#rowValue('only') ?? '').toLowerCase()))
      return problem(LEFT_OUT, `${this.#map.row.only.column} does not have the value that the map requires`);
    const timeText = this.#rowValue('time') ?? '';
    const atMs = parseRecordedTime(timeText, this.#options.utcOffsetMs);
    if (Number.isNaN(atMs)) return problem(NO_TIME, `${quoted(timeText)}: expected ${TIME_EXPECTED}`);
    const sender = this.#sender();
    if (sender === undefined) return problem(NO_LOCK, quoted(this.#rowValue('mac') ?? ''));
    const kind = this.#rowValue('event') ?? 'ping';
    if (kind === 'connect') return ok({ event: { event: 'connect', ...sender, atMs } });
    if (kind === 'disconnect') return this.#disconnect(sender, atMs);
    if (kind !== 'ping') return problem(BAD_VALUE, `event ${quoted(kind)}: expected connect, disconnect or ping`);
    const payload = this.#rowValue('payload');
    return payload === null || payload === '' ? this.#ping(sender, atMs) : this.#uplink(sender, atMs, payload);
  }

  #disconnect(sender: Sender, atMs: number): Result<RecordedEvent, RowProblem> {
    const causeText = this.#rowValue('cause') ?? 'dropped';
    const cause = CAUSES.find((each) => each === causeText);
    if (cause === undefined)
      return problem(BAD_VALUE, `cause ${quoted(causeText)}: expected one of ${CAUSES.join(', ')}`);
    return ok({ event: { event: 'disconnect', ...sender, atMs, cause } });
  }

  #uplink(sender: Sender, atMs: number, payload: string): Result<RecordedEvent, RowProblem> {
    const event = uplinkEvent(sender, atMs, bytesOfHex(payload) ?? Buffer.from(payload, 'base64'));
    return event.ok ? event : problem(BAD_VALUE, event.error.message);
  }

  #ping(sender: Sender, atMs: number): Result<RecordedEvent, RowProblem> {
    const members = this.#pingMembers(atMs);
    if (!members.ok) return members;
    const { boot, sequence } = members.value;
    const lacksUplinkNumbers = boot === undefined || sequence === undefined;
    // If one is missing, the importer replaces both numbers by invented ones.
    const uplink = uplinkFromJson({ ...members.value, boot: boot ?? 1, sequence: sequence ?? 0 }, 'ping');
    if (!uplink.ok) return problem(BAD_VALUE, uplink.error.message);
    const rounded = roundToWire(uplink.value);
    if (!rounded.ok) return problem(BAD_VALUE, rounded.error.message);
    if (!isPingUplink(rounded.value)) return problem(BAD_VALUE, 'an acknowledgement: expected a ping');
    return ok({ event: { event: 'ping', ...sender, atMs, uplink: rounded.value }, lacksUplinkNumbers });
  }

  /** The ping's members as in a trace. A member that the file does not have gets a value that breaks no rule. */
  #pingMembers(atMs: number): Result<Record<string, unknown>, RowProblem> {
    const members: Record<string, unknown> = {
      lock_state: 'unknown',
      battery_percent: 100,
      firmware_version: '',
      ebike_voltage: null,
      tether_state: 'unknown',
      date: formatDate(atMs),
    };
    for (const [member, rule] of Object.entries(this.#map.ping) as [PingMember, ColumnRule][]) {
      const text = this.#valueOf(rule);
      if (text === null || text === '') continue;
      const value = this.#parse(member, text, rule);
      if (value === undefined) return problem(BAD_VALUE, `${rule.column ?? member} is ${quoted(text)}`);
      members[member] = value;
    }
    const hasPosition = members.latitude !== undefined && members.longitude !== undefined;
    members.ping_type ??= hasPosition ? 'gps' : 'cellular';
    if (members.ping_type === 'gps') {
      members.speed ??= 0;
      members.direction ??= 0;
    }
    if (hasPosition) members.uncertainty ??= 0;
    members.power = {
      mode: members.mode ?? 'MID',
      ride_tracking: members.ride_tracking ?? false,
      airplane: members.airplane ?? false,
      recovery: members.recovery ?? false,
    };
    return ok(members);
  }

  /** A member's value; undefined if the text is not of the member's type. */
  #parse(member: PingMember, text: string, { scale }: ColumnRule): unknown {
    if (NUMBERS.has(member)) {
      const number = Number(text) * scale;
      if (!Number.isFinite(number)) return undefined;
      return WHOLE_NUMBERS.has(member) ? Math.round(number) : number;
    }
    if (member === 'ride_tracking' || member === 'airplane' || member === 'recovery')
      return TRUE_WORDS.has(text.toLowerCase());
    if (member !== 'date') return text;
    const timeMs = parseRecordedTime(text, this.#options.utcOffsetMs);
    return isDatable(timeMs) ? formatDate(timeMs) : undefined;
  }

  /** The lock or phone that the row is about. */
  #sender(): Sender | undefined {
    const name = this.#rowValue('mac') ?? '';
    const sender = this.#map.devices.get(name) ?? senderOf(name);
    const isPhone = this.#rowValue('source') === 'phone';
    if (sender !== undefined) return isPhone ? { ...sender, source: 'phone' } : sender;
    if (this.#options.mac !== null) return { mac: this.#options.mac, source: isPhone ? 'phone' : 'lock' };
    const mac = this.#map.inventsMacs ? inventedMac(name) : undefined;
    if (mac === undefined) return undefined;
    this.#onInvented(name, mac);
    return { mac, source: 'lock' };
  }

  /** The value of a row's member; null if the file does not have it. */
  #rowValue(member: RowMember): string | null {
    const rule = this.#map.row[member];
    return rule === undefined ? null : this.#valueOf(rule);
  }

  /** The value that a rule of the map gives for the current row; null for none. */
  #valueOf({ column, values, fallback }: ColumnRule): string | null {
    const index = column === null ? undefined : this.#columnIndexes.get(column);
    const cell = index === undefined ? '' : (this.#cells[index] ?? '').trim();
    const word = values?.get(cell);
    if (word !== undefined) return word;
    if (cell === '') return fallback;
    return values === null ? cell : (fallback ?? cell);
  }
}

/** The uplink with its values rounded as on the wire (protocol.md §1). */
function roundToWire(uplink: Uplink): Result<Uplink> {
  try {
    return decodeUplink(encodeUplink(uplink));
  } catch (error) {
    if (error instanceof LockgateError) return problem('unencodable', error.message);
    throw error;
  }
}

/** A MAC for a device that the file names by a number. */
function inventedMac(name: string): Mac | undefined {
  const number = /^\d{1,13}$/.test(name) ? Number(name) : Number.NaN;
  if (Number.isNaN(number) || number > MAX_DEVICE_NUMBER) return undefined;
  const mac = parseMac(`${INVENTED_PREFIX}${number.toString(16).padStart(10, '0')}`);
  return mac.ok ? mac.value : undefined;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTED_CHARACTERS ? `${text.slice(0, MAX_QUOTED_CHARACTERS)}…` : text);
}
