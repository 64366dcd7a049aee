// Makes the text of gen/ping-line-writer.ts, which writes the members of a ping into a trace line: the same bytes as
// JSON.stringify of gen/ping-json.ts. A field is a row of the table of ping fields (wire/ping-fields.ts), in the order
// of the table. The code is made as lists of lines.
import {
  carries,
  constantCase,
  fileText,
  indented,
  isInOptionalPosition,
  mayLack,
  memberExpression,
  PING_TYPES,
} from './ping-table.mjs';

/** The name of the constant with the text before a field's value: the comma, the member's name and the colon. */
const partName = (field) => `TO_${constantCase(field.json)}`;
/** The constant with the quoted name of a ping type. */
const typeName = (type) => `TYPE_${constantCase(type)}`;

export function pingLineWriterText({ fields }) {
  const types = [...PING_TYPES.map(({ name }) => `${name}Ping`), 'Ping'].sort();
  return fileText(
    [
      'Writes the members of a ping into a trace line: the same bytes as JSON.stringify of gen/ping-json.ts. Each',
      '`TO_…` is the text before a value.',
    ],
    [
      "import { type LineBuilder, linePart } from '../trace/line-builder.js';",
      `import type { ${types.join(', ')} } from './ping-types.js';`,
    ],
    [
      '',
      ...fields.map((field) => `const ${partName(field)} = linePart(',${JSON.stringify(field.json)}:');`),
      ...PING_TYPES.map(({ type }) => `const ${typeName(type)} = linePart('${JSON.stringify(type)}');`),
      '',
      '/** Writes a ping, starting with the value of `ping_type`. */',
      'export function writePingLine(line: LineBuilder, ping: Ping): void {',
      ...PING_TYPES.slice(0, -1).map(({ type, name }, index) => {
        return `  ${index === 0 ? '' : 'else '}if (ping.kind === '${type}') write${name}(line, ping);`;
      }),
      `  else write${PING_TYPES.at(-1).name}(line, ping);`,
      '}',
      ...PING_TYPES.flatMap((pingType) => writerLines(pingType, fields)),
    ],
  );
}

/** Whether JSON puts the field's value in quotes. */
const isQuoted = ({ value }) => value.kind === 'word' || value.kind === 'text' || value.kind === 'reason';

/** The code that writes a field's name and value. */
function memberLines(field) {
  const value = memberExpression(field);
  const write = `line.${isQuoted(field) ? 'text' : 'number'}(${value});`;
  const part = `line.part(${partName(field)});`;
  if (field.presence !== 'nullable') return [part, write];
  return [part, `if (${value} === null) line.nothing();`, `else ${write}`];
}

/** The function that writes a ping of one type: first the members that are always there, then the optional ones. */
function writerLines({ type, name, reason }, fields) {
  const carried = fields.filter((field) => carries(field, type));
  const lines = [`line.part(${typeName(type)});`];
  if (reason !== undefined) lines.push('line.part(TO_REASON);', 'line.text(ping.reason);');
  lines.push(...carried.filter((field) => !mayLack(field, type)).flatMap(memberLines));
  const inPosition = carried.filter((field) => isInOptionalPosition(field, type));
  for (const field of carried) {
    if (field.presence === 'optional')
      lines.push(`if (${memberExpression(field)} !== undefined) {`, ...indented(memberLines(field)), '}');
    if (field === inPosition[0])
      lines.push('if (ping.position !== null) {', ...indented(inPosition.flatMap(memberLines)), '}');
  }
  return ['', `function write${name}(line: LineBuilder, ping: ${name}Ping): void {`, ...indented(lines), '}'];
}
