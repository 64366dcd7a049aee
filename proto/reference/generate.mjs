// Writes docs/trace.schema.json and the generated tables of documents in docs/ (reference.ts lists them). They are
// committed, so that readers find them without a build; `--check` only checks that they are up to date. The script runs
// the compiled code, so run a build first.
import { readFileSync, writeFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url);
const compiled = (name) => import(new URL(`dist/proto/reference/${name}.js`, root).href);
const { documentParts, generatedFiles } = await compiled('reference');
const { withGeneratedParts } = await compiled('generated-parts');

const read = (path) => readFileSync(new URL(path, root), 'utf8').replaceAll('\r\n', '\n');

for (const [path, parts] of Object.entries(documentParts(read('proto/lock.proto'))))
  renew(path, withGeneratedParts(read(path), parts));
for (const [path, text] of Object.entries(generatedFiles())) renew(path, text);

function renew(path, text) {
  const file = new URL(path, root);
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readOr(file, '') !== text) {
    console.error(`${path} is not up to date. Run npm run gen and commit the result.`);
    process.exitCode = 1;
  }
}

function readOr(file, missing) {
  try {
    return readFileSync(file, 'utf8').replaceAll('\r\n', '\n');
  } catch {
    return missing;
  }
}
