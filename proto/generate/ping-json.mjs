// Makes the text of gen/ping-json.ts, which converts pings to JSON and back. A field is a row of the table of ping
// fields (wire/ping-fields.ts); `fields` are in the table's order, `fieldsInTypeOrder` in the order of our types. The
// code is made as lists of lines.
import {
  camelCase,
  carries,
  fileText,
  indented,
  isInOptionalPosition,
  mayLack,
  memberExpression,
  PING_TYPES,
  quoted,
  wordsName,
  wordTypes,
} from './ping-table.mjs';

export function pingJsonText({ fields, fieldsInTypeOrder }) {
  const words = fields
    .filter(({ value }) => value.kind === 'word')
    .map((field) => {
      // The first word stands for an unknown number on the wire: errors that list the words name it last.
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
          (typeName) => `${typeName},`,
        ),
      ),
      "} from './ping-types.js';",
    ],
    [
      '',
      `const PING_TYPES: readonly Ping['kind'][] = [${PING_TYPES.map(({ type }) => quoted(type)).join(', ')}];`,
      ...words,
      ...writerLines(fields),
      ...readerLines(fieldsInTypeOrder),
    ],
  );
}

/**
 * The code that writes JSON: first the members that are always present, then those that may be missing, both in the
 * order of the table.
 */
function writerLines(fields) {
  const allButLast = PING_TYPES.slice(0, -1);
  const last = PING_TYPES.at(-1);
  return [
    '',
    "/** The ping's own members. */",
    'export function pingToJson(ping: Ping): PingJson {',
    ...allButLast.map(({ type }) => `  if (ping.kind === '${type}') return ${camelCase(type)}ToJson(ping);`),
    `  return ${camelCase(last.type)}ToJson(ping);`,
    '}',
    ...PING_TYPES.flatMap((pingType) => writerLinesOfType(pingType, fields)),
  ];
}

function writerLinesOfType({ type, name, reason }, fields) {
  const carried = fields.filter((field) => carries(field, type));
  const members = [`ping_type: ping.kind,`];
  if (reason !== undefined) members.push('reason: ping.reason,');
  members.push(
    ...carried.filter((field) => !mayLack(field, type)).map((field) => `${field.json}: ${memberExpression(field)},`),
  );
  const lines = [];
  const inPosition = carried.filter((field) => isInOptionalPosition(field, type));
  let hasPosition = false;
  for (const field of carried) {
    if (field.presence === 'optional')
      lines.push(`if (${memberExpression(field)} !== undefined) json.${field.json} = ${memberExpression(field)};`);
    if (!isInOptionalPosition(field, type) || hasPosition) continue;
    hasPosition = true;
    const assignments = inPosition.map((other) => `json.${other.json} = ${memberExpression(other)};`);
    lines.push('if (ping.position !== null) {', ...indented(assignments), '}');
  }
  const body =
    lines.length === 0
      ? ['return {', ...indented(members), '};']
      : [`const json: ${name}PingJson = {`, ...indented(members), '};', ...lines, 'return json;'];
  return ['', `function ${camelCase(type)}ToJson(ping: ${name}Ping): ${name}PingJson {`, ...indented(body), '}'];
}

/** The call that reads a present member. `expression` is the JSON value that it reads. */
function readCall(field, expression = `json.${field.json}`) {
  const { value } = field;
  if (value.kind === 'reason') return `readReason(reader, ${expression}, name)`;
  const words = value.kind === 'word' ? `, ${wordsName(field)}` : '';
  return `reader.${value.kind}(${expression}, name, ${quoted(field.json)}${words})`;
}

/** The expression for the value of a member, or for its default if the JSON omits it. */
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

/**
 * The code that reads JSON: `readPing` reads the members that every ping type has, then calls the type's own reader.
 */
function readerLines(fieldsInTypeOrder) {
  const isCommon = (field) => field.presence !== 'optional' && PING_TYPES.every(({ type }) => carries(field, type));
  const commonFields = fieldsInTypeOrder.filter(isCommon);
  const commonNames = commonFields.map(({ property }) => property).join(', ');
  const commonReads = commonFields.map((field) => `const ${field.property} = ${readMember(field)};`);
  // Only a close-connection ping always has the same reason.
  const closeType = PING_TYPES.find(({ reason }) => reason !== undefined);
  const closeMembers = `kind, reason: '${closeType.reason}', ${commonNames}`;
  const closeOptional = optionalReads(fieldsInTypeOrder.filter((field) => carries(field, closeType.type)));
  const closeReturn =
    closeOptional.length === 0
      ? [`return { ${closeMembers} };`]
      : [`const ping: Writable<${closeType.name}Ping> = { ${closeMembers} };`, ...closeOptional, 'return ping;'];
  return [
    '',
    '/** Reads a ping without its envelope. Leaves an error in `reader`. Ignores unknown members. */',
    'export function readPing(reader: JsonReader, json: JsonObject, name: string): Ping {',
    "  const kind = reader.word(json.ping_type, name, 'ping_type', PING_TYPES);",
    ...indented(commonReads),
    `  if (kind === '${closeType.type}') {`,
    `    if (json.reason !== undefined) reader.word(json.reason, name, 'reason', ['${closeType.reason}']);`,
    ...indented(closeReturn, '    '),
    '  }',
    `  const common = { ${commonNames} };`,
    "  return kind === 'gps' ? readGps(reader, json, name, common) : readCellular(reader, json, name, common);",
    '}',
    '',
    `type Common = Pick<${closeType.name}Ping, ${commonFields.map(({ property }) => quoted(property)).join(' | ')}>;`,
    ...PING_TYPES.filter(({ reason }) => reason === undefined).flatMap((pingType) =>
      readerLinesOfType(pingType, fieldsInTypeOrder, isCommon),
    ),
  ];
}

/** The code of one ping type's reader, such as `readGps`. `isCommon` says whether every ping type has a field. */
function readerLinesOfType({ type, name }, fieldsInTypeOrder, isCommon) {
  const carried = fieldsInTypeOrder.filter((field) => carries(field, type));
  const members = [`kind: '${type}',`];
  let hasPosition = false;
  for (const field of carried) {
    if (isCommon(field)) members.push(`${field.property}: common.${field.property},`);
    else if (field.presence === 'position') {
      if (hasPosition) continue;
      hasPosition = true;
      members.push(...positionLines(type, carried));
    } else if (field.presence !== 'optional') members.push(`${field.property}: ${readMember(field, type)},`);
  }
  const optional = optionalReads(carried);
  const body =
    optional.length === 0
      ? ['return {', ...indented(members), '};']
      : [`const ping: Writable<${name}Ping> = {`, ...indented(members), '};', ...optional, 'return ping;'];
  const parameters = 'reader: JsonReader, json: JsonObject, name: string, common: Common';
  return ['', `function read${name}(${parameters}): ${name}Ping {`, ...indented(body), '}'];
}

/** The lines that read the optional ones of the fields into `ping`. */
function optionalReads(fields) {
  const optional = fields.filter(({ presence }) => presence === 'optional');
  return optional.map((field) => `if (json.${field.json} !== undefined) ping.${field.property} = ${readCall(field)};`);
}

/** The lines that read `position`. `carried` are the fields of the ping type. */
function positionLines(type, carried) {
  const inPosition = carried.filter(({ presence }) => presence === 'position');
  const members = indented(inPosition.map((field) => `${field.property}: ${readMember(field, type)},`));
  if (type !== 'cellular') return ['position: {', ...members, '},'];
  const needed = inPosition.filter((field) => field.jsonDefault === undefined);
  const isPresent = needed.map((field) => `json.${field.json} !== undefined`).join(' || ');
  return [`position: ${isPresent} ? {`, ...members, '} : null,'];
}
