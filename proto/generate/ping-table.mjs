// Loads the table of ping fields (wire/ping-fields.ts) for the generators, with helpers that several of them use. The
// table is TypeScript, but it can't be compiled with the project, since the project contains the generated code.
import { readFileSync } from 'node:fs';
import ts from 'typescript';

const file = new URL('../wire/ping-fields.ts', import.meta.url);

/** The ping types with their names in generated code. `reason` is the fixed reason of a type that does not send it. */
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

/** The rows in the order of the table, each with its `property`; and the same rows in the order of our types. */
export async function loadFields() {
  const { outputText } = ts.transpileModule(readFileSync(file, 'utf8'), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  const table = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
  const flat = (rows) => rows.map(([property, field]) => ({ property, ...field }));
  return { fields: flat(table.PING_FIELD_ROWS), typeFields: flat(table.inTypeOrder(table.PING_FIELD_ROWS)) };
}

/** Whether pings of the type carry the field on the wire. */
export const carries = (field, type) => field.wire.numbers[type] !== undefined;

/** Whether the field is in a `position` that can be missing, as in a cellular ping. */
export const isInOptionalPosition = (field, type) => field.presence === 'position' && type === 'cellular';

/** Whether a ping of the type, and its JSON, may lack the member. */
export const mayLack = (field, type) => field.presence === 'optional' || isInOptionalPosition(field, type);

/** The name in the protobuf code: `ebikeMillivolts` for `ebike_millivolts`. */
export const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** The name of a constant: `EBIKE_VOLTAGE` for `ebike_voltage`. */
export const constant = (name) => name.toUpperCase();

export const quoted = (text) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** The expression for the value in our types: `ping.batteryPercent` or `ping.position.latitudeDegrees`. */
export const place = (field) =>
  field.presence === 'position' ? `ping.position.${field.property}` : `ping.${field.property}`;

/** The name of the constant with a field's words, and its declaration, in the order of their wire numbers. */
export const wordsName = (field) => `${constant(field.json)}_WORDS`;
export const declareWords = (fields) =>
  fields
    .filter(({ value }) => value.kind === 'word')
    .map((field) => {
      const { type, words } = field.value;
      return `const ${wordsName(field)}: readonly ${type}[] = [${words.map(quoted).join(', ')}];`;
    });

/** The types of words that the fields have, such as LockState. */
export const wordTypes = (fields) => fields.flatMap(({ value }) => (value.kind === 'word' ? [value.type] : []));

export const indented = (lines, by = '  ') => lines.map((line) => (line === '' ? line : by + line));

/** The type of a ping to which optional members are added. */
const WRITABLE = 'type Writable<Ping> = { -readonly [Member in keyof Ping]: Ping[Member] };';

/** The text of a generated file: its head comment, its imports, and its code. */
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
