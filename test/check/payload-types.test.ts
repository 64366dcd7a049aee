/**
 * Checks that the TypeScript types published for merchants are the types in the code. Only `npm run check` runs it,
 * because it calls the compiler.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import ts from 'typescript';
import { root } from '../helpers/house/our-files.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

/** The compiler's errors for each text. The build can't check this, because the types are written after the build. */
function typeFaults(test: Teardown, texts: readonly string[]): string[][] {
  const folder = tempFolder(test);
  const files = texts.map((_, index) => join(folder, `${index}.ts`));
  for (const [index, file] of files.entries()) writeFileSync(file, texts[index] ?? '');
  const { NodeNext } = ts.ModuleKind;
  const options = { strict: true, exactOptionalPropertyTypes: true, noEmit: true, skipLibCheck: true, types: [] };
  const program = ts.createProgram(files, { ...options, target: ts.ScriptTarget.ES2023, module: NodeNext });
  return files.map((file) => {
    const found = program.getSemanticDiagnostics(program.getSourceFile(file));
    return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
  });
}

t.test('the types for merchants equal the types in the code, and ping_type determines the members', async (t) => {
  const [theirs, ours] = ['docs/webhook-payload.js', 'gateway/webhooks/payload/schema.js'].map((path) => {
    return JSON.stringify(join(root, path));
  });
  const same = `
    import type { WebhookPayload as Theirs } from ${theirs};
    import type { WebhookPayload as Ours } from ${ours};
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    type Flat<Body> = Body extends unknown ? { [Member in keyof Body]: Body[Member] } : never;
    export const isSame: Same<Flat<Theirs>, Flat<Ours>> = true;
    export const speedOf = (body: Theirs): number | null => (body.ping_type === 'gps' ? body.speed : null);`;
  const [found, foundOfOther] = typeFaults(t, [same, same.replace('Flat<Ours>>', 'Flat<Ours & { more: 1 }>>')]);
  t.same(found, []);
  t.match(foundOfOther, [/'true' is not assignable/], 'the test notices a difference');
});
