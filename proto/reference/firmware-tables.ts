/**
 * The tables of fields in docs/firmware.md, from lock.proto and the table of ping fields. Pure: the caller reads
 * lock.proto.
 */
import { PING_FIELD_ROWS, type PingField, type PingType, type PingValue } from '../wire/ping-fields.js';
import { type GeneratedParts, markdownTable } from './generated-parts.js';

/** The message of lock.proto that carries each type of ping. */
const PING_MESSAGES: Readonly<Record<PingType, string>> = {
  cellular: 'CellularPing',
  gps: 'GpsPing',
  close_connection: 'CloseConnectionPing',
};
const PING_TYPES = Object.keys(PING_MESSAGES) as PingType[];

/** A field of a message in lock.proto. */
export interface SchemaField {
  readonly message: string;
  /** The type by its name in lock.proto, such as `uint32`. */
  readonly type: string;
  readonly name: string;
  /** The field's number, in decimal digits. */
  readonly number: string;
}

/** Every field of the text of lock.proto, in its order. */
export function schemaFields(lockSchema: string): SchemaField[] {
  return [...lockSchema.matchAll(/^message (\w+) \{\n([\s\S]*?)^\}/gm)].flatMap(([, message = '', body = '']) =>
    [...body.matchAll(/^ +(?:optional )?(\w+) (\w+) = (\d+);/gm)].map(([, type = '', name = '', number = '']) => {
      return { message, type, name, number };
    }),
  );
}

function isPingField({ message }: SchemaField): boolean {
  return Object.values(PING_MESSAGES).includes(message);
}

/** What the number or text on the wire means. */
function wireValueText(value: PingValue, unit: string): string {
  if (value.kind === 'reason') return 'number of [the reason](../proto/README.md#what-a-lock-sends)';
  if (value.kind === 'text') return 'UTF-8';
  if (value.kind === 'word') return value.words.map((word, number) => `${number} ${word}`).join(', ');
  return value.kind === 'number' && value.perUnit !== 1 ? `${unit.trim()} × ${value.perUnit}` : unit.trim();
}

function pingFieldTable(fields: readonly SchemaField[]): string {
  const cells = ([, { wire, value, unit }]: readonly [string, PingField]): string[] => {
    const numbers = PING_TYPES.map((type) => String(wire.numbers[type] ?? '–'));
    const type = fields.find((field) => isPingField(field) && field.name === wire.name)?.type;
    if (type === undefined) throw new Error(`lock.proto has no ping field ${wire.name}`);
    return [`\`${wire.name}\``, ...numbers, type, wireValueText(value, unit)];
  };
  const head = ['field', 'cellular', 'GPS', 'close', 'type', 'value on the wire'];
  return markdownTable(head, PING_FIELD_ROWS.map(cells));
}

function otherFieldTable(fields: readonly SchemaField[]): string {
  const rows = fields
    .filter((field) => !isPingField(field))
    .map(({ message, name, number, type }) => [message, `\`${name}\``, number, type]);
  return markdownTable(['message', 'field', 'number', 'type'], rows);
}

/**
 * The generated parts of docs/firmware.md.
 *
 * @param lockSchema the text of lock.proto
 * @throws Error if lock.proto lacks a field of the table of ping fields
 */
export function firmwareParts(lockSchema: string): GeneratedParts {
  const fields = schemaFields(lockSchema);
  return { 'ping-fields': pingFieldTable(fields), 'other-fields': otherFieldTable(fields) };
}
