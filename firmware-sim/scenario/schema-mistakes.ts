/** Turns the schema's errors about a scenario file into sentences: what was found and expected, with lines. Pure. */
import type { TLocalizedValidationError } from 'typebox/error';
import { didYouMean } from '../../proto/did-you-mean.js';
import { SCENARIO_SCHEMA } from './schema.js';
import type { Mistake } from './yaml.js';

/** The parts of a JSON schema that this file reads. */
interface SchemaNode {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
}

/** Longer values are cut in messages. */
const MAX_QUOTED_CHARACTERS = 60;

/** Returns one mistake for each wrong value. `lineOf` returns the line of a JSON pointer. */
export function mistakesOf(
  errors: readonly TLocalizedValidationError[],
  value: unknown,
  lineOf: (pointer: string) => number,
): Mistake[] {
  const mistakes = new Map<string, Mistake>();
  const pointers = new Set(errors.map(({ instancePath }) => instancePath));
  const failedUnions = new Set(errors.filter(isFailedUnion).map(({ instancePath }) => instancePath));
  const add = (pointer: string, linePointer: string, message: string): void => {
    if (!mistakes.has(pointer)) mistakes.set(pointer, { line: lineOf(linePointer), message });
  };
  for (const error of errors) {
    const { keyword, instancePath: pointer } = error;
    // If no alternative of a union matches, it is unknown which one the author meant. So the message shows the
    // description of the union, and errors within the union are skipped.
    const isWithinFailedUnion = [...failedUnions].some((union) => pointer.startsWith(`${union}/`));
    // An error about a value that contains wrong values only repeats their errors.
    const containsErrors = !failedUnions.has(pointer) && [...pointers].some((other) => other.startsWith(`${pointer}/`));
    // An unknown key has two errors: this one for the object, and `boolean` for the key, which is reported.
    if (keyword === 'additionalProperties' || isWithinFailedUnion) continue;
    if (keyword === 'required' && !failedUnions.has(pointer)) {
      for (const name of error.params.requiredProperties) {
        const missingPointer = `${pointer}/${name}`;
        add(missingPointer, pointer, `${name} is missing: expected ${expectedAt(missingPointer)}`);
      }
    } else if (keyword === 'boolean') {
      add(pointer, pointer, unknownKey(pointer, unescaped(pointer.slice(pointer.lastIndexOf('/') + 1))));
    } else if (!containsErrors && keyword !== 'required') {
      add(
        pointer,
        pointer,
        `${nameOf(pointer)} is ${quoted(valueAt(value, pointer))}: expected ${expectedAt(pointer)}`,
      );
    }
  }
  return [...mistakes.values()];
}

/** Whether the error says that no alternative of a union of objects matches. */
function isFailedUnion({ keyword, instancePath }: TLocalizedValidationError): boolean {
  if (keyword !== 'anyOf') return false;
  const alternatives = nodesAt(instancePath).flatMap(({ anyOf }) => anyOf ?? []);
  return alternatives.filter(({ properties }) => properties !== undefined).length > 1;
}

function unknownKey(pointer: string, name: string): string {
  const parent = pointer.slice(0, pointer.lastIndexOf('/'));
  const nodes = nodesAt(parent);
  const names = [...new Set(nodes.flatMap((node) => Object.keys(node.properties ?? {})))];
  const hint = didYouMean(name, names);
  if (names.length > 0)
    return `there is no key ${JSON.stringify(name)} here: expected one of ${names.join(', ')}${hint && `.${hint}`}`;
  const expected = 'a letter, then up to 49 letters, digits, blanks, _ or -';
  return `${JSON.stringify(name)} is not a valid name: expected ${expected}`;
}

/** The schema's description of the value at a pointer. */
function expectedAt(pointer: string): string {
  return nodesAt(pointer)[0]?.description ?? 'something else';
}

/** The schema's nodes for a JSON pointer, including all alternatives of a union. */
function nodesAt(pointer: string): SchemaNode[] {
  let nodes: SchemaNode[] = [SCENARIO_SCHEMA as unknown as SchemaNode];
  for (const part of partsOf(pointer)) {
    nodes = nodes.flatMap((node) => alternativesOf(node)).flatMap((node) => childOf(node, part));
  }
  return [...nodes, ...nodes.flatMap((node) => [...(node.anyOf ?? [])])];
}

function alternativesOf(node: SchemaNode): SchemaNode[] {
  return [node, ...(node.anyOf ?? []).flatMap(alternativesOf)];
}

function childOf(node: SchemaNode, part: string): SchemaNode[] {
  if (node.properties !== undefined && Object.hasOwn(node.properties, part)) {
    const child = node.properties[part];
    return child === undefined ? [] : [child];
  }
  if (node.items !== undefined && /^\d+$/.test(part)) return [node.items];
  return Object.values(node.patternProperties ?? {}).slice(0, 1);
}

function partsOf(pointer: string): string[] {
  return pointer.split('/').slice(1).map(unescaped);
}

function unescaped(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** The last name in the pointer, without list indices. */
function nameOf(pointer: string): string {
  const name = partsOf(pointer).findLast((part) => !/^\d+$/.test(part));
  return name ?? 'the file';
}

function valueAt(value: unknown, pointer: string): unknown {
  let current = value;
  for (const part of partsOf(pointer)) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, part)) return undefined;
    current = (current as Record<string, unknown>)[part];
  }
  return current;
}

function quoted(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  const text = JSON.stringify(value);
  return text.length <= MAX_QUOTED_CHARACTERS ? text : `${text.slice(0, MAX_QUOTED_CHARACTERS)}…`;
}
