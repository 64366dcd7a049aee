// Writes the man pages to docs/man and the pages of the reference to docs/reference. They are committed, so that
// packages can install them without a build; `--check` only checks that they are up to date. The script runs the
// compiled code, so run a build first.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

const compiled = (path) => import(new URL(`../../dist/cli/${path}.js`, import.meta.url).href);
const { manPages } = await compiled('manual/man-pages');
const { referencePages } = await compiled('manual/reference/reference-pages');
const { makeProgram } = await compiled('program');
const isCheck = process.argv.includes('--check');

const program = await makeProgram('all');
renew('docs/man', manPages(program));
renew('docs/reference', referencePages(program));

/** Writes the files of a folder, or checks them. */
function renew(path, files) {
  const folder = new URL(`../../${path}/`, import.meta.url);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder).filter((each) => !files.has(each))) {
    if (isCheck) report(`${path}/${name} is not generated.`);
    else rmSync(new URL(name, folder));
  }
  for (const [name, text] of files) {
    if (!isCheck) writeFileSync(new URL(name, folder), text);
    else if (readOrEmpty(new URL(name, folder)) !== text) report(`${path}/${name} is not up to date.`);
  }
}

function readOrEmpty(file) {
  try {
    return readFileSync(file, 'utf8').replaceAll('\r\n', '\n');
  } catch {
    return '';
  }
}

function report(sentence) {
  console.error(`${sentence} Run npm run gen and commit the result.`);
  process.exitCode = 1;
}
