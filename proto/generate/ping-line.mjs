// Makes the text of gen/ping-line.ts, which reads the members of a ping from a trace line in the canonical spelling.
import {
  carries,
  constant,
  fileText,
  indented,
  isInOptionalPosition,
  PING_TYPES,
  quoted,
  wordTypes,
} from './ping-table.mjs';

const isText = ({ value }) => value.kind === 'word' || value.kind === 'text' || value.kind === 'reason';
const toName = (field) => `TO_${constant(field.json)}`;

export function pingLineText({ fields, typeFields }) {
  const spellings = fields.map((field) => {
    return `const ${toName(field)} = bytePattern(',${JSON.stringify(field.json)}:${isText(field) ? '"' : ''}');`;
  });
  const words = fields
    .filter(({ value }) => value.kind === 'word')
    .map(({ json, value: { type, words } }) => {
      const list = [...words.slice(1), words[0]].map(quoted).join(', ');
      return `const ${constant(json)}_WORDS = tokensOf<${type}>(${list});`;
    });
  const types = [...PING_TYPES.map(({ name }) => `${name}Ping`), 'Ping', ...wordTypes(fields)].sort();
  return fileText(
    ['Reads the members of a ping from a trace line in the canonical spelling, in the order of gen/ping-json.ts.'],
    [
      "import { type LineCursor, bytePattern, tokensOf } from '../trace/line-cursor.js';",
      `import type { ${types.join(', ')} } from './ping-types.js';`,
    ],
    [
      '',
      ...spellings,
      '',
      "const PING_TYPES = tokensOf<Ping['kind']>('gps', 'cellular', 'close_connection');",
      ...words,
      '',
      '/** Reads a ping, starting at the value of `ping_type`; undefined if that value is not canonical. */',
      'export function readPingLine(line: LineCursor): Ping | undefined {',
      '  const kind = line.word(PING_TYPES);',
      ...PING_TYPES.map(({ type, name }) => `  if (kind === '${type}') return read${name}(line);`),
      '  return undefined;',
      '}',
      ...PING_TYPES.flatMap((pingType) => reader(pingType, fields, typeFields)),
    ],
  );
}

/** The call that reads the field's value. */
function readCall({ json, value }) {
  if (value.kind === 'word') return `line.word(${constant(json)}_WORDS) ?? ${quoted(value.words[0])}`;
  return `line.${value.kind}()`;
}

function reader({ type, name, reason }, fields, typeFields) {
  const lines = [];
  const carried = fields.filter((field) => carries(field, type));
  const required = carried.filter((field) => field.presence !== 'optional' && !isInOptionalPosition(field, type));
  if (reason !== undefined) lines.push(`line.pass(TO_REASON);`, `line.only(${quoted(reason)}, line.reason());`);
  for (const field of required) {
    const call = field.presence === 'nullable' ? `line.isNull() ? null : ${readCall(field)}` : readCall(field);
    lines.push(`line.pass(${toName(field)});`, `const ${field.property} = ${call};`);
  }
  const members = [`kind: '${type}',`];
  if (reason !== undefined) members.push(`reason: '${reason}',`);
  let hasPosition = false;
  for (const field of typeFields) {
    if (!carries(field, type) || field.presence === 'optional') continue;
    if (field.presence !== 'position') members.push(`${field.property},`);
    else if (!hasPosition) {
      hasPosition = true;
      const inPosition = typeFields.filter(({ presence }) => presence === 'position').map(({ property }) => property);
      members.push(type === 'cellular' ? 'position: null,' : `position: { ${inPosition.join(', ')} },`);
    }
  }
  const more = optionalLines(type, carried, typeFields);
  const body =
    more.length === 0
      ? [...lines, 'return {', ...indented(members), '};']
      : [...lines, `const ping: Writable<${name}Ping> = {`, ...indented(members), '};', ...more, 'return ping;'];
  return ['', `function read${name}(line: LineCursor): ${name}Ping {`, ...indented(body), '}'];
}

/** The members that may be missing come last, in the order of the table. */
function optionalLines(type, carried, typeFields) {
  const lines = [];
  const inPosition = carried.filter((field) => isInOptionalPosition(field, type));
  const [first, ...others] = inPosition;
  for (const field of carried) {
    if (field.presence === 'optional')
      lines.push(`if (line.skip(${toName(field)})) ping.${field.property} = ${readCall(field)};`);
    if (field !== first) continue;
    const members = typeFields.filter(({ presence }) => presence === 'position').map(({ property }) => property);
    lines.push(
      `if (line.skip(${toName(first)})) {`,
      `  const ${first.property} = ${readCall(first)};`,
      ...others.flatMap((other) => [
        `  line.pass(${toName(other)});`,
        `  const ${other.property} = ${readCall(other)};`,
      ]),
      `  ping.position = { ${members.join(', ')} };`,
      '}',
    );
  }
  return lines;
}
