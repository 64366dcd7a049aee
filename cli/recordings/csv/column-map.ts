/**
 * Reads a column map: a YAML file of the user (`--map`) that says which column of a CSV file has which value of an
 * event. Mistakes in the map are reported by line. The map for Traccar's export is built in (traccar-map.ts).
 */
import { type Mistake, readYaml } from '../../../firmware-sim/scenario/yaml.js';
import { isObject, type JsonObject } from '../../../proto/json-reader.js';
import { parseMac } from '../../../proto/wire/mac.js';
import { type Sender, senderOf } from '../sender.js';

/** Where the value of a member comes from: a cell, or the same text for all rows. */
export interface ColumnRule {
  /** The column's name in the header; null if all rows have `fallback`. */
  readonly column: string | null;
  /**
   * The possible words of a cell, and the value that each stands for. Any other cell stands for `fallback`, or for
   * itself if `fallback` is null. Null if cells are values already.
   */
  readonly values: ReadonlyMap<string, string> | null;
  /** The value for an empty cell; null to leave the member out. */
  readonly fallback: string | null;
  /** The cell's number is multiplied by this. */
  readonly scale: number;
  /** Whether a file may lack the column. */
  readonly isOptional: boolean;
}

/**
 * Members of a ping that a column can have: those of a trace, with the power settings next to them. `kept` counts the
 * uplinks (messages) that still wait in the lock, `dropped` those that it has discarded since its boot.
 */
export const PING_MEMBERS = [
  'ping_type',
  'reason',
  'lock_state',
  'battery_percent',
  'firmware_version',
  'ebike_voltage',
  'tether_state',
  'latitude',
  'longitude',
  'speed',
  'direction',
  'uncertainty',
  'date',
  'boot',
  'sequence',
  'kept',
  'dropped',
  'mode',
  'ride_tracking',
  'airplane',
  'recovery',
] as const;
/** The name of such a member. */
export type PingMember = (typeof PING_MEMBERS)[number];

/**
 * Members of a row. `event` is `connect`, `disconnect` or `ping`; `cause` says why a connection ended; `source` is
 * `lock`, or `phone` for a phone that acts for the lock; `payload` is a complete uplink in hex or base64. If the map
 * has `only`, rows where it is not a word such as `true` are left out.
 */
export const ROW_MEMBERS = ['time', 'mac', 'event', 'cause', 'source', 'payload', 'only'] as const;
/** The name of such a member. */
export type RowMember = (typeof ROW_MEMBERS)[number];

/** A column map. `row` and `ping` have a rule for each member of an event that the file has. */
export interface ColumnMap {
  readonly delimiter: string;
  readonly row: Readonly<Partial<Record<RowMember, ColumnRule>>>;
  readonly ping: Readonly<Partial<Record<PingMember, ColumnRule>>>;
  /** The lock for each device name in the file. */
  readonly devices: ReadonlyMap<string, Sender>;
  /** A column whose cells may contain delimiters without quotes; null if there is none. */
  readonly unquotedColumn: string | null;
  /** Whether a MAC is invented for a numeric device name that `devices` lacks. */
  readonly inventsMacs: boolean;
}

const DELIMITERS: Readonly<Record<string, string>> = { ',': ',', ';': ';', '\t': '\t', tab: '\t', '|': '|' };
const MAP_MEMBERS = ['delimiter', ...ROW_MEMBERS, 'ping', 'devices'];

/**
 * Reads a map. Never throws.
 *
 * @param base the map that the file changes; null if the file must be complete
 */
export function readColumnMap(text: string, base: ColumnMap | null): ColumnMap | readonly Mistake[] {
  const yaml = readYaml(text);
  if (yaml.mistakes.length > 0) return yaml.mistakes;
  const reader = new MapReader(yaml.lineOf);
  const map = reader.map(yaml.value, base);
  return reader.mistakes.length > 0 ? reader.mistakes : map;
}

/**
 * Reads the parsed YAML and collects its mistakes. `pointer` is a JSON pointer into the map, such as `/ping/reason`;
 * messages name it without the first slash.
 */
class MapReader {
  readonly mistakes: Mistake[] = [];
  readonly #lineOf: (pointer: string) => number;

  constructor(lineOf: (pointer: string) => number) {
    this.#lineOf = lineOf;
  }

  map(value: unknown, base: ColumnMap | null): ColumnMap {
    const json = this.#object(value, '', MAP_MEMBERS);
    const ping = this.#object(json.ping ?? {}, '/ping', PING_MEMBERS);
    const map: ColumnMap = {
      delimiter: this.#delimiter(json.delimiter, base?.delimiter ?? ','),
      row: { ...base?.row, ...this.#rules(json, '', ROW_MEMBERS) },
      ping: { ...base?.ping, ...this.#rules(ping, '/ping', PING_MEMBERS) },
      devices: this.#devices(json.devices),
      unquotedColumn: base?.unquotedColumn ?? null,
      inventsMacs: base?.inventsMacs ?? false,
    };
    if (map.row.time === undefined) this.#mistake('', 'time is missing: expected the column with the time of receipt');
    if (map.row.payload === undefined && map.ping.reason === undefined)
      this.#mistake(
        '/ping',
        'ping.reason is missing: expected a column, a value such as {value: REASON_THEFT}, or payload',
      );
    return map;
  }

  #rules<Member extends string>(
    json: JsonObject,
    parent: string,
    members: readonly Member[],
  ): Partial<Record<Member, ColumnRule>> {
    const rules: Partial<Record<Member, ColumnRule>> = {};
    for (const member of members)
      if (json[member] !== undefined) rules[member] = this.#rule(json[member], `${parent}/${member}`);
    return rules;
  }

  #rule(value: unknown, pointer: string): ColumnRule {
    const defaults = { values: null, fallback: null, scale: 1, isOptional: false };
    if (typeof value === 'string') return { ...defaults, column: value };
    const json = this.#object(value, pointer, ['column', 'value', 'values', 'default', 'scale']);
    const { column, scale } = json;
    if ((column === undefined) === (json.value === undefined))
      this.#mistake(pointer, `${pointer.slice(1)}: expected either a column or a value`);
    if (column !== undefined && typeof column !== 'string')
      this.#mistake(`${pointer}/column`, `${pointer.slice(1)}/column: expected the name of a column`);
    if (scale !== undefined && (typeof scale !== 'number' || !Number.isFinite(scale)))
      this.#mistake(`${pointer}/scale`, `${pointer.slice(1)}/scale: expected a number`);
    return {
      column: typeof column === 'string' ? column : null,
      values: json.values === undefined ? null : this.#words(json.values, `${pointer}/values`),
      fallback: this.#text(json.value ?? json.default, pointer),
      scale: typeof scale === 'number' ? scale : 1,
      isOptional: false,
    };
  }

  /** The words of a cell with their meanings. */
  #words(value: unknown, pointer: string): Map<string, string> {
    if (!isObject(value)) this.#mistake(pointer, `${pointer.slice(1)}: expected words and what they mean`);
    const entries = isObject(value) ? Object.entries(value) : [];
    return new Map(entries.map(([word, meaning]) => [word, this.#text(meaning, `${pointer}/${word}`) ?? '']));
  }

  #text(value: unknown, pointer: string): string | null {
    if (value === undefined || value === null) return null;
    if (typeof value === 'object') this.#mistake(pointer, `${pointer.slice(1)}: expected a word or a number`);
    return String(value);
  }

  #devices(value: unknown): Map<string, Sender> {
    const devices = new Map<string, Sender>();
    if (value === undefined) return devices;
    if (!isObject(value)) this.#mistake('/devices', 'devices: expected names of locks and their MACs');
    for (const [name, mac] of Object.entries(isObject(value) ? value : {})) {
      const sender = typeof mac === 'string' ? senderOf(mac) : undefined;
      if (sender !== undefined) devices.set(name, sender);
      else {
        const parsedMac = parseMac(String(mac));
        // YAML reads a MAC of digits alone as a number, and may lose its zeros.
        const message = parsedMac.ok ? `${mac} is a number: expected the MAC in quotes` : parsedMac.error.message;
        this.#mistake(`/devices/${name}`, `devices: ${message}`);
      }
    }
    return devices;
  }

  #delimiter(value: unknown, base: string): string {
    if (value === undefined) return base;
    const delimiter = typeof value === 'string' ? DELIMITERS[value] : undefined;
    if (delimiter === undefined) this.#mistake('/delimiter', 'delimiter: expected one of "," ";" "|" and tab');
    return delimiter ?? base;
  }

  #object(value: unknown, pointer: string, members: readonly string[]): JsonObject {
    if (!isObject(value)) {
      this.#mistake(
        pointer,
        `${pointer === '' ? 'the map' : pointer.slice(1)}: expected members such as ${members[0]}`,
      );
      return {};
    }
    for (const member of Object.keys(value))
      if (!members.includes(member))
        this.#mistake(`${pointer}/${member}`, `unknown member "${member}": expected one of ${members.join(', ')}`);
    return value;
  }

  #mistake(pointer: string, message: string): void {
    this.mistakes.push({ line: this.#lineOf(pointer), message });
  }
}
