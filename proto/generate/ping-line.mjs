// Makes the text of gen/ping-line.ts, which reads the members of a ping from a trace line in the canonical spelling:
// byte by byte as proto/trace/writer.ts writes it. A field is a row of the table of ping fields (wire/ping-fields.ts);
// `fields` are in the table's order, `fieldsInTypeOrder` in the order of our types. The code is made as lists of lines.
import {
  carries,
  constantCase,
  fileText,
  indented,
  isInOptionalPosition,
  PING_TYPES,
  quoted,
  wordTypes,
} from './ping-table.mjs';

/** Whether JSON puts the field's value in quotes. */
const isQuoted = ({ value }) => value.kind === 'word' || value.kind === 'text' || value.kind === 'reason';
/** The name of the constant with the text before a field's value: the comma, the member's name and the colon. */
const patternName = (field) => `TO_${constantCase(field.json)}`;

export function pingLineText({ fields, fieldsInTypeOrder }) {
  const patterns = fields.map((field) => {
    return `const ${patternName(field)} = bytePattern(',${JSON.stringify(field.json)}:${isQuoted(field) ? '"' : ''}');`;
  });
  const words = fields
    .filter(({ value }) => value.kind === 'word')
    .map(({ json, value: { type, words } }) => {
      // The first word stands for an unknown number on the wire. It is compared last.
      const list = [...words.slice(1), words[0]].map(quoted).join(', ');
      return `const ${constantCase(json)}_WORDS = tokensOf<${type}>(${list});`;
    });
  const types = [...PING_TYPES.map(({ name }) => `${name}Ping`), 'Ping', ...wordTypes(fields)].sort();
  return fileText(
    [
      'Reads the members of a ping from a trace line in the canonical spelling, in the order of gen/ping-json.ts. Each',
      '`TO_…` is the text before a value.',
    ],
    [
      "import { type LineCursor, bytePattern, tokensOf } from '../trace/line-cursor.js';",
      `import type { ${types.join(', ')} } from './ping-types.js';`,
    ],
    [
      '',
      ...patterns,
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
      ...PING_TYPES.flatMap((pingType) => readerLines(pingType, fields, fieldsInTypeOrder)),
    ],
  );
}

/** The call that reads the field's value. The fallback of a word is only a placeholder: the line is not canonical. */
function readCall({ json, value }) {
  if (value.kind === 'word') return `line.word(${constantCase(json)}_WORDS) ?? ${quoted(value.words[0])}`;
  return `line.${value.kind}()`;
}

/** The function that reads a ping of one type, as lines. */
function readerLines({ type, name, reason }, fields, fieldsInTypeOrder) {
  const lines = [];
  const carried = fields.filter((field) => carries(field, type));
  const required = carried.filter((field) => field.presence !== 'optional' && !isInOptionalPosition(field, type));
  if (reason !== undefined) lines.push(`line.pass(TO_REASON);`, `line.only(${quoted(reason)}, line.reason());`);
  for (const field of required) {
    const call = field.presence === 'nullable' ? `line.isNull() ? null : ${readCall(field)}` : readCall(field);
    lines.push(`line.pass(${patternName(field)});`, `const ${field.property} = ${call};`);
  }
  const members = [`kind: '${type}',`];
  if (reason !== undefined) members.push(`reason: '${reason}',`);
  let hasPosition = false;
  for (const field of fieldsInTypeOrder) {
    if (!carries(field, type) || field.presence === 'optional') continue;
    if (field.presence !== 'position') members.push(`${field.property},`);
    else if (!hasPosition) {
      hasPosition = true;
      const inPosition = fieldsInTypeOrder
        .filter(({ presence }) => presence === 'position')
        .map(({ property }) => property);
      members.push(type === 'cellular' ? 'position: null,' : `position: { ${inPosition.join(', ')} },`);
    }
  }
  const optionalReads = optionalLines(type, carried, fieldsInTypeOrder);
  const body =
    optionalReads.length === 0
      ? [...lines, 'return {', ...indented(members), '};']
      : [
          ...lines,
          `const ping: Writable<${name}Ping> = {`,
          ...indented(members),
          '};',
          ...optionalReads,
          'return ping;',
        ];
  return ['', `function read${name}(line: LineCursor): ${name}Ping {`, ...indented(body), '}'];
}

/** The lines that read the members that may be missing. In a trace line these come last, in the order of the table. */
function optionalLines(type, carried, fieldsInTypeOrder) {
  const lines = [];
  const inPosition = carried.filter((field) => isInOptionalPosition(field, type));
  const [first, ...others] = inPosition;
  for (const field of carried) {
    if (field.presence === 'optional')
      lines.push(`if (line.skip(${patternName(field)})) ping.${field.property} = ${readCall(field)};`);
    if (field !== first) continue;
    const members = fieldsInTypeOrder.filter(({ presence }) => presence === 'position').map(({ property }) => property);
    lines.push(
      `if (line.skip(${patternName(first)})) {`,
      `  const ${first.property} = ${readCall(first)};`,
      ...others.flatMap((other) => [
        `  line.pass(${patternName(other)});`,
        `  const ${other.property} = ${readCall(other)};`,
      ]),
      `  ping.position = { ${members.join(', ')} };`,
      '}',
    );
  }
  return lines;
}
