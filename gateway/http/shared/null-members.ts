/**
 * Treats null as absent (interfaces.md §2): typed clients write null for a member that they leave out. Both HTTP
 * interfaces drop such members before they validate a body, so that schemas and handlers need not deal with them.
 */
import type { TSchema } from 'typebox';

/** The keywords of a schema that are read here. */
interface CheckedSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, CheckedSchema>>;
  readonly required?: readonly string[];
  readonly items?: CheckedSchema;
  readonly anyOf?: readonly CheckedSchema[];
}

/**
 * Removes optional members that are null from `value`, at any depth, in place. A required member keeps its null, which
 * validation then refuses; a member whose schema allows null keeps it too.
 */
export function dropNulls(schema: TSchema, value: unknown): void {
  dropFrom(schema as CheckedSchema, value);
}

function dropFrom(schema: CheckedSchema, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const { properties, required, items } = withMembers(schema);
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

/** Of a schema's alternatives, the first one with members. */
function withMembers(schema: CheckedSchema): CheckedSchema {
  return schema.anyOf?.find(hasMembers) ?? schema;
}

function hasMembers(schema: CheckedSchema): boolean {
  return withMembers(schema).properties !== undefined;
}

function takesNull({ type, anyOf }: CheckedSchema): boolean {
  return type === 'null' || anyOf?.some(takesNull) === true;
}
