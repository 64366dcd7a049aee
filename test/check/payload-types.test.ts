/**
 * Checks that the TypeScript types published for merchants (docs/webhook-payload.d.ts) are the types in the code. Only
 * `npm run check` runs it, because it calls the compiler.
 */
import { join } from 'node:path';
import t from 'tap';
import { root } from '../helpers/house/our-files.js';
import { typeFaults } from '../helpers/house/type-faults.js';

t.test('the types for merchants equal the types in the code, and ping_type determines the members', async (t) => {
  const [publishedTypes, codeTypes] = ['docs/webhook-payload.js', 'gateway/webhooks/payload/schema.js'].map((path) => {
    return JSON.stringify(join(root, path));
  });
  // Two types are the same if a conditional type can't tell them apart; `Flat` writes out intersections first.
  const comparison = `
    import type { WebhookPayload as Theirs } from ${publishedTypes};
    import type { WebhookPayload as Ours } from ${codeTypes};
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    type Flat<Body> = Body extends unknown ? { [Member in keyof Body]: Body[Member] } : never;
    export const isSame: Same<Flat<Theirs>, Flat<Ours>> = true;
    export const speedOf = (body: Theirs): number | null => (body.ping_type === 'gps' ? body.speed : null);`;
  const [errors, errorsOfOther] = typeFaults(t, [
    comparison,
    comparison.replace('Flat<Ours>>', 'Flat<Ours & { more: 1 }>>'),
  ]);
  t.same(errors, []);
  t.match(errorsOfOther, [/'true' is not assignable/], 'the test notices a difference');
});
