/**
 * TypeBox's `Type`, as much of it as our interfaces use: each function writes a piece of JSON Schema, and TypeBox's
 * types say what TypeScript knows of the values that fit it.
 *
 * It is ours because loading TypeBox's own takes a fifth of a second of CPU (700 small modules), in every process that
 * loads the gateway, for objects that are as short as these. A test holds what is written here against the original.
 * The part of TypeBox that checks values is loaded when the first value comes (operator/check-request.ts).
 */
import type { TSchema, Type as TypeBox } from 'typebox';

/** The functions that there are here. */
type Written =
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unsafe';

type Keywords = Readonly<Record<string, unknown>>;

/** What TypeBox notes about a schema beside JSON Schema's keywords; not enumerable, so no document shows it. */
function noted(keywords: Keywords, notes: Keywords): TSchema {
  const schema = { ...keywords };
  // What was noted before goes along, as when an optional text becomes another's member.
  for (const [name, { value, enumerable }] of Object.entries(Object.getOwnPropertyDescriptors(keywords)))
    if (enumerable !== true) note(schema, name, value);
  for (const [name, value] of Object.entries(notes)) note(schema, name, value);
  return schema;
}

function note(schema: object, name: string, value: unknown): void {
  Object.defineProperty(schema, name, { value, configurable: true, writable: true, enumerable: false });
}

/** A function for a schema that only its options differ in. */
function plain(kind: string) {
  return (options?: Keywords) => noted({ type: kind.toLowerCase(), ...options }, { '~kind': kind });
}

function isOptional(schema: TSchema): boolean {
  return '~optional' in schema;
}

const written = {
  Boolean: plain('Boolean'),
  Integer: plain('Integer'),
  Null: plain('Null'),
  Number: plain('Number'),
  String: plain('String'),
  Array: (items: TSchema, options?: Keywords) => noted({ type: 'array', items, ...options }, { '~kind': 'Array' }),
  Enum: (values: readonly unknown[], options?: Keywords) => noted({ enum: values, ...options }, { '~kind': 'Enum' }),
  Literal: (value: unknown, options?: Keywords) =>
    noted({ type: typeof value, const: value, ...options }, { '~kind': 'Literal' }),
  Object: (properties: Readonly<Record<string, TSchema>>, options?: Keywords) => {
    const required = Object.keys(properties).filter((name) => !isOptional(properties[name] as TSchema));
    const keywords = { type: 'object', ...(required.length > 0 && { required }), properties, ...options };
    return noted(keywords, { '~kind': 'Object' });
  },
  Optional: (schema: TSchema) => noted(schema as Keywords, { '~optional': true }),
  /** By texts only, and any: what names a member may have is not said. */
  Record: (_name: TSchema, value: TSchema, options?: Keywords) =>
    noted({ type: 'object', patternProperties: { '^.*$': value }, ...options }, { '~kind': 'Record' }),
  Union: (anyOf: readonly TSchema[], options?: Keywords) => noted({ anyOf, ...options }, { '~kind': 'Union' }),
  Unsafe: (schema: Keywords) => noted(schema, { '~unsafe': null }),
};

/** See the file's comment. */
export const Type = written as unknown as Pick<typeof TypeBox, Written>;
