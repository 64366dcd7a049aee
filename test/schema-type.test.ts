// Our Type (gateway/schema-type.ts) against TypeBox's own: the same schemas, and the same notes beside them.
import t from 'tap';
import { Type as TypeBox } from 'typebox';
import { Type } from '../gateway/schema-type.js';

/** Everything that can be told of a schema: what JSON shows of it, and the notes that it doesn't show. */
function told(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(told);
  const members = Object.entries(Object.getOwnPropertyDescriptors(value));
  const all = members.map(([name, { value, enumerable }]) => ({ name, enumerable, value: told(value) }));
  // The order of the members shows in a document; that of the notes nowhere.
  return [...all.filter(({ enumerable }) => enumerable), ...all.filter(({ enumerable }) => !enumerable)];
}

/** Schemas as our interfaces write them, by one or the other. */
function samples(T: Pick<typeof TypeBox, keyof typeof Type>) {
  const text = T.String({ minLength: 1, description: 'A text.' });
  const inner = T.Object({ a: T.Optional(text), b: text });
  return {
    plain: [T.Boolean(), T.Integer({ minimum: 0 }), T.Null(), T.Number({ maximum: 9.5 }), T.String()],
    lists: [T.Array(text, { maxItems: 3 }), T.Array(T.Array(T.Number()))],
    words: [T.Enum(['on', 'off'], { description: 'Either.' }), T.Unsafe<'on'>({ type: 'string', enum: ['on'] })],
    literals: [T.Literal('cellular'), T.Literal(7, { description: 'Seven.' }), T.Literal(true)],
    object: T.Object({ inner, more: T.Optional(inner), list: T.Array(inner) }, { additionalProperties: false }),
    nothingWanted: T.Object({ a: T.Optional(T.Optional(text)) }),
    empty: T.Object({}, { additionalProperties: true, description: 'Anything.' }),
    record: T.Record(T.String(), T.Integer(), { description: 'By name.' }),
    union: T.Optional(T.Union([inner, T.Null()], { description: 'Or nothing.' })),
    optionalUnsafe: T.Optional(T.Unsafe<'on'>({ type: 'string', enum: ['on'] })),
    // What is made optional is a copy: the text above is still wanted where it stands alone.
    text,
  };
}

t.test('it writes what TypeBox writes', async (t) => {
  const [ours, theirs] = [samples(Type), samples(TypeBox)];
  for (const name of Object.keys(theirs) as (keyof typeof theirs)[]) t.same(told(ours[name]), told(theirs[name]), name);
  t.not(
    JSON.stringify(told(ours.text)),
    JSON.stringify(told(TypeBox.String())),
    'and the comparison sees a difference',
  );
});
