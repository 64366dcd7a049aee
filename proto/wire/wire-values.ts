/**
 * Converts values from our units to the wire's: 32-bit integers and text. A value that does not fit is the caller's
 * mistake, so each function throws a LockgateError `unencodable` that names the value and says what was expected.
 */
import { LockgateError } from '../errors.js';
import { reasonNumber } from './reasons.js';

const MIN_INT32 = -(2 ** 31);
const MAX_INT32 = 2 ** 31 - 1;
const MAX_UINT32 = 0xffffffff;

/** Returns an integer that is sent unchanged, after checking its range. */
export function checkInteger(label: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new LockgateError('unencodable', `${label} ${value} can't be sent: expected a whole number, ${min} to ${max}`);
}

/** A number multiplied by `perUnit` and rounded, as a signed 32-bit integer. */
export function toSigned32(label: string, value: number, perUnit: number): number {
  return scale(label, value, perUnit, MIN_INT32, MAX_INT32);
}

/** A number multiplied by `perUnit` and rounded, as an unsigned 32-bit integer. */
export function toUnsigned32(label: string, value: number, perUnit: number): number {
  return scale(label, value, perUnit, 0, MAX_UINT32);
}

/** An angle, where `turn` is a full turn. A value that rounds up to `turn` (359.999° is north) is sent as 0. */
export function toAngle(label: string, value: number, perUnit: number, turn: number): number {
  const integer = toSigned32(label, value, perUnit);
  return integer === turn * perUnit && value < turn ? 0 : integer;
}

function scale(label: string, value: number, perUnit: number, min: number, max: number): number {
  const integer = Math.round(value * perUnit);
  if (integer >= min && integer <= max) return integer;
  throw new LockgateError(
    'unencodable',
    `${label} ${value} can't be sent: expected ${min / perUnit} to ${max / perUnit}`,
  );
}

/**
 * Returns a text after checking that it is well-formed. Half a surrogate pair has no UTF-8 encoding: protobufjs would
 * write bytes that no decoder accepts, and the uplink would be lost.
 */
export function checkUnicode(label: string, text: string): string {
  if (!/\p{Surrogate}/u.test(text)) return text;
  throw new LockgateError(
    'unencodable',
    `${label} ${JSON.stringify(text)} can't be sent: expected well-formed Unicode`,
  );
}

/** The wire's number of a reason. */
export function toReasonNumber(reason: string): number {
  const number = reasonNumber(reason);
  if (number === undefined) throw new LockgateError('unencodable', `${JSON.stringify(reason)} is no ping reason`);
  return number;
}
