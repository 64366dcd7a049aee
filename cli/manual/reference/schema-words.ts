/** Says in a few words what a JSON Schema allows, and lists an object's members as rows of a table. Pure. */

/** The keywords that the reference shows. The schemas are TypeBox's, whose types do not show them. */
export interface SchemaWords {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly SchemaWords[];
  readonly items?: SchemaWords;
  readonly properties?: Readonly<Record<string, SchemaWords>>;
  readonly required?: readonly string[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
}

/** Longer lists of words are left to the OpenAPI document. */
const MAX_WORDS = 14;

/** What values a schema allows, such as `integer, 1 to 600`. */
export function kindOf(schema: SchemaWords): string {
  const { type, anyOf, items } = schema;
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return listedWords(schema.enum);
  if (anyOf !== undefined) return [...new Set(anyOf.map(kindOf))].join(' or ');
  if (type === 'array') return `list of ${items === undefined ? 'values' : kindOf(items)}${upTo(schema.maxItems)}`;
  if (type === 'object') return 'object';
  if (type === 'string') return `text${upTo(schema.maxLength)}`;
  if (type === 'integer' || type === 'number') return `${type}${rangeOf(schema)}`;
  return type === undefined ? 'any value' : [type].flat().join(' or ');
}

function listedWords(words: readonly unknown[]): string {
  const shown = words.slice(0, MAX_WORDS).map((word) => `\`${String(word)}\``);
  return `${shown.join(', ')}${words.length > MAX_WORDS ? ' and others' : ''}`;
}

function upTo(max: number | undefined): string {
  return max === undefined ? '' : `, at most ${max.toLocaleString('en-US')}`;
}

function rangeOf({ minimum, maximum }: SchemaWords): string {
  if (minimum === undefined) return maximum === undefined ? '' : `, at most ${maximum.toLocaleString('en-US')}`;
  if (maximum === undefined) return `, from ${minimum.toLocaleString('en-US')}`;
  return `, ${minimum.toLocaleString('en-US')} to ${maximum.toLocaleString('en-US')}`;
}

/** A row for each member: its name, what it may be, whether it must be there, and what it means. */
export function memberRows({ properties = {}, required = [] }: SchemaWords): string[][] {
  return Object.entries(properties).map(([name, schema]) => [
    `\`${name}\``,
    kindOf(schema),
    required.includes(name) ? 'yes' : 'no',
    meaningOf(schema),
  ]);
}

/** The description, with the default if there is one. */
function meaningOf({ description = '', default: value }: SchemaWords): string {
  const defaultText = value === undefined ? '' : ` By default \`${String(value)}\`.`;
  return `${description}${defaultText}`.trim();
}
