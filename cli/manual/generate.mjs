// Writes the man pages to docs/man. They are committed, so that packages can install them without a build; `--check`
// only checks that they are up to date. The script runs the compiled code, so run a build first.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

const folder = new URL('../../docs/man/', import.meta.url);
const compiled = (path) => import(new URL(`../../dist/cli/${path}.js`, import.meta.url).href);
const { manPages } = await compiled('manual/man-pages');
const { makeProgram } = await compiled('program');
const isCheck = process.argv.includes('--check');

const pages = manPages(await makeProgram('all'));
mkdirSync(folder, { recursive: true });
for (const name of readdirSync(folder).filter((each) => !pages.has(each))) {
  if (isCheck) report(`docs/man/${name} has no command.`);
  else rmSync(new URL(name, folder));
}
for (const [name, text] of pages) {
  if (!isCheck) writeFileSync(new URL(name, folder), text);
  else if (readOrEmpty(name) !== text) report(`docs/man/${name} is not up to date.`);
}

function readOrEmpty(name) {
  try {
    return readFileSync(new URL(name, folder), 'utf8').replaceAll('\r\n', '\n');
  } catch {
    return '';
  }
}

function report(sentence) {
  console.error(`${sentence} Run npm run gen and commit the result.`);
  process.exitCode = 1;
}
