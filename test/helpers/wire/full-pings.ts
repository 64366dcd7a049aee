// Makes pings with every field of their type from the table of ping fields (proto/wire/ping-fields.ts), so that tests
// cover a new field as soon as the table has it.
import type { Ping } from '../../../proto/wire/ping.js';
import { PING_FIELD_ROWS, type PingField, type PingProperty, type PingType } from '../../../proto/wire/ping-fields.js';

/** All types of pings. */
export const PING_TYPES: readonly PingType[] = ['cellular', 'gps', 'close_connection'];

/** The fields that pings of the type carry, in the order of the table. */
export function fieldsOf(type: PingType): (readonly [property: PingProperty, field: PingField])[] {
  return PING_FIELD_ROWS.filter(([, { wire }]) => wire.numbers[type] !== undefined);
}

/** A ping of the type in which every field has a value, and no two numbers are the same. */
export function fullPing(type: PingType): Ping {
  // The other members are added one by one.
  let ping = { kind: type } as unknown as Ping;
  if (type === 'close_connection') ping = withField(ping, 'reason', 'REASON_CLOSE_CONNECTION');
  for (const [index, [property, field]] of fieldsOf(type).entries())
    ping = withField(ping, property, sampleValue(field, 0, index + 1));
  return ping;
}

/** One of two different values for the field. Both are plausible, and the wire does not round them. */
export function sampleValue({ value }: PingField, variant: 0 | 1, offset = 1): unknown {
  const number = offset + 20 * variant;
  if (value.kind === 'reason') return variant === 0 ? 'REASON_THEFT' : 'REASON_STATE_PING';
  // The first word stands for a number that the codec does not know.
  if (value.kind === 'word') return value.words[variant + 1];
  if (value.kind === 'text') return `2.4.${number}`;
  return value.kind === 'number' && value.perUnit > 1 ? number + 0.5 : number;
}

/** The ping with another value in a field; undefined removes the member. */
export function withField(ping: Ping, property: PingProperty, value: unknown): Ping {
  const isInPosition = PING_FIELD_ROWS.some(([name, { presence }]) => name === property && presence === 'position');
  const changed: Record<string, unknown> = { ...ping };
  if (isInPosition) changed.position = { ...(changed.position as object | undefined), [property]: value };
  else if (value === undefined) delete changed[property];
  else changed[property] = value;
  return changed as unknown as Ping;
}
