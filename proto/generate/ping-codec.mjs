// Makes the text of gen/ping-codec.ts, which converts protobuf messages to pings and back.
import {
  camel,
  carries,
  declareWords,
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

export function pingCodecText({ fields, typeFields }) {
  return fileText(
    ['The part of wire/codec.ts that is about pings. It converts units; no other code does.'],
    [
      "import type { lockgate } from '#lock-pb';",
      "import { reasonFromNumber } from '../wire/reasons.js';",
      'import {',
      '  checkInteger,',
      '  checkUnicode,',
      '  toAngle,',
      '  toReasonNumber,',
      '  toSigned32,',
      '  toUnsigned32,',
      "} from '../wire/wire-values.js';",
      'import type {',
      ...indented([...PING_TYPES.map(({ name }) => `${name}Ping`), ...wordTypes(fields)].map((it) => `${it},`)),
      "} from './ping-types.js';",
    ],
    [
      '',
      ...declareWords(fields),
      ...PING_TYPES.flatMap((pingType) => reader(pingType, typeFields)),
      ...PING_TYPES.flatMap((pingType) => writer(pingType, typeFields)),
    ],
  );
}

const wireName = (field) => `message.${camel(field.wire.name)}`;

/** The expression for our value, given the expression for the wire's value. */
function fromWire(field, wire) {
  const { value } = field;
  if (value.kind === 'reason') return `reasonFromNumber(${wire})`;
  if (value.kind === 'word') return `${wordsName(field)}[${wire}] ?? ${quoted(value.words[0])}`;
  return value.kind === 'number' && value.perUnit !== 1 ? `${wire} / ${value.perUnit}` : wire;
}

const isThere = (wire) => `${wire} !== null && ${wire} !== undefined`;

function reader({ type, name, reason }, typeFields) {
  const carried = typeFields.filter((field) => carries(field, type));
  const members = [`kind: '${type}',`];
  if (reason !== undefined) members.push(`reason: '${reason}',`);
  let hasPosition = false;
  for (const field of carried) {
    const wire = wireName(field);
    if (field.presence === 'always') members.push(`${field.property}: ${fromWire(field, wire)},`);
    if (field.presence === 'nullable')
      members.push(`${field.property}: ${isThere(wire)} ? ${fromWire(field, wire)} : null,`);
    if (field.presence === 'position' && !hasPosition) {
      hasPosition = true;
      members.push(`position: ${positionReader(type, carried)},`);
    }
  }
  const optional = carried.filter(({ presence }) => presence === 'optional');
  const body =
    optional.length === 0
      ? ['return {', ...indented(members), '};']
      : [
          `const ping: Writable<${name}Ping> = {`,
          ...indented(members),
          '};',
          ...optional.map((field) => {
            const wire = wireName(field);
            return `if (${isThere(wire)}) ping.${field.property} = ${fromWire(field, wire)};`;
          }),
          'return ping;',
        ];
  const head = `export function read${name}(message: lockgate.v1.${name}Ping): ${name}Ping {`;
  return ['', `/** Reads a ${type} ping from its message. */`, head, ...indented(body), '}'];
}

/** An incomplete position counts as none: all members without a default must be present. */
function positionReader(type, carried) {
  const inPosition = carried.filter(({ presence }) => presence === 'position');
  const hasDefault = (field) => isInOptionalPosition(field, type) && field.jsonDefault !== undefined;
  const members = inPosition.map((field) => {
    const wire = hasDefault(field) ? `(${wireName(field)} ?? ${field.jsonDefault})` : wireName(field);
    return `${field.property}: ${fromWire(field, wire)}`;
  });
  const object = `{ ${members.join(', ')} }`;
  if (type !== 'cellular') return object;
  const needed = inPosition.filter((field) => !hasDefault(field));
  return `${needed.map((field) => isThere(wireName(field))).join(' && ')} ? ${object} : null`;
}

/** The expression for the wire's value, given the expression for our value. It may throw an error with the label. */
function toWire(field, ours) {
  const { label, value } = field;
  if (value.kind === 'reason') return `toReasonNumber(${ours})`;
  if (value.kind === 'word') return `${wordsName(field)}.indexOf(${ours})`;
  if (value.kind === 'count') return `checkInteger(${quoted(label)}, ${ours}, 0, 0xffffffff)`;
  if (value.kind === 'text') return `checkUnicode(${quoted(label)}, ${ours})`;
  if (value.turn !== undefined) return `toAngle(${quoted(label)}, ${ours}, ${value.perUnit}, ${value.turn})`;
  return `${value.signed ? 'toSigned32' : 'toUnsigned32'}(${quoted(label)}, ${ours}, ${value.perUnit})`;
}

/** Members that may be missing are written whenever present, even if zero. For the others protobuf omits a zero. */
function writer({ type, name }, typeFields) {
  const carried = typeFields.filter((field) => carries(field, type));
  const isPlain = (field) => field.presence !== 'nullable' && !mayLack(field, type);
  const members = carried.filter(isPlain).map((field) => `${camel(field.wire.name)}: ${toWire(field, place(field))},`);
  const others = carried.filter((field) => !isPlain(field));
  const inPosition = others.filter((field) => field.presence === 'position');
  const lines = others
    .filter((field) => field.presence !== 'position')
    .map((field) => {
      const test = field.presence === 'nullable' ? '!== null' : '!== undefined';
      return `if (${place(field)} ${test}) ${wireName(field)} = ${toWire(field, place(field))};`;
    });
  if (inPosition.length > 0)
    lines.push(
      'if (ping.position !== null) {',
      ...indented(inPosition.map((field) => `${wireName(field)} = ${toWire(field, place(field))};`)),
      '}',
    );
  const properties = `lockgate.v1.${name}Ping.$Properties`;
  const body =
    lines.length === 0
      ? ['return {', ...indented(members), '};']
      : [`const message: ${properties} = {`, ...indented(members), '};', ...lines, 'return message;'];
  return [
    '',
    `/** Writes a ${type} ping as its message. @throws LockgateError \`unencodable\` where a value does not fit */`,
    `export function write${name}(ping: ${name}Ping): ${properties} {`,
    ...indented(body),
    '}',
  ];
}
