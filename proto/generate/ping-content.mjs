// Makes the text of gen/ping-content.ts: the fingerprint of a ping's content, and whether its values are plausible. A
// field is a row of the table of ping fields (wire/ping-fields.ts); `fieldsInTypeOrder` has the fields in the order of
// our types. The code is made as lists of lines.
import {
  carries,
  declareWords,
  fileText,
  indented,
  isInOptionalPosition,
  memberExpression,
  PING_TYPES,
  wordsName,
  wordTypes,
} from './ping-table.mjs';

export function pingContentText({ fields, fieldsInTypeOrder }) {
  return fileText(
    ['Functions over all fields of a ping: its fingerprint, and whether its values are plausible.'],
    [
      "import { mix, mixNumber, mixText } from '../wire/mixer.js';",
      "import { reasonNumber } from '../wire/reasons.js';",
      `import type { ${[...wordTypes(fields), 'Ping', 'Position'].sort().join(', ')} } from './ping-types.js';`,
    ],
    [
      '',
      ...declareWords(fields),
      '',
      '/** Mixes all fields of a ping into the fingerprint. An optional field also adds whether it is present. */',
      'export function mixPing(ping: Ping): void {',
      '  switch (ping.kind) {',
      ...PING_TYPES.flatMap(({ type }, index) => [
        `    case '${type}':`,
        `      mix(${index});`,
        ...indented(mixLines(type, fieldsInTypeOrder), '      '),
        '      break;',
      ]),
      '  }',
      '}',
      ...plausibilityLines(fieldsInTypeOrder),
    ],
  );
}

/** The call that mixes a field's value into the fingerprint. */
function mixCall(field) {
  const { value } = field;
  const expression = memberExpression(field);
  if (value.kind === 'reason') return `mix(reasonNumber(${expression}) ?? 0);`;
  if (value.kind === 'word') return `mix(${wordsName(field)}.indexOf(${expression}));`;
  if (value.kind === 'text') return `mixText(${expression});`;
  return value.kind === 'count' ? `mix(${expression});` : `mixNumber(${expression});`;
}

/** Lines that mix in a 1 and then a value that is present, or a 0 for a value that is missing. */
const mixIfPresent = (isPresent, calls) => [`if (${isPresent}) {`, '  mix(1);', ...indented(calls), '} else mix(0);'];

function mixLines(type, fieldsInTypeOrder) {
  const lines = [];
  const carried = fieldsInTypeOrder.filter((field) => carries(field, type));
  const inPosition = carried.filter((field) => isInOptionalPosition(field, type));
  for (const field of carried) {
    if (field.presence === 'nullable')
      lines.push(...mixIfPresent(`${memberExpression(field)} !== null`, [mixCall(field)]));
    else if (field.presence === 'optional')
      lines.push(...mixIfPresent(`${memberExpression(field)} !== undefined`, [mixCall(field)]));
    else if (!isInOptionalPosition(field, type)) lines.push(mixCall(field));
    else if (field === inPosition[0]) lines.push(...mixIfPresent('ping.position !== null', inPosition.map(mixCall)));
  }
  return lines;
}

/** The condition that a value is in its plausible range. It is false for NaN. */
function rangeCondition(expression, { min, max, exclusiveMax }) {
  const conditions = [`${expression} >= ${min}`];
  if (max !== undefined) conditions.push(`${expression} <= ${max}`);
  if (exclusiveMax !== undefined) conditions.push(`${expression} < ${exclusiveMax}`);
  return conditions.join(' && ');
}

/** The functions that say whether a position and a ping are plausible. */
function plausibilityLines(fieldsInTypeOrder) {
  const boundedFields = fieldsInTypeOrder.filter(({ plausible }) => plausible !== undefined);
  const inPosition = boundedFields.filter(({ presence }) => presence === 'position');
  const boundedFieldsOf = (type) =>
    boundedFields.filter((field) => field.presence !== 'position' && carries(field, type));
  // Only a close-connection ping always has the same reason.
  const closeType = PING_TYPES.find(({ reason }) => reason !== undefined);
  const commonFields = boundedFieldsOf(closeType.type).filter((field) =>
    PING_TYPES.every(({ type }) => carries(field, type)),
  );
  const returnFalseLine = (field) => {
    const absentValue = { nullable: 'null', optional: 'undefined' }[field.presence];
    const isPresent = absentValue === undefined ? '' : `${memberExpression(field)} !== ${absentValue} && `;
    return `if (${isPresent}!(${rangeCondition(memberExpression(field), field.plausible)})) return false;`;
  };
  const positionConditions = inPosition.map((field) => rangeCondition(`position.${field.property}`, field.plausible));
  const otherFieldsOf = (type) => boundedFieldsOf(type).filter((field) => !commonFields.includes(field));
  return [
    '',
    '/** Whether the position is plausible: on the globe, with a plausible uncertainty. */',
    'export function isPlausiblePosition(position: Position): boolean {',
    `  return ${positionConditions.join(' && ')};`,
    '}',
    '',
    '/** Whether each value of the ping is in its plausible range. */',
    'export function isPlausiblePing(ping: Ping): boolean {',
    ...indented(commonFields.map(returnFalseLine)),
    ...(otherFieldsOf(closeType.type).length === 0
      ? [`  if (ping.kind === '${closeType.type}') return true;`]
      : [
          `  if (ping.kind === '${closeType.type}') {`,
          ...indented([...otherFieldsOf(closeType.type).map(returnFalseLine), 'return true;'], '    '),
          '  }',
        ]),
    '  if (ping.position !== null && !isPlausiblePosition(ping.position)) return false;',
    ...PING_TYPES.filter(({ type }) => type !== closeType.type && otherFieldsOf(type).length > 0).flatMap(
      ({ type }) => [
        `  if (ping.kind === '${type}') {`,
        ...indented(otherFieldsOf(type).map(returnFalseLine), '    '),
        '  }',
      ],
    ),
    '  return true;',
    '}',
  ];
}
