/**
 * Our values as the wire's: whole numbers of 32 bits, and text. What does not fit is the caller's mistake, so each of
 * these throws a LockgateError `unencodable` that names the value in our unit and says what was expected.
 */
import { LockgateError } from '../errors.js';
import { reasonNumber } from './reasons.js';

const INT32_LEAST = -(2 ** 31);
const INT32_MOST = 2 ** 31 - 1;
const UINT32_MOST = 0xffffffff;

/** A whole number that is sent as it is. */
export function fitting(label: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new LockgateError(
    'unencodable',
    `${label} ${value} can't be sent: expected a whole number, ${least} to ${most}`,
  );
}

/** A number as a signed integer, rounded; `perUnit` of the wire's make one of ours. */
export function signed32(label: string, value: number, perUnit: number): number {
  return scaled(label, value, perUnit, INT32_LEAST, INT32_MOST);
}

/** A number as an unsigned integer, rounded; `perUnit` of the wire's make one of ours. */
export function unsigned32(label: string, value: number, perUnit: number): number {
  return scaled(label, value, perUnit, 0, UINT32_MOST);
}

/** An angle of a circle of `turn`. Just under it an angle is nearest to 0 (359.999° is north), and is sent as 0. */
export function angle(label: string, value: number, perUnit: number, turn: number): number {
  const count = signed32(label, value, perUnit);
  return count === turn * perUnit && value < turn ? 0 : count;
}

function scaled(label: string, value: number, perUnit: number, least: number, most: number): number {
  const count = Math.round(value * perUnit);
  if (count >= least && count <= most) return count;
  throw new LockgateError(
    'unencodable',
    `${label} ${value} can't be sent: expected ${least / perUnit} to ${most / perUnit}`,
  );
}

/** Half a surrogate pair has no UTF-8: protobufjs writes bytes that no decoder takes, and the uplink would be lost. */
export function wellFormed(label: string, text: string): string {
  if (!/\p{Surrogate}/u.test(text)) return text;
  throw new LockgateError(
    'unencodable',
    `${label} ${JSON.stringify(text)} can't be sent: expected well-formed Unicode`,
  );
}

/** The number of a reason. */
export function writeReason(reason: string): number {
  const number = reasonNumber(reason);
  if (number === undefined) throw new LockgateError('unencodable', `${JSON.stringify(reason)} is no ping reason`);
  return number;
}
