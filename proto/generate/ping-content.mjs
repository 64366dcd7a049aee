// Makes the text of gen/ping-content.ts: the fingerprint of a ping's content, and whether its values are plausible.
import {
  carries,
  declareWords,
  fileText,
  indented,
  isInOptionalPosition,
  PING_TYPES,
  place,
  wordsName,
  wordTypes,
} from './ping-table.mjs';

export function pingContentText({ fields, typeFields }) {
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
      '/** Mixes all fields of a ping into the digest. A field that may be missing also adds whether it is present. */',
      'export function mixPing(ping: Ping): void {',
      '  switch (ping.kind) {',
      ...PING_TYPES.flatMap(({ type }, index) => [
        `    case '${type}':`,
        `      mix(${index});`,
        ...indented(mixLines(type, typeFields), '      '),
        '      break;',
      ]),
      '  }',
      '}',
      ...plausibility(typeFields),
    ],
  );
}

function mixCall(field) {
  const { value } = field;
  const ours = place(field);
  if (value.kind === 'reason') return `mix(reasonNumber(${ours}) ?? 0);`;
  if (value.kind === 'word') return `mix(${wordsName(field)}.indexOf(${ours}));`;
  if (value.kind === 'text') return `mixText(${ours});`;
  return value.kind === 'count' ? `mix(${ours});` : `mixNumber(${ours});`;
}

const mixIfThere = (isThere, calls) => [`if (${isThere}) {`, '  mix(1);', ...indented(calls), '} else mix(0);'];

function mixLines(type, typeFields) {
  const lines = [];
  const carried = typeFields.filter((field) => carries(field, type));
  const inPosition = carried.filter((field) => isInOptionalPosition(field, type));
  for (const field of carried) {
    if (field.presence === 'nullable') lines.push(...mixIfThere(`${place(field)} !== null`, [mixCall(field)]));
    else if (field.presence === 'optional')
      lines.push(...mixIfThere(`${place(field)} !== undefined`, [mixCall(field)]));
    else if (!isInOptionalPosition(field, type)) lines.push(mixCall(field));
    else if (field === inPosition[0]) lines.push(...mixIfThere('ping.position !== null', inPosition.map(mixCall)));
  }
  return lines;
}

/** The comparison is false for NaN. */
function inRange(ours, { min, max, exclusiveMax }) {
  const parts = [`${ours} >= ${min}`];
  if (max !== undefined) parts.push(`${ours} <= ${max}`);
  if (exclusiveMax !== undefined) parts.push(`${ours} < ${exclusiveMax}`);
  return parts.join(' && ');
}

function plausibility(typeFields) {
  const ranged = typeFields.filter(({ plausible }) => plausible !== undefined);
  const inPosition = ranged.filter(({ presence }) => presence === 'position');
  const inPing = (type) => ranged.filter((field) => field.presence !== 'position' && carries(field, type));
  const close = PING_TYPES.find(({ reason }) => reason !== undefined);
  const common = inPing(close.type).filter((field) => PING_TYPES.every(({ type }) => carries(field, type)));
  const fails = (field) => {
    const absent = { nullable: 'null', optional: 'undefined' }[field.presence];
    const isThere = absent === undefined ? '' : `${place(field)} !== ${absent} && `;
    return `if (${isThere}!(${inRange(place(field), field.plausible)})) return false;`;
  };
  const rest = (type) => inPing(type).filter((field) => !common.includes(field));
  return [
    '',
    '/** Whether the position is plausible: on the globe, with a plausible uncertainty. */',
    'export function isPlausiblePosition(position: Position): boolean {',
    `  return ${inPosition.map((field) => inRange(`position.${field.property}`, field.plausible)).join(' && ')};`,
    '}',
    '',
    '/** Whether each value of the ping is in its plausible range. */',
    'export function isPlausiblePing(ping: Ping): boolean {',
    ...indented(common.map(fails)),
    `  if (ping.kind === '${close.type}') return true;`,
    '  if (ping.position !== null && !isPlausiblePosition(ping.position)) return false;',
    ...PING_TYPES.filter(({ type }) => type !== close.type && rest(type).length > 0).flatMap(({ type }) => [
      `  if (ping.kind === '${type}') {`,
      ...indented(rest(type).map(fails), '    '),
      '  }',
    ]),
    '  return true;',
    '}',
  ];
}
