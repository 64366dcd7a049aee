/**
 * Treats null as absent (interfaces.md §2): typed clients write null for a member that they leave out. Both HTTP
 * interfaces drop such members before they validate a body, so that schemas and handlers need not deal with them.
 */
import type { TSchema } from 'typebox';

/** The part of a schema that is read here. */
interface Shape {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
}

/**
 * Removes optional members that are null, at any depth, in place. A required member keeps its null and is refused for
 * it; a member whose schema allows null keeps it too.
 */
export function dropNulls(schema: TSchema, value: unknown): void {
  dropFrom(schema as Shape, value);
}

function dropFrom(schema: Shape, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const { properties, required, items } = partOf(schema);
  if (Array.isArray(value)) {
    // Strings and numbers have no members, and there may be many of them.
    if (items !== undefined && hasMembers(items)) for (const item of value) dropFrom(items, item);
    return;
  }
  const members = value as Record<string, unknown>;
  for (const [name, member] of Object.entries(properties ?? {})) {
    if (!Object.hasOwn(members, name)) continue;
    if (members[name] !== null) dropFrom(member, members[name]);
    else if (required?.includes(name) !== true && !takesNull(member)) delete members[name];
  }
}

/** Of alternatives, the one that has members. */
function partOf(schema: Shape): Shape {
  return schema.anyOf?.find(hasMembers) ?? schema;
}

function hasMembers(schema: Shape): boolean {
  return partOf(schema).properties !== undefined;
}

function takesNull({ type, anyOf }: Shape): boolean {
  return type === 'null' || anyOf?.some(takesNull) === true;
}
