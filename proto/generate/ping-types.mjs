// Makes the text of gen/ping-types.ts: the types of pings in our units, and of their JSON.
import { carries, fileText, mayLack, PING_TYPES, quoted } from './ping-table.mjs';

const TYPE_OF_KIND = { reason: 'Reason', count: 'number', number: 'number', text: 'string' };

const typeOf = ({ value }) => TYPE_OF_KIND[value.kind] ?? value.type;

/** The type of a member that is present; a nullable field can also be null. */
const memberType = (field) => `${typeOf(field)}${field.presence === 'nullable' ? ' | null' : ''}`;

export function pingTypesText({ fields, typeFields }) {
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
      ...typeFields.filter(({ presence }) => presence === 'position').flatMap(ownMember),
      '}',
      ...PING_TYPES.flatMap((pingType) => ownInterface(pingType, typeFields)),
      '',
      'export type Ping = CellularPing | GpsPing | CloseConnectionPing;',
      ...PING_TYPES.flatMap((pingType) => jsonInterface(pingType, fields)),
      '',
      '/** The members of a ping itself in JSON, by its type. */',
      'export type PingJson = CellularPingJson | GpsPingJson | CloseConnectionPingJson;',
    ],
  );
}

function ownMember(field) {
  const { property, presence, doc } = field;
  const type = presence === 'optional' ? `?: ${memberType(field)} | undefined` : `: ${memberType(field)}`;
  return [`  /** ${doc} */`, `  readonly ${property}${type};`];
}

function ownInterface({ type, name, title, reason }, typeFields) {
  const lines = ['', `/** ${title}. */`, `export interface ${name}Ping {`, `  readonly kind: '${type}';`];
  if (reason !== undefined) lines.push(`  readonly reason: '${reason}';`);
  let hasPosition = false;
  for (const field of typeFields) {
    if (!carries(field, type)) continue;
    if (field.presence !== 'position') lines.push(...ownMember(field));
    else if (!hasPosition) {
      hasPosition = true;
      if (type === 'cellular') lines.push('  /** With REASON_CELL_PING, and from a phone. */');
      lines.push(`  readonly position: Position${type === 'cellular' ? ' | null' : ''};`);
    }
  }
  return [...lines, '}'];
}

function jsonInterface({ type, name, title, reason }, fields) {
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
