/**
 * The table of a webhook body's members in docs/webhooks.md, from the payload's definition (schema.ts). `npm run gen`
 * (generate.mjs) writes it. Pure.
 */
import { PAYLOAD_SCHEMAS } from './schema.js';

/** The keywords of a member's JSON Schema that the table shows. */
interface MemberSchema {
  readonly type?: string;
  readonly description?: string;
  readonly anyOf?: readonly MemberSchema[];
}

/** The table's row for one member, gathered from the bodies of all ping types. */
interface MemberRow {
  /** The ping types whose bodies may have the member. `isAlways`: every body of that ping type has it. */
  readonly bodies: { readonly pingType: string; readonly isAlways: boolean }[];
  readonly type: string;
  /** Without repetitions. The meaning may differ between ping types. */
  readonly meanings: Set<string>;
}

/** A member's type, or types. A schema without a type is a choice of constant texts. */
function typeText({ type, anyOf }: MemberSchema): string {
  const types = type === undefined ? (anyOf ?? []).map((each) => each.type ?? 'string') : [type];
  return [...new Set(types)].join(' or ') || 'string';
}

/** The ping types that carry a member; `some cellular` if only some cellular pings do. */
function bodiesText({ bodies }: MemberRow): string {
  if (bodies.length === PAYLOAD_SCHEMAS.length && bodies.every(({ isAlways }) => isAlways)) return 'all';
  if (bodies.length === PAYLOAD_SCHEMAS.length && !bodies.some(({ isAlways }) => isAlways)) return 'some';
  // The types that always have the member come first.
  const ordered = [...bodies].sort((a, b) => Number(b.isAlways) - Number(a.isAlways));
  return ordered.map(({ pingType, isAlways }) => (isAlways ? pingType : `some ${pingType}`)).join(', ');
}

/** The heading and the rows of the table, as the text of each cell. */
export function memberTable(): { head: string[]; rows: string[][] } {
  const rows = new Map<string, MemberRow>();
  // Typebox's schemas are JSON Schemas, which its types do not show in this form.
  for (const { properties, required } of PAYLOAD_SCHEMAS as unknown as {
    properties: Record<string, MemberSchema>;
    required: string[];
  }[]) {
    const pingType = (properties.ping_type as unknown as { const: string }).const;
    for (const [name, schema] of Object.entries(properties)) {
      const row = rows.get(name) ?? { bodies: [], type: typeText(schema), meanings: new Set<string>() };
      row.bodies.push({ pingType, isAlways: required.includes(name) });
      // The description in the close-connection ping, which has only one reason, says nothing about the member.
      if (schema.description !== 'Always this reason.') row.meanings.add(schema.description ?? '');
      rows.set(name, row);
    }
  }
  const cells = [...rows].map(([name, row]) => [`\`${name}\``, bodiesText(row), row.type, [...row.meanings].join(' ')]);
  return { head: ['member', 'in', 'type', 'meaning'], rows: cells };
}
