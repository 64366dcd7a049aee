// Loads the table of ping fields (wire/ping-fields.ts) for the generators, and has the helpers that several of them
// use. The table is compiled here, because the project can't be compiled before its generated code exists.
import { readFileSync } from 'node:fs';
import ts from 'typescript';

const tableFile = new URL('../wire/ping-fields.ts', import.meta.url);

/**
 * The ping types: the type as in the table, its name in the identifiers of generated code, and its doc comment.
 * `reason` is the fixed reason of a type that does not send it.
 */
export const PING_TYPES = [
  { type: 'cellular', name: 'Cellular', title: 'A cellular ping' },
  { type: 'gps', name: 'Gps', title: 'A GPS ping: the lock had a fix' },
  {
    type: 'close_connection',
    name: 'CloseConnection',
    title: 'The lock leaves the network. Its reason follows from its type and is not on the wire',
    reason: 'REASON_CLOSE_CONNECTION',
  },
];

/**
 * The fields: rows of the table, each with its key in the table as `property`. `fields` are in the table's order,
 * `fieldsInTypeOrder` in the order of our types, which differs in that the members of `position` are together.
 *
 * A field's `presence`: `always` has a value; `nullable` is null without one; `optional` is left out without one;
 * `position` is a member of the ping's position.
 */
export async function loadFields() {
  const { outputText } = ts.transpileModule(readFileSync(tableFile, 'utf8'), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  const table = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
  const withProperty = (rows) => rows.map(([property, field]) => ({ property, ...field }));
  return {
    fields: withProperty(table.PING_FIELD_ROWS),
    fieldsInTypeOrder: withProperty(table.inTypeOrder(table.PING_FIELD_ROWS)),
  };
}

/** Whether pings of the type carry the field on the wire. */
export const carries = (field, type) => field.wire.numbers[type] !== undefined;

/** Whether the field is in a `position` that can be missing, as in a cellular ping. */
export const isInOptionalPosition = (field, type) => field.presence === 'position' && type === 'cellular';

/** Whether a ping of the type, and its JSON, may lack the member. */
export const mayLack = (field, type) => field.presence === 'optional' || isInOptionalPosition(field, type);

/** A name as protobuf code spells it: `ebikeMillivolts` for `ebike_millivolts`. */
export const camelCase = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** A name in the spelling of constants: `EBIKE_VOLTAGE` for `ebike_voltage`. */
export const constantCase = (name) => name.toUpperCase();

/** A text as a string literal of the generated code. */
export const quoted = (text) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** The expression for a field's value in our types: `ping.batteryPercent` or `ping.position.latitudeDegrees`. */
export const memberExpression = (field) =>
  field.presence === 'position' ? `ping.position.${field.property}` : `ping.${field.property}`;

/** The name of the constant that lists a field's words. */
export const wordsName = (field) => `${constantCase(field.json)}_WORDS`;

/** The declarations of these constants, each with its words in the order of their numbers on the wire. */
export const declareWords = (fields) =>
  fields
    .filter(({ value }) => value.kind === 'word')
    .map((field) => {
      const { type, words } = field.value;
      return `const ${wordsName(field)}: readonly ${type}[] = [${words.map(quoted).join(', ')}];`;
    });

/** The names of the fields' word types, such as LockState. */
export const wordTypes = (fields) => fields.flatMap(({ value }) => (value.kind === 'word' ? [value.type] : []));

/** Lines of code with an indentation; empty lines stay empty. */
export const indented = (lines, by = '  ') => lines.map((line) => (line === '' ? line : by + line));

/** The type of a ping to which optional members are added. */
const WRITABLE = 'type Writable<Ping> = { -readonly [Member in keyof Ping]: Ping[Member] };';

/** The text of a generated file, from the lines of its head comment, its imports and its code. */
export function fileText(head, imports, code) {
  const notice = [
    '// Generated from proto/wire/ping-fields.ts by `npm run gen`. Change the table and run it again; don’t edit this.',
    '',
    '/**',
    ...head.map((line) => ` * ${line}`),
    ' */',
  ];
  const helpers = code.some((line) => line.includes('Writable<')) ? ['', WRITABLE] : [];
  return `${[...notice, ...imports, ...helpers, ...code].join('\n')}\n`;
}
