// Makes the text of gen/ping-json.ts, which converts pings to JSON and back.
import {
  camel,
  carries,
  fileText,
  indented,
  isInOptionalPosition,
  mayLack,
  PING_TYPES,
  place,
  quoted,
  wordsName,
  wordTypes,
} from './ping-table.mjs';

export function pingJsonText({ fields, typeFields }) {
  const words = fields
    .filter(({ value }) => value.kind === 'word')
    .map((field) => {
      const [first, ...others] = field.value.words;
      const list = [...others, first].map(quoted).join(', ');
      return `const ${wordsName(field)}: readonly ${field.value.type}[] = [${list}];`;
    });
  const jsonTypes = PING_TYPES.map(({ name }) => `${name}PingJson`);
  return fileText(
    ['Pings to JSON and back. wire/ping-json.ts and wire/ping-from-json.ts add the envelope.'],
    [
      "import type { JsonObject, JsonReader } from '../json-reader.js';",
      "import { readReason } from '../wire/reasons.js';",
      'import type {',
      ...indented(
        [...PING_TYPES.map(({ name }) => `${name}Ping`), ...jsonTypes, ...wordTypes(fields), 'Ping', 'PingJson'].map(
          (it) => `${it},`,
        ),
      ),
      "} from './ping-types.js';",
    ],
    [
      '',
      `const PING_TYPES: readonly Ping['kind'][] = [${PING_TYPES.map(({ type }) => quoted(type)).join(', ')}];`,
      ...words,
      ...toJson(fields),
      ...fromJson(typeFields),
    ],
  );
}

/** Writes the members that are always present, and then, in the order of the table, those that may be missing. */
function toJson(fields) {
  const others = PING_TYPES.slice(0, -1);
  const last = PING_TYPES.at(-1);
  return [
    '',
    "/** The ping's own members. */",
    'export function pingToJson(ping: Ping): PingJson {',
    ...others.map(({ type }) => `  if (ping.kind === '${type}') return ${camel(type)}ToJson(ping);`),
    `  return ${camel(last.type)}ToJson(ping);`,
    '}',
    ...PING_TYPES.flatMap((pingType) => toJsonOf(pingType, fields)),
  ];
}

function toJsonOf({ type, name, reason }, fields) {
  const carried = fields.filter((field) => carries(field, type));
  const members = [`ping_type: ping.kind,`];
  if (reason !== undefined) members.push('reason: ping.reason,');
  members.push(...carried.filter((field) => !mayLack(field, type)).map((field) => `${field.json}: ${place(field)},`));
  const lines = [];
  const inPosition = carried.filter((field) => isInOptionalPosition(field, type));
  let hasPosition = false;
  for (const field of carried) {
    if (field.presence === 'optional')
      lines.push(`if (${place(field)} !== undefined) json.${field.json} = ${place(field)};`);
    if (!isInOptionalPosition(field, type) || hasPosition) continue;
    hasPosition = true;
    const assign = inPosition.map((other) => `json.${other.json} = ${place(other)};`);
    lines.push('if (ping.position !== null) {', ...indented(assign), '}');
  }
  const body =
    lines.length === 0
      ? ['return {', ...indented(members), '};']
      : [`const json: ${name}PingJson = {`, ...indented(members), '};', ...lines, 'return json;'];
  return ['', `function ${camel(type)}ToJson(ping: ${name}Ping): ${name}PingJson {`, ...indented(body), '}'];
}

/** The call that reads a member which is present. */
function readCall(field, given = `json.${field.json}`) {
  const { value } = field;
  if (value.kind === 'reason') return `readReason(reader, ${given}, name)`;
  const words = value.kind === 'word' ? `, ${wordsName(field)}` : '';
  return `reader.${value.kind}(${given}, name, ${quoted(field.json)}${words})`;
}

/** The expression for a member's value, including its default if it may be omitted. */
function readMember(field, type) {
  const json = `json.${field.json}`;
  const { presence, jsonDefault } = field;
  if (presence === 'nullable') return `${json} === undefined || ${json} === null ? null : ${readCall(field)}`;
  if (jsonDefault === undefined) return readCall(field);
  const defaultText = typeof jsonDefault === 'string' ? quoted(jsonDefault) : String(jsonDefault);
  if (presence === 'position')
    return isInOptionalPosition(field, type) ? readCall(field, `${json} ?? ${defaultText}`) : readCall(field);
  return `${json} === undefined ? ${defaultText} : ${readCall(field)}`;
}

/** Reads the members that every ping type has first. */
function fromJson(typeFields) {
  const isCommon = (field) => PING_TYPES.every(({ type }) => carries(field, type));
  const common = typeFields.filter(isCommon);
  const names = common.map(({ property }) => property).join(', ');
  const shared = common.map((field) => `const ${field.property} = ${readMember(field)};`);
  const close = PING_TYPES.find(({ reason }) => reason !== undefined);
  return [
    '',
    '/** Reads a ping without its envelope. Leaves an error in `reader`. Ignores unknown members. */',
    'export function readPing(reader: JsonReader, json: JsonObject, name: string): Ping {',
    "  const kind = reader.word(json.ping_type, name, 'ping_type', PING_TYPES);",
    ...indented(shared),
    `  if (kind === '${close.type}') {`,
    `    if (json.reason !== undefined) reader.word(json.reason, name, 'reason', ['${close.reason}']);`,
    `    return { kind, reason: '${close.reason}', ${names} };`,
    '  }',
    `  const common = { ${names} };`,
    "  return kind === 'gps' ? readGps(reader, json, name, common) : readCellular(reader, json, name, common);",
    '}',
    '',
    `type Common = Pick<${close.name}Ping, ${common.map(({ property }) => quoted(property)).join(' | ')}>;`,
    ...PING_TYPES.filter(({ reason }) => reason === undefined).flatMap((it) => fromJsonOf(it, typeFields, isCommon)),
  ];
}

function fromJsonOf({ type, name }, typeFields, isCommon) {
  const carried = typeFields.filter((field) => carries(field, type));
  const members = [`kind: '${type}',`];
  let hasPosition = false;
  for (const field of carried) {
    if (isCommon(field)) members.push(`${field.property}: common.${field.property},`);
    else if (field.presence === 'position') {
      if (hasPosition) continue;
      hasPosition = true;
      members.push(...positionReader(type, carried));
    } else if (field.presence !== 'optional') members.push(`${field.property}: ${readMember(field, type)},`);
  }
  const optional = carried.filter(({ presence }) => presence === 'optional');
  const body =
    optional.length === 0
      ? ['return {', ...indented(members), '};']
      : [
          `const ping: Writable<${name}Ping> = {`,
          ...indented(members),
          '};',
          ...optional.map(
            (field) => `if (json.${field.json} !== undefined) ping.${field.property} = ${readCall(field)};`,
          ),
          'return ping;',
        ];
  const parameters = 'reader: JsonReader, json: JsonObject, name: string, common: Common';
  return ['', `function read${name}(${parameters}): ${name}Ping {`, ...indented(body), '}'];
}

function positionReader(type, carried) {
  const inPosition = carried.filter(({ presence }) => presence === 'position');
  const members = indented(inPosition.map((field) => `${field.property}: ${readMember(field, type)},`));
  if (type !== 'cellular') return ['position: {', ...members, '},'];
  const needed = inPosition.filter((field) => field.jsonDefault === undefined);
  const isThere = needed.map((field) => `json.${field.json} !== undefined`).join(' || ');
  return [`position: ${isThere} ? {`, ...members, '} : null,'];
}
