/**
 * Building blocks of the trace format's JSON Schema (draft 2020-12): closed objects, references, and the kinds of value
 * that several members share. Pure data; a schema made here is only ever written to docs/trace.schema.json.
 */

/** A JSON Schema, or a part of one. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The maximum of the wire's unsigned fields. */
const MAX_UINT32 = 2 ** 32 - 1;

/** An object that has no members but these. A name in `required` is a member that must not be left out. */
export function closedObject(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[],
  description: string,
): JsonSchema {
  return { type: 'object', description, properties, required, additionalProperties: false };
}

/** A reference to a definition of the schema. */
export function ref(definition: string): JsonSchema {
  return { $ref: `#/$defs/${definition}` };
}

/** A reference with a description of its own. */
export function described(definition: string, description: string): JsonSchema {
  return { ...ref(definition), description };
}

export function oneWord(word: string, description: string): JsonSchema {
  return { const: word, description };
}

export function words(list: readonly string[], description: string): JsonSchema {
  return { enum: list, description };
}

export function text(description: string): JsonSchema {
  return { type: 'string', description };
}

export function flag(description: string): JsonSchema {
  return { type: 'boolean', description };
}

export function number(description: string): JsonSchema {
  return { type: 'number', description };
}

/** An integer that fits the wire's unsigned fields. */
export function count(description: string): JsonSchema {
  return { type: 'integer', minimum: 0, maximum: MAX_UINT32, description };
}

/** The value, or null. */
export function nullable(schema: JsonSchema): JsonSchema {
  const { description, ...value } = schema;
  return { anyOf: [value, { type: 'null' }], description };
}

/** An RFC 3339 date. The pattern also refuses what `format` alone lets pass in some validators. */
const DATE: JsonSchema = {
  type: 'string',
  format: 'date-time',
  description:
    'An RFC 3339 date, such as 2026-11-20T06:00:00.000Z. Up to nine decimals; those after the third are cut.',
  pattern:
    '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[Tt]([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?' +
    '([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)$',
};

const HEX = '[0-9A-Fa-f]';

/** Pairs separated by colons or dashes, fours separated by dots, or no separator. */
export const MAC_PATTERN =
  `^(${HEX}{2}(:${HEX}{2}){5}|${HEX}{2}(-${HEX}{2}){5}|` + `${HEX}{4}(\\.${HEX}{4}){2}|${HEX}{12})$`;

const MAC: JsonSchema = {
  type: 'string',
  description: 'A lock’s hardware address. Any common spelling is read; A4:C1:38:F0:E1:D2 is written.',
  pattern: MAC_PATTERN,
};

const BASE64: JsonSchema = {
  type: 'string',
  contentEncoding: 'base64',
  description: 'The bytes of an uplink, in base64.',
  pattern: '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
};

/** The definitions that have no members: kinds of value. */
export const VALUE_DEFINITIONS: Readonly<Record<string, JsonSchema>> = { date: DATE, mac: MAC, base64: BASE64 };
