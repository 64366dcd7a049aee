// Makes the text of gen/ping-codec.ts, which converts protobuf messages to pings and back. A field is a row of the
// table of ping fields (wire/ping-fields.ts); `fieldsInTypeOrder` has the fields in the order of our types. The code is
// made as lists of lines.
import {
  camelCase,
  carries,
  declareWords,
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

export function pingCodecText({ fields, fieldsInTypeOrder }) {
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
      ...indented(
        [...PING_TYPES.map(({ name }) => `${name}Ping`), ...wordTypes(fields)].map((typeName) => `${typeName},`),
      ),
      "} from './ping-types.js';",
    ],
    [
      '',
      ...declareWords(fields),
      ...PING_TYPES.flatMap((pingType) => readerLines(pingType, fieldsInTypeOrder)),
      ...PING_TYPES.flatMap((pingType) => writerLines(pingType, fieldsInTypeOrder)),
    ],
  );
}

/** The expression for a field's value in the protobuf message. */
const wireName = (field) => `message.${camelCase(field.wire.name)}`;

/**
 * The expression for our value, given the expression for the wire's value. The first of a field's words stands for an
 * unknown number; `perUnit` is how many of the wire's units make one of ours.
 */
function fromWire(field, wire) {
  const { value } = field;
  if (value.kind === 'reason') return `reasonFromNumber(${wire})`;
  if (value.kind === 'word') return `${wordsName(field)}[${wire}] ?? ${quoted(value.words[0])}`;
  return value.kind === 'number' && value.perUnit !== 1 ? `${wire} / ${value.perUnit}` : wire;
}

/** The condition that the message has a value. */
const isPresent = (wire) => `${wire} !== null && ${wire} !== undefined`;

/** The function that reads a ping of one type from its message, as lines. */
function readerLines({ type, name, reason }, fieldsInTypeOrder) {
  const carried = fieldsInTypeOrder.filter((field) => carries(field, type));
  const members = [`kind: '${type}',`];
  if (reason !== undefined) members.push(`reason: '${reason}',`);
  let hasPosition = false;
  for (const field of carried) {
    const wire = wireName(field);
    if (field.presence === 'always') members.push(`${field.property}: ${fromWire(field, wire)},`);
    if (field.presence === 'nullable')
      members.push(`${field.property}: ${isPresent(wire)} ? ${fromWire(field, wire)} : null,`);
    if (field.presence === 'position' && !hasPosition) {
      hasPosition = true;
      members.push(`position: ${positionExpression(type, carried)},`);
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
            return `if (${isPresent(wire)}) ping.${field.property} = ${fromWire(field, wire)};`;
          }),
          'return ping;',
        ];
  const head = `export function read${name}(message: lockgate.v1.${name}Ping): ${name}Ping {`;
  return ['', `/** Reads a ${type} ping from its message. */`, head, ...indented(body), '}'];
}

/** The expression for a position: null if the message lacks a coordinate. Only the uncertainty has a default. */
function positionExpression(type, carried) {
  const inPosition = carried.filter(({ presence }) => presence === 'position');
  const hasDefault = (field) => isInOptionalPosition(field, type) && field.jsonDefault !== undefined;
  const members = inPosition.map((field) => {
    const wire = hasDefault(field) ? `(${wireName(field)} ?? ${field.jsonDefault})` : wireName(field);
    return `${field.property}: ${fromWire(field, wire)}`;
  });
  const positionObject = `{ ${members.join(', ')} }`;
  if (type !== 'cellular') return positionObject;
  const needed = inPosition.filter((field) => !hasDefault(field));
  return `${needed.map((field) => isPresent(wireName(field))).join(' && ')} ? ${positionObject} : null`;
}

/**
 * The expression for the wire's value, given the expression for our value. An error that it throws has the label.
 * `turn` is a full turn of an angle, in our unit; 0xffffffff is the greatest uint32.
 */
function toWire(field, ours) {
  const { label, value } = field;
  if (value.kind === 'reason') return `toReasonNumber(${ours})`;
  if (value.kind === 'word') return `${wordsName(field)}.indexOf(${ours})`;
  if (value.kind === 'count') return `checkInteger(${quoted(label)}, ${ours}, 0, 0xffffffff)`;
  if (value.kind === 'text') return `checkUnicode(${quoted(label)}, ${ours})`;
  if (value.turn !== undefined) return `toAngle(${quoted(label)}, ${ours}, ${value.perUnit}, ${value.turn})`;
  return `${value.signed ? 'toSigned32' : 'toUnsigned32'}(${quoted(label)}, ${ours}, ${value.perUnit})`;
}

/**
 * The function that writes a ping of one type as its message, as lines. A member that may be missing is written
 * whenever it is present, even if zero. Of all other members protobuf omits a zero.
 */
function writerLines({ type, name }, fieldsInTypeOrder) {
  const carried = fieldsInTypeOrder.filter((field) => carries(field, type));
  // Every ping of the type has such a member.
  const isPlain = (field) => field.presence !== 'nullable' && !mayLack(field, type);
  const members = carried
    .filter(isPlain)
    .map((field) => `${camelCase(field.wire.name)}: ${toWire(field, memberExpression(field))},`);
  const otherFields = carried.filter((field) => !isPlain(field));
  const inPosition = otherFields.filter((field) => field.presence === 'position');
  const lines = otherFields
    .filter((field) => field.presence !== 'position')
    .map((field) => {
      const presenceTest = field.presence === 'nullable' ? '!== null' : '!== undefined';
      const member = memberExpression(field);
      return `if (${member} ${presenceTest}) ${wireName(field)} = ${toWire(field, member)};`;
    });
  if (inPosition.length > 0)
    lines.push(
      'if (ping.position !== null) {',
      ...indented(inPosition.map((field) => `${wireName(field)} = ${toWire(field, memberExpression(field))};`)),
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
