/**
 * Checks the types of TypeScript programs that tests write. Only tests of `npm run check` use it: the compiler is slow.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

/**
 * The compiler's errors for each program, given as its text. The build can't check such programs, because the types
 * that they use are written after the build.
 */
export function typeFaults(test: Teardown, texts: readonly string[]): string[][] {
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
