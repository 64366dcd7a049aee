/**
 * Makes, from the payload's definition (payload/schema.ts), two documents for merchants' developers: a JSON Schema and
 * TypeScript types. `npm run gen` writes both into docs/, and `lockgate webhook schema` prints them.
 */
import type { TSchema } from 'typebox';
import { MERCHANT_EVENT_SCHEMAS } from './merchant-event-schema.js';
import { PAYLOAD_SCHEMAS } from './schema.js';

/** The JSON Schema of a webhook's body (draft 2020-12), as the text of a file. */
export function payloadSchemaText(): string {
  const document = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'WebhookPayload',
    description:
      'The body of a webhook: of a ping, by its ping_type; of another event, by its type. Ignore unknown members: ' +
      'later versions may add some.',
    oneOf: [...PAYLOAD_SCHEMAS, ...MERCHANT_EVENT_SCHEMAS],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** The TypeScript types of a webhook's body, as the text of a declaration file. */
export function payloadTypesText(): string {
  const schemas = PAYLOAD_SCHEMAS.map(asSchemaNode);
  const others = MERCHANT_EVENT_SCHEMAS.map(asSchemaNode);
  // Every type of ping has the same definition of `reason`.
  const reason = schemas[0]?.properties?.reason ?? {};
  return [
    '// Generated from gateway/webhooks/payload/schema.ts by `npm run gen`. Change the schema and run it again instead',
    '// of editing this.',
    '',
    '/** The body of a webhook for a ping, by its ping_type. Ignore unknown members: later versions may add some. */',
    `export type WebhookPayload = ${schemas.map(({ title }) => title).join(' | ')};`,
    '',
    '/** The body of any webhook. Only URLs that are set to get other events than pings get them; they have a type. */',
    `export type WebhookEvent = WebhookPayload | ${others.map(({ title }) => title).join(' | ')};`,
    '',
    `/** ${reason.description} */`,
    `export type ${reason.title} =`,
    ...alternatives(reason).map((type, index, types) => `  | ${type}${index === types.length - 1 ? ';' : ''}`),
    '',
    ...[...schemas, ...others].flatMap(interfaceLines),
  ].join('\n');
}

/** The keywords of JSON Schema that the payload's schema uses. */
interface SchemaNode {
  readonly title?: string;
  readonly description?: string;
  readonly type?: string;
  readonly const?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly SchemaNode[];
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
}

/** A typebox schema is a JSON Schema already. */
function asSchemaNode(schema: TSchema): SchemaNode {
  return schema as SchemaNode;
}

function interfaceLines({ title = '', description = '', properties = {}, required = [] }: SchemaNode): string[] {
  const members = Object.entries(properties).flatMap(([name, schema]) => [
    `  /** ${schema.description} */`,
    `  ${name}${required.includes(name) ? '' : '?'}: ${schema.title ?? alternatives(schema).join(' | ')};`,
  ]);
  return [`/** ${description} */`, `export interface ${title} {`, ...members, '}', ''];
}

/** The TypeScript types of a member. A pattern becomes a template type only if it names a reason. */
function alternatives({ type, const: onlyValue, enum: values, anyOf, pattern }: SchemaNode): string[] {
  if (anyOf !== undefined) return anyOf.flatMap(alternatives);
  if (onlyValue !== undefined) return [quoted(onlyValue)];
  if (values !== undefined) return values.map(quoted);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the string is TypeScript source
  if (pattern?.startsWith('^REASON_UNRECOGNIZED_')) return ['`REASON_UNRECOGNIZED_${number}`'];
  if (type === 'string' || type === 'boolean' || type === 'null') return [type];
  if (type === 'object') return ['Record<string, unknown>'];
  if (type === 'number' || type === 'integer') return ['number'];
  throw new Error(`no TypeScript type is known for the type ${type} of the payload's schema`);
}

function quoted(word: string): string {
  return `'${word}'`;
}
