/**
 * The reason of a ping: the specification's closed table ("Ping reason values") with the numbers that the wire uses.
 * A number outside the table becomes `REASON_UNRECOGNIZED_<n>`: it is neither lost nor an error (protocol.md §1).
 */
import type { JsonReader } from '../json-reader.js';

/** One row of the table. */
export interface ReasonRow {
  readonly name: KnownReason;
  /** The number in `lock.proto`. */
  readonly number: number;
  /** What the reason means, following the specification. */
  readonly meaning: string;
}

/** A reason that the specification names. */
export type KnownReason =
  | 'REASON_THEFT'
  | 'REASON_PERIOD_TRACKING'
  | 'REASON_STATE_PING'
  | 'REASON_UNLOCKED_PING'
  | 'REASON_UNLOCKED_MOVEMENT'
  | 'REASON_GPS_PING'
  | 'REASON_CELL_PING'
  | 'REASON_NETWORK_PING'
  | 'REASON_RESET'
  | 'REASON_CLOSE_CONNECTION'
  | 'PHONE';

/** A known reason, or a name with the number of a reason that this build does not know. */
export type Reason = KnownReason | `REASON_UNRECOGNIZED_${number}`;

/** The table, in the order of the specification. */
export const REASONS: readonly ReasonRow[] = Object.freeze([
  { name: 'REASON_THEFT', number: 1, meaning: 'The device is in Theft Mode.' },
  { name: 'REASON_PERIOD_TRACKING', number: 2, meaning: 'The device is sending a Period Ping.' },
  { name: 'REASON_STATE_PING', number: 3, meaning: 'The device is sending a State Change ping.' },
  { name: 'REASON_UNLOCKED_PING', number: 4, meaning: 'The device is sending a Ride Tracking ping.' },
  {
    name: 'REASON_UNLOCKED_MOVEMENT',
    number: 5,
    meaning: 'The device is in Cellular ON while unlocked and in motion.',
  },
  { name: 'REASON_GPS_PING', number: 6, meaning: 'The device is sending GPS location data.' },
  {
    name: 'REASON_CELL_PING',
    number: 7,
    meaning: 'The device is sending a location obtained by cellular positioning.',
  },
  { name: 'REASON_NETWORK_PING', number: 8, meaning: 'The device is connected and is waiting for remote commands.' },
  { name: 'REASON_RESET', number: 9, meaning: 'The device has done a cellular reset.' },
  { name: 'REASON_CLOSE_CONNECTION', number: 10, meaning: 'The device is disconnecting from the network.' },
  {
    name: 'PHONE',
    number: 11,
    meaning: 'Sent from the user’s phone instead of the device, with the phone’s coordinates.',
  },
] as const satisfies readonly ReasonRow[]);

const NAME_BY_NUMBER = new Map<number, KnownReason>(REASONS.map((row) => [row.number, row.name]));
const NUMBER_BY_NAME = new Map<string, number>(REASONS.map((row) => [row.name, row.number]));
const UNRECOGNIZED = /^REASON_UNRECOGNIZED_(0|-?[1-9]\d{0,9})$/;

/** The reason with a number on the wire. */
export function reasonFromNumber(number: number): Reason {
  return NAME_BY_NUMBER.get(number) ?? `REASON_UNRECOGNIZED_${number}`;
}

/** The number of a reason; undefined if the text is not a reason. */
export function reasonNumber(reason: string): number | undefined {
  const known = NUMBER_BY_NAME.get(reason);
  if (known !== undefined) return known;
  const match = UNRECOGNIZED.exec(reason);
  if (match === null) return undefined;
  const number = Number(match[1]);
  // A number has one name only, and the wire carries an int32.
  return NAME_BY_NUMBER.has(number) || number !== (number | 0) ? undefined : number;
}

/** The names of the specification's table. */
export const REASON_NAMES: readonly KnownReason[] = REASONS.map(({ name }) => name);

/** Whether a text names a reason, or a number outside the table, as it does for a reason of a later version. */
export function isReason(text: string): text is Reason {
  return reasonNumber(text) !== undefined;
}

/** Whether the reason is in the specification's table. */
export function isKnownReason(reason: Reason): reason is KnownReason {
  return NUMBER_BY_NAME.has(reason);
}

/** Known reasons by their names. The value is the table's own string, so that later comparisons compare pointers. */
const KNOWN_REASONS = new Map<unknown, Reason>(REASONS.map((row) => [row.name, row.name]));

/** Reads the reason of a ping in JSON. Leaves an error in `reader`. */
export function readReason(reader: JsonReader, value: unknown, parent: string): Reason {
  const known = KNOWN_REASONS.get(value);
  if (known !== undefined) return known;
  if (typeof value === 'string' && reasonNumber(value) !== undefined) return value as Reason;
  reader.reject(value, parent, 'reason', 'a reason such as REASON_THEFT, or REASON_UNRECOGNIZED_ and a number');
  // A placeholder that the caller must not use, since the reader has an error.
  return 'REASON_NETWORK_PING';
}
