// Writes proto/gen from proto/lock.proto. What it writes is committed, so that a build needs no code generator, and
// `--check` proves that it is what the schema gives: it generates aside and compares.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const pbjs = fileURLToPath(new URL('../node_modules/.bin/pbjs', import.meta.url));
const notice =
  '// Generated from lock.proto by `npm run gen`. Change the schema and run it again instead of editing this.\n';

const flags = [
  ...['--target', 'static-module', '--wrap', 'esm'],
  // The schema's own comments become the types' doc comments.
  '--alt-comment',
  // Only encode and decode are used; what a stranger sends is judged by codec.ts, in its own words.
  ...['--no-verify', '--no-convert', '--no-delimited', '--no-service', '--no-typeurl'],
  // A 64-bit number is always a Long: a number would lose digits, and a BigInt would silently be written as 0.
  '--force-long',
  // No switches for a linter that this project doesn't use.
  ...['--lint', ''],
];

/** Writes lock.js and lock.d.ts into a folder. */
function generate(folder) {
  const script = join(folder, 'lock.js');
  // From its own folder, so that no path of this machine can get into the output.
  execFileSync(process.execPath, [pbjs, ...flags, '--dts', '--out', script, 'lock.proto'], { cwd: here });
  rewrite(script, (text) => notice + text);
  // `import = require` gives the type of Long's CommonJS build, which is not the Long that our ES modules import.
  const asModule = (text) => text.replace(/^import Long = require\("long"\);$/m, 'import type Long from "long";');
  rewrite(join(folder, 'lock.d.ts'), (text) => notice + asModule(text));
}

function rewrite(path, change) {
  writeFileSync(path, change(readFileSync(path, 'utf8').replaceAll('\r\n', '\n')));
}

/** The first line in which two texts differ, as a sentence, or null when they are the same. */
function difference(name, committed, fresh) {
  if (committed === fresh) return null;
  const [old, now] = [committed.split('\n'), fresh.split('\n')];
  const index = now.findIndex((line, i) => line !== old[i]);
  const line = index === -1 ? now.length : index;
  const shown = (text) => (text === undefined ? 'nothing' : JSON.stringify(text.trim()));
  return `proto/gen/${name} is not what lock.proto generates: line ${line + 1} is ${shown(old[line])} and should be \
${shown(now[line])}. Run npm run gen and commit the result.`;
}

function check() {
  const folder = mkdtempSync(join(tmpdir(), 'lockgate-gen-'));
  try {
    generate(folder);
    for (const name of ['lock.js', 'lock.d.ts']) {
      const fresh = readFileSync(join(folder, name), 'utf8');
      const finding = difference(name, readFileSync(join(here, 'gen', name), 'utf8'), fresh);
      if (finding === null) continue;
      console.error(finding);
      process.exitCode = 1;
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (process.argv.includes('--check')) check();
else generate(join(here, 'gen'));
