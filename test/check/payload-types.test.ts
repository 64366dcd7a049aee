/**
 * The TypeScript types that merchants get are those of the code. It runs with `npm run check`, since it calls the
 * compiler.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import ts from 'typescript';
import { root } from '../helpers/house/our-files.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

/** What the compiler reports about each text. The build can't do this: it must pass before the types can be written. */
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

t.test('merchants’ TypeScript types are those of the code, and say by ping_type what is there', async (t) => {
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
  t.match(foundOfOther, [/'true' is not assignable/], 'and this can fail');
});
