// Makes the text of gen/ping-types.ts: the types of pings in our units, and of their JSON. A field is a row of the
// table of ping fields (wire/ping-fields.ts); `fields` are in the table's order, `fieldsInTypeOrder` in the order of
// our types. The code is made as lists of lines.
import { carries, fileText, mayLack, PING_TYPES, quoted } from './ping-table.mjs';

/** The TypeScript type of each kind of value; for a word it is the type that the field names. */
const TYPE_OF_KIND = { reason: 'Reason', count: 'number', number: 'number', text: 'string' };

const typeOf = ({ value }) => TYPE_OF_KIND[value.kind] ?? value.type;

/** The type of a member that is present; a nullable field can also be null. */
const memberType = (field) => `${typeOf(field)}${field.presence === 'nullable' ? ' | null' : ''}`;

export function pingTypesText({ fields, fieldsInTypeOrder }) {
  // The first word stands for an unknown number on the wire, so readers of the type want it last.
  const words = fields
    .filter(({ value }) => value.kind === 'word')
    .flatMap(({ doc, value: { type, words } }) => [
      '',
      `/** ${doc} */`,
      `export type ${type} = ${[...words.slice(1), words[0]].map(quoted).join(' | ')};`,
    ]);
  return fileText(
    ['Pings in our units, and their JSON. A value can be outside its plausible range: it is as the lock sent it.'],
    ["import type { Reason } from '../wire/reasons.js';"],
    [
      ...words,
      '',
      '/** A place, as GPS or the cellular network reports it. */',
      'export interface Position {',
      ...fieldsInTypeOrder.filter(({ presence }) => presence === 'position').flatMap(memberLines),
      '}',
      ...PING_TYPES.flatMap((pingType) => interfaceLines(pingType, fieldsInTypeOrder)),
      '',
      'export type Ping = CellularPing | GpsPing | CloseConnectionPing;',
      ...PING_TYPES.flatMap((pingType) => jsonInterfaceLines(pingType, fields)),
      '',
      '/** The members of a ping itself in JSON, by its type. */',
      'export type PingJson = CellularPingJson | GpsPingJson | CloseConnectionPingJson;',
    ],
  );
}

/** The declaration of a field in our types. */
function memberLines(field) {
  const { property, presence, doc } = field;
  const type = presence === 'optional' ? `?: ${memberType(field)} | undefined` : `: ${memberType(field)}`;
  return [`  /** ${doc} */`, `  readonly ${property}${type};`];
}

/** The interface of one ping type in our types. */
function interfaceLines({ type, name, title, reason }, fieldsInTypeOrder) {
  const lines = ['', `/** ${title}. */`, `export interface ${name}Ping {`, `  readonly kind: '${type}';`];
  if (reason !== undefined) lines.push(`  readonly reason: '${reason}';`);
  let hasPosition = false;
  for (const field of fieldsInTypeOrder) {
    if (!carries(field, type)) continue;
    if (field.presence !== 'position') lines.push(...memberLines(field));
    else if (!hasPosition) {
      hasPosition = true;
      if (type === 'cellular') lines.push('  /** With REASON_CELL_PING, and from a phone. */');
      lines.push(`  readonly position: Position${type === 'cellular' ? ' | null' : ''};`);
    }
  }
  return [...lines, '}'];
}

/** The interface of one ping type in JSON. */
function jsonInterfaceLines({ type, name, title, reason }, fields) {
  const members = fields
    .filter((field) => carries(field, type))
    .flatMap((field) => [
      `  /** ${field.doc} */`,
      `  ${field.json}${mayLack(field, type) ? '?' : ''}: ${memberType(field)};`,
    ]);
  return [
    '',
    `/** ${title}. */`,
    `export interface ${name}PingJson {`,
    `  ping_type: '${type}';`,
    ...(reason === undefined ? [] : [`  reason: '${reason}';`]),
    ...members,
    '}',
  ];
}
