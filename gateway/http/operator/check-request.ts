/**
 * Validates requests of the operators' interface against their route's schemas and reports each bad member: where it
 * is, and what was expected. Types are not converted: the number 7 is not the name "7". An unknown member is refused:
 * otherwise a misspelt member would count as left out.
 *
 * Error messages quote query strings but not bodies, which may contain a password.
 *
 * TypeBox's compiler is loaded, and a schema compiled, at the first request that needs it, to keep the start of a
 * gateway fast. A failed import can't be repeated, so a process in which file descriptors may run short preloads the
 * compiler.
 */
import type { TObject, TSchema } from 'typebox';
import { type Fault, MAX_REPORTED_FAULTS, RequestFaults } from '../../faults.js';
import type { Query } from './routes.js';

/** Maximum number of characters of a wrong value that are quoted. */
const MAX_QUOTED_CHARS = 80;

/** A fault as the validator reports it: the JSON Schema keyword and its parameters. */
interface ValidatorFault {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A schema compiled by TypeBox. */
interface Validator {
  Check(value: unknown): boolean;
  Errors(value: unknown): ValidatorFault[];
}

/** Preloads TypeBox's compiler. */
export async function loadRequestChecks(): Promise<void> {
  await import('typebox/compile');
}

/** Returns a function that compiles the schema at its first call, and returns the same validator later. */
function compiled(schema: TSchema): () => Promise<Validator> {
  let validator: Promise<Validator> | undefined;
  return () => {
    validator ??= import('typebox/compile').then(({ Compile }) => Compile(schema));
    return validator;
  };
}

/** Returns a function that validates bodies: its promise rejects with RequestFaults `input-body`. */
export function bodyCheck(schema: TSchema): (body: unknown) => Promise<void> {
  const validatorOf = compiled(schema);
  return async (body) => {
    const validator = await validatorOf();
    if (validator.Check(body)) return;
    const faults = faultsOf(validator.Errors(body), schema);
    const { pointer = '', detail } = faults[0] ?? { detail: 'it does not fit' };
    throw new RequestFaults('input-body', `the body${pointer === '' ? '' : `, ${pointer}`}: ${detail}`, faults);
  };
}

/** Returns a function that validates query strings: its promise rejects with RequestFaults `input-query`. */
export function queryCheck(schema: TObject | undefined): (query: Query) => Promise<void> {
  const known = Object.keys(schema?.properties ?? {});
  const validatorOf = schema && compiled(schema);
  const isAnyRequired = schema?.required !== undefined;
  return async (query) => {
    // Most queries are empty.
    if (!isAnyRequired && Object.keys(query).length === 0) return;
    const unknown = Object.keys(query).filter((name) => !known.includes(name));
    const faults = unknown.map((name) => ({
      pointer: `/${name.slice(0, MAX_QUOTED_CHARS)}`,
      detail: `there is no ${quoted(name)} here: expected ${known.length === 0 ? 'nothing' : known.join(', ')}`,
    }));
    const values = valuesOf(query, schema);
    const validator = faults.length === 0 ? await validatorOf?.() : undefined;
    if (validator !== undefined && !validator.Check(values))
      for (const { pointer, detail } of faultsOf(validator.Errors(values), schema as TSchema)) {
        const name = pointer.split('/')[1] ?? '';
        faults.push({ pointer, detail: `${name} is ${quoted(query[name])}: ${detail}` });
      }
    if (faults.length > 0)
      throw new RequestFaults('input-query', faults[0]?.detail as string, faults.slice(0, MAX_REPORTED_FAULTS));
  };
}

function quoted(value: unknown): string {
  return JSON.stringify(typeof value === 'string' ? value.slice(0, MAX_QUOTED_CHARS) : value);
}

/** Query members converted to the types of the schema: strings, numbers, lists. */
function valuesOf(query: Query, schema: TObject | undefined): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(query).map(([name, sent]) => {
      const { type } = (schema?.properties[name] ?? {}) as { readonly type?: string };
      if (type === 'array') return [name, typeof sent === 'string' ? [sent] : sent];
      const value = typeof sent === 'object' && sent.length === 1 ? sent[0] : sent;
      return [name, type === 'integer' && /^\d{1,15}$/.test(String(value)) ? Number(value) : value];
    }),
  );
}

/** The first reported fault of each member. */
function faultsOf(errors: readonly ValidatorFault[], schema: TSchema): Fault[] {
  const faults = new Map<string, string>();
  const report = (pointer: string, detail: string): void => {
    if (!faults.has(pointer) && faults.size < MAX_REPORTED_FAULTS) faults.set(pointer, detail);
  };
  // A value that fits none of several alternative schemas (`anyOf`) gets one sentence, not one for each alternative. If
  // a member of the value has a fault, only that is reported.
  const anyOfFaults = errors.filter(({ keyword }) => keyword === 'anyOf');
  const anyOfPointers = new Set(anyOfFaults.map(({ instancePath }) => instancePath));
  const hasFaultInside = (pointer: string): boolean =>
    errors.some(({ instancePath }) => instancePath.startsWith(`${pointer}/`));
  for (const { keyword, instancePath: pointer, params, message } of errors) {
    if (keyword === 'required')
      for (const name of params.requiredProperties as string[]) report(`${pointer}/${escaped(name)}`, 'it is missing');
    else if (keyword === 'additionalProperties')
      // Overwrites what else was reported about the member: that it is unknown explains the rest.
      for (const name of params.additionalProperties as string[])
        faults.set(`${pointer}/${escaped(name)}`, 'there is no such member');
    else if (keyword === 'anyOf') {
      if (!hasFaultInside(pointer)) report(pointer, `expected ${choiceOf(schema, pointer)}`);
    } else if (!anyOfPointers.has(pointer)) report(pointer, sentenceOf(schema, pointer, keyword, params) ?? message);
  }
  return [...faults].map(([pointer, detail]) => ({ pointer, detail }));
}

/** What was expected, by the keyword that the value does not fit; undefined for keywords without such a sentence. */
function sentenceOf(
  schema: TSchema,
  pointer: string,
  keyword: string,
  params: ValidatorFault['params'],
): string | undefined {
  const { limit } = params;
  switch (keyword) {
    case 'type':
      return `expected ${typeWords(String(params.type), partAt(schema, pointer))}`;
    case 'minimum':
    case 'maximum':
      return `expected ${typeWords('integer', partAt(schema, pointer))}`;
    case 'enum':
      return `expected ${(partAt(schema, pointer)?.enum ?? []).join(', ')}`;
    case 'minLength':
      return limit === 1 ? 'expected a text that is not empty' : `expected ${limit} characters or more`;
    case 'maxLength':
      return `expected at most ${limit} characters`;
    case 'minItems':
      return `expected ${limit} items or more`;
    case 'maxItems':
      return `expected at most ${limit} items`;
    case 'const':
      return `expected ${JSON.stringify(params.allowedValue)}`;
    default:
      return undefined;
  }
}

/** The keywords of a schema that sentences use. */
interface SchemaPart {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, SchemaPart>>;
  readonly items?: SchemaPart;
  readonly anyOf?: readonly SchemaPart[];
}

/** The schema of the value at a JSON pointer; of alternatives, the first one with members. */
function partAt(schema: TSchema, pointer: string): SchemaPart | undefined {
  let part: SchemaPart | undefined = schema as SchemaPart;
  for (const name of pointer.split('/').slice(1)) {
    part = part?.anyOf?.find(({ properties }) => properties !== undefined) ?? part;
    part = /^\d+$/.test(name) ? part?.items : part?.properties?.[name];
  }
  return part;
}

/** A type with its range, in words: "a string", "a whole number", "a number, 1 to 9". */
function typeWords(type: string, part: SchemaPart | undefined): string {
  if (type === 'boolean') return 'true or false';
  if (type !== 'integer' && type !== 'number') return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;
  const { minimum, maximum } = part ?? {};
  const range =
    maximum === undefined ? (minimum === undefined ? '' : `, ${minimum} or more`) : `, ${minimum ?? 0} to ${maximum}`;
  return `a ${type === 'integer' && range === '' ? 'whole ' : ''}number${range}`;
}

/** The alternative schemas at a JSON pointer, in words. */
function choiceOf(schema: TSchema, pointer: string): string {
  const parts = partAt(schema, pointer)?.anyOf ?? [];
  const words = parts.map((part) => (part.type === 'null' ? 'nothing' : typeWords(part.type ?? 'value', part)));
  return words.length === 0 ? 'another value' : words.join(' or ');
}

/** A member's name in a JSON pointer, shortened. */
function escaped(name: string): string {
  return name.slice(0, MAX_QUOTED_CHARS).replaceAll('~', '~0').replaceAll('/', '~1');
}
