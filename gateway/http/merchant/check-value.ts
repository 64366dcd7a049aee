/**
 * Validates a value against a schema and reports each bad member as a JSON pointer and a sentence (RFC 9457). The
 * typebox schemas also document the interface. {@link assertOnlyCheckedKeywords} refuses a schema with a keyword that
 * is not listed below, so that the documentation states no constraint that is not checked. Pure.
 *
 * No library is used because of int64: common validators don't accept a bigint as an integer.
 */
import type { TSchema } from 'typebox';
import { type Fault, MAX_REPORTED_FAULTS } from '../../faults.js';
import { INT64_MAX, INT64_MIN } from '../../store/contract/merchants/people-store.js';

/** The JSON Schema keywords that can be checked. */
interface Keywords {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Keywords>>;
  /** The schema of all members that `properties` does not name. */
  readonly additionalProperties?: Keywords;
  readonly required?: readonly string[];
  readonly items?: Keywords;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
}

const CHECKED_KEYWORDS =
  'type properties additionalProperties required items enum format minimum maximum minLength maxLength maxItems';
/** Keywords that only document, and need no check. */
const DOCUMENTING_KEYWORDS = 'title description example examples default $id';
const KNOWN_KEYWORDS = new Set(`${CHECKED_KEYWORDS} ${DOCUMENTING_KEYWORDS}`.split(' '));

const CHECKED_TYPES = ['object', 'array', 'integer', 'number', 'boolean', 'string'];

const INT32_MAX = 2 ** 31 - 1;
const INT32_MIN = -(2 ** 31);

/**
 * Returns what is wrong with a value, at most {@link MAX_REPORTED_FAULTS} faults. Members that the schema does not name
 * are ignored.
 */
export function faultsOf(schema: TSchema, value: unknown): Fault[] {
  const faults: Fault[] = [];
  check(schema as Keywords, value, '', faults);
  return faults.slice(0, MAX_REPORTED_FAULTS);
}

/** @throws Error if a schema has a keyword or a type that is not checked here */
export function assertOnlyCheckedKeywords(schema: TSchema): void {
  const keywords = schema as Keywords;
  const unknown = Object.keys(keywords).find((name) => !KNOWN_KEYWORDS.has(name));
  if (unknown !== undefined) throw new Error(`nothing checks the keyword ${unknown}`);
  if (!CHECKED_TYPES.includes(keywords.type ?? '')) throw new Error(`nothing checks the type ${keywords.type}`);
  for (const property of Object.values(keywords.properties ?? {})) assertOnlyCheckedKeywords(property as TSchema);
  if (keywords.additionalProperties !== undefined) assertOnlyCheckedKeywords(keywords.additionalProperties as TSchema);
  if (keywords.items !== undefined) assertOnlyCheckedKeywords(keywords.items as TSchema);
}

/** A whole number that was read from JSON, as a bigint. */
export function toBigInt(value: number | bigint): bigint {
  return BigInt(value);
}

function check(schema: Keywords, value: unknown, pointer: string, faults: Fault[]): void {
  if (faults.length >= MAX_REPORTED_FAULTS) return;
  const detail = detailOf(schema, value);
  if (detail !== undefined) {
    faults.push({ pointer, detail });
    return;
  }
  if (schema.properties !== undefined || schema.additionalProperties !== undefined)
    checkMembers(schema, value as Record<string, unknown>, pointer, faults);
  if (schema.items !== undefined)
    for (const [index, item] of (value as unknown[]).entries())
      check(schema.items, item, `${pointer}/${index}`, faults);
}

function checkMembers(schema: Keywords, value: Record<string, unknown>, pointer: string, faults: Fault[]): void {
  const { properties = {}, additionalProperties: other } = schema;
  if (other !== undefined)
    for (const [name, member] of Object.entries(value))
      if (!Object.hasOwn(properties, name)) check(other, member, `${pointer}/${escaped(name)}`, faults);
  for (const [name, member] of Object.entries(properties)) {
    const memberPointer = `${pointer}/${escaped(name)}`;
    // Inherited members were not sent.
    if (Object.hasOwn(value, name)) check(member, value[name], memberPointer, faults);
    else if (schema.required?.includes(name)) faults.push({ pointer: memberPointer, detail: 'it is missing' });
  }
}

/** A member's name in a JSON pointer. */
function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** What is wrong with the value itself, apart from its members; undefined if nothing is. */
function detailOf(schema: Keywords, value: unknown): string | undefined {
  switch (schema.type) {
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value) ? undefined : expected('an object');
    case 'array':
      if (!Array.isArray(value)) return expected('an array');
      return value.length > (schema.maxItems ?? Number.POSITIVE_INFINITY)
        ? expected(`at most ${schema.maxItems} items`)
        : undefined;
    case 'integer':
      return integerDetail(schema, value);
    case 'number':
      return typeof value === 'bigint' || Number.isFinite(value) ? undefined : expected('a number');
    case 'boolean':
      return typeof value === 'boolean' ? undefined : expected('true or false');
    case 'string':
      return stringDetail(schema, value);
    default:
      throw new Error(`nothing checks the type ${schema.type}`);
  }
}

function integerDetail({ format, minimum, maximum }: Keywords, value: unknown): string | undefined {
  const isWhole = typeof value === 'bigint' || Number.isInteger(value);
  const [min, max] = format === 'int32' ? [INT32_MIN, INT32_MAX] : [INT64_MIN, INT64_MAX];
  if (!isWhole) return expected(`a whole number (${format ?? 'int64'})`);
  const number = value as number | bigint;
  if (number < min || number > max) return expected(`a whole number from ${min} to ${max}`);
  if (maximum !== undefined && (number > maximum || number < (minimum ?? min)))
    return expected(`a whole number from ${minimum ?? min} to ${maximum}`);
  return minimum !== undefined && number < minimum ? expected(`a whole number, ${minimum} or more`) : undefined;
}

function stringDetail(schema: Keywords, value: unknown): string | undefined {
  if (typeof value !== 'string') return expected('a string');
  if (/\p{Surrogate}/u.test(value)) return expected('Unicode text: it has half of a surrogate pair');
  if (schema.enum !== undefined && !schema.enum.includes(value)) return expected(`one of ${schema.enum.join(', ')}`);
  if (schema.minLength !== undefined && value.length < schema.minLength) return expected('a text that is not empty');
  if (schema.maxLength !== undefined && [...value].length > schema.maxLength)
    return expected(`at most ${schema.maxLength} characters`);
  return undefined;
}

function expected(what: string): string {
  return `expected ${what}`;
}
