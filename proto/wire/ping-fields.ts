/**
 * One row for each field of a ping: its place on the wire, its unit, its range, and its name and meaning in JSON.
 *
 * Everything that handles every field of a ping derives from this table. What runs for each ping is generated from it
 * into `proto/gen/` by `npm run gen`: the types, the codec's part for pings, JSON both ways, the fast reader of trace
 * lines, the fingerprint, and the plausibility of values. What runs rarely reads the table itself: the line that
 * describes a ping, the finding `out-of-range`, the comparison of a trace with its simulation, and the webhook
 * payload's schema with its documents. The recipe for a new field is in docs/contributing.md.
 *
 * The generator loads this file on its own, so it imports types only.
 */

/** The types of ping (specification, Ping). */
export type PingType = 'cellular' | 'gps' | 'close_connection';

/** How a field's value is written, in our types and on the wire. */
export type PingValue =
  /** A reason by its name (reasons.ts); its number on the wire. */
  | { readonly kind: 'reason' }
  /** One of several words, in the order of their numbers on the wire. The first word stands for an unknown number. */
  | { readonly kind: 'word'; readonly type: string; readonly words: readonly string[] }
  /** An integer from 0 to 2³²−1. */
  | { readonly kind: 'count' }
  | { readonly kind: 'text' }
  /**
   * A number that the wire carries as a 32-bit integer: the value multiplied by `perUnit`. With `turn` it is an angle:
   * a value that would round up to a full turn is sent as 0.
   */
  | { readonly kind: 'number'; readonly perUnit: number; readonly signed: boolean; readonly turn?: number };

/** The range of a plausible value. A value outside is stored unchanged, and the rule `out-of-range` reports it. */
export interface PlausibleRange {
  readonly min: number;
  /** The maximum, which is itself plausible. */
  readonly max?: number;
  /** A bound that all plausible values are less than. */
  readonly exclusiveMax?: number;
}

/** One field of a ping. Its key in {@link PING_FIELDS} is its member in our types, the unit last. */
export interface PingField {
  /** The name of the member in JSON: in webhooks, in traces and in the CLI. */
  readonly json: string;
  /** The field's name in lock.proto, and its number in each ping type that carries it. */
  readonly wire: { readonly name: string; readonly numbers: Partial<Readonly<Record<PingType, number>>> };
  readonly value: PingValue;
  /**
   * - `always`: every ping of these types has it. On the wire a zero is omitted.
   * - `nullable`: null in our types and in JSON if the lock did not send it.
   * - `position`: a member of `position`. A GPS ping always has a position, a cellular ping may have none.
   * - `optional`: missing in our types and in JSON if the lock did not send it. Every field that was added after the
   *   first version is optional, because older locks don't send it.
   */
  readonly presence: 'always' | 'nullable' | 'position' | 'optional';
  /** The value of a member that a JSON ping omits. Without it, an `always` member is required. */
  readonly jsonDefault?: string | number;
  /** The field's name in messages, and the unit that follows a value there. */
  readonly label: string;
  readonly unit: string;
  readonly plausible?: PlausibleRange;
  /**
   * How the line that describes a ping shows the field: `$` is replaced by the value, `order` gives its position in the
   * line. With `only`, the field is shown for that value only. Null if the field is not shown; the members of
   * `position` are shown together.
   */
  readonly line: { readonly order: number; readonly text: string; readonly only?: string } | null;
  /** Whether a simulated lock that reproduces a trace must send exactly the value in the trace. */
  readonly isReproduced: boolean;
  /** What the field means, in a sentence for merchants. */
  readonly doc: string;
}

/** The numbers of a field in both of these ping types. */
const CELLULAR_AND_GPS = (cellular: number, gps: number) => ({ cellular, gps });

/** The fields in the order of JSON and of the documentation. See the top of this file. */
export const PING_FIELDS = Object.freeze({
  reason: {
    json: 'reason',
    wire: { name: 'reason', numbers: CELLULAR_AND_GPS(1, 1) },
    value: { kind: 'reason' },
    presence: 'always',
    label: 'reason',
    unit: '',
    line: { order: 1, text: '$' },
    isReproduced: true,
    doc: 'Why it was sent. A reason that this version doesn’t know comes as REASON_UNRECOGNIZED_ and its number.',
  },
  lockState: {
    json: 'lock_state',
    wire: { name: 'lock_state', numbers: { cellular: 2, gps: 2, close_connection: 1 } },
    value: { kind: 'word', type: 'LockState', words: ['unknown', 'locked', 'unlocked'] },
    presence: 'always',
    label: 'lock state',
    unit: '',
    line: { order: 2, text: '$' },
    isReproduced: true,
    doc: 'Whether the lock is locked; unknown if it doesn’t say.',
  },
  batteryPercent: {
    json: 'battery_percent',
    wire: { name: 'battery_percent', numbers: { cellular: 3, gps: 3, close_connection: 2 } },
    value: { kind: 'count' },
    presence: 'always',
    label: 'battery',
    unit: ' %',
    plausible: { min: 0, max: 100 },
    line: { order: 3, text: '$%' },
    isReproduced: true,
    doc: 'The lock’s battery, in percent; 0 to 100 in a sane lock.',
  },
  firmwareVersion: {
    json: 'firmware_version',
    wire: { name: 'firmware_version', numbers: { cellular: 4 } },
    value: { kind: 'text' },
    presence: 'always',
    jsonDefault: '',
    label: 'firmware version',
    unit: '',
    line: null,
    isReproduced: false,
    doc: 'The lock’s firmware version. Any text, also an empty one.',
  },
  ebikeVolts: {
    json: 'ebike_voltage',
    wire: { name: 'ebike_millivolts', numbers: CELLULAR_AND_GPS(5, 4) },
    value: { kind: 'number', perUnit: 1000, signed: false },
    presence: 'nullable',
    label: 'e-bike voltage',
    unit: ' V',
    line: { order: 7, text: 'e-bike $ V' },
    isReproduced: false,
    doc: 'Voltage of the e-bike’s battery, in volts; null if no e-bike is connected.',
  },
  tetherState: {
    json: 'tether_state',
    wire: { name: 'tether_state', numbers: CELLULAR_AND_GPS(6, 5) },
    value: { kind: 'word', type: 'TetherState', words: ['unknown', 'attached', 'detached'] },
    presence: 'always',
    jsonDefault: 'unknown',
    label: 'tether state',
    unit: '',
    line: { order: 8, text: 'tethered', only: 'attached' },
    isReproduced: false,
    doc: 'Whether the tether is plugged into the lock; unknown if it doesn’t say.',
  },
  latitudeDegrees: {
    json: 'latitude',
    wire: { name: 'latitude_e7', numbers: CELLULAR_AND_GPS(7, 6) },
    value: { kind: 'number', perUnit: 1e7, signed: true },
    presence: 'position',
    label: 'latitude',
    unit: '°',
    plausible: { min: -90, max: 90 },
    line: null,
    isReproduced: false,
    doc: 'Degrees north, −90 to 90 in a sane ping.',
  },
  longitudeDegrees: {
    json: 'longitude',
    wire: { name: 'longitude_e7', numbers: CELLULAR_AND_GPS(8, 7) },
    value: { kind: 'number', perUnit: 1e7, signed: true },
    presence: 'position',
    label: 'longitude',
    unit: '°',
    plausible: { min: -180, max: 180 },
    line: null,
    isReproduced: false,
    doc: 'Degrees east, −180 to 180 in a sane ping.',
  },
  speedMetersPerSecond: {
    json: 'speed',
    wire: { name: 'speed_cm_per_s', numbers: { gps: 8 } },
    value: { kind: 'number', perUnit: 100, signed: true },
    presence: 'always',
    label: 'speed',
    unit: ' m/s',
    plausible: { min: 0 },
    line: { order: 5, text: '$ m/s' },
    isReproduced: false,
    doc: 'Metres per second.',
  },
  directionDegrees: {
    json: 'direction',
    wire: { name: 'direction_centidegrees', numbers: { gps: 9 } },
    value: { kind: 'number', perUnit: 100, signed: true, turn: 360 },
    presence: 'always',
    label: 'direction',
    unit: '°',
    plausible: { min: 0, exclusiveMax: 360 },
    line: { order: 6, text: '$°' },
    isReproduced: false,
    doc: 'Direction of the motion: degrees clockwise from north, [0, 360) in a sane ping.',
  },
  uncertaintyMeters: {
    json: 'uncertainty',
    wire: { name: 'uncertainty_m', numbers: CELLULAR_AND_GPS(9, 10) },
    value: { kind: 'number', perUnit: 1, signed: true },
    presence: 'position',
    jsonDefault: 0,
    label: 'uncertainty',
    unit: ' m',
    plausible: { min: 0 },
    line: null,
    isReproduced: false,
    doc: 'Radius around the position, in whole metres.',
  },
} as const satisfies Readonly<Record<string, PingField>>);

/** A member of a ping, or of its position, in our types. */
export type PingProperty = keyof typeof PING_FIELDS;

/** The rows of the table with their members, in its order. The type of `Object.entries` has any text as key. */
export const PING_FIELD_ROWS: readonly (readonly [property: PingProperty, field: PingField])[] = Object.freeze(
  Object.entries(PING_FIELDS) as [PingProperty, PingField][],
);

/** The rows in the order of our types: the members of `position` together, at the place of the first of them. */
export function inTypeOrder<Row extends readonly [string, PingField]>(rows: readonly Row[]): readonly Row[] {
  const isInPosition = ([, { presence }]: Row) => presence === 'position';
  const first = rows.findIndex(isInPosition);
  if (first === -1) return rows;
  const others = rows.filter((row) => !isInPosition(row));
  return [...others.slice(0, first), ...rows.filter(isInPosition), ...others.slice(first)];
}
