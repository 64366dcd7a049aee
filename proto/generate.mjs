// Generates proto/gen: the protobuf code from lock.proto, and the code that handles every field of a ping from the
// table in wire/ping-fields.ts. The output is committed, so that a build needs no code generator. `--check` proves that
// the committed files are up to date: it generates into a temporary folder and compares.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pingCodecText } from './generate/ping-codec.mjs';
import { pingContentText } from './generate/ping-content.mjs';
import { pingJsonText } from './generate/ping-json.mjs';
import { pingLineText } from './generate/ping-line.mjs';
import { pingLineWriterText } from './generate/ping-line-writer.mjs';
import { loadFields } from './generate/ping-table.mjs';
import { pingTypesText } from './generate/ping-types.mjs';

const protoFolder = fileURLToPath(new URL('.', import.meta.url));
/** The command of protobufjs that makes code from a schema. */
const pbjs = fileURLToPath(new URL('../node_modules/.bin/pbjs', import.meta.url));
const notice =
  '// Generated from lock.proto by `npm run gen`. Change the schema and run it again instead of editing this.\n';

const flags = [
  ...['--target', 'static-module', '--wrap', 'esm'],
  // The schema's own comments become the types' doc comments.
  '--alt-comment',
  // Only encode and decode are used: codec.ts validates messages itself, with its own error messages.
  ...['--no-verify', '--no-convert', '--no-delimited', '--no-service', '--no-typeurl'],
  // A 64-bit number is always a Long: a number would lose digits, and a BigInt would silently be written as 0.
  '--force-long',
  // No comments that turn off ESLint, which this project doesn't use.
  ...['--lint', ''],
];

/** The files that are generated from the table of ping fields, and the function that makes the text of each. */
const pingFiles = {
  'ping-types.ts': pingTypesText,
  'ping-codec.ts': pingCodecText,
  'ping-json.ts': pingJsonText,
  'ping-line.ts': pingLineText,
  'ping-line-writer.ts': pingLineWriterText,
  'ping-content.ts': pingContentText,
};

/** Writes all generated files into a folder. */
async function generate(folder) {
  generateProtobuf(folder);
  const table = await loadFields();
  for (const [name, textOf] of Object.entries(pingFiles)) writeFileSync(join(folder, name), textOf(table));
}

/** Writes lock.js and lock.d.ts into a folder. */
function generateProtobuf(folder) {
  const script = join(folder, 'lock.js');
  // Run in the schema's folder, so that no absolute path of this machine gets into the output.
  execFileSync(process.execPath, [pbjs, ...flags, '--dts', '--out', script, 'lock.proto'], { cwd: protoFolder });
  rewrite(script, (text) => notice + text);
  // `import = require` gives the type of Long's CommonJS build, which is not the Long that our ES modules import.
  const asModule = (text) => text.replace(/^import Long = require\("long"\);$/m, 'import type Long from "long";');
  rewrite(join(folder, 'lock.d.ts'), (text) => notice + asModule(text));
}

/** Changes a file's text, with LF line ends on every system. */
function rewrite(path, change) {
  writeFileSync(path, change(readFileSync(path, 'utf8').replaceAll('\r\n', '\n')));
}

/** An error message that shows the first line that differs; null if the committed file is up to date. */
function difference(name, committed, fresh) {
  if (committed === fresh) return null;
  const [committedLines, freshLines] = [committed.split('\n'), fresh.split('\n')];
  const index = freshLines.findIndex((line, i) => line !== committedLines[i]);
  // If no line differs, the committed file has more lines.
  const line = index === -1 ? freshLines.length : index;
  const shown = (text) => (text === undefined ? 'nothing' : JSON.stringify(text.trim()));
  return `proto/gen/${name} is out of date: line ${line + 1} is ${shown(committedLines[line])} and should be \
${shown(freshLines[line])}. Run npm run gen and commit the result.`;
}

/** A file's text; empty if there is no such file. */
function readOrEmpty(path) {
  return existsSync(path) ? readFileSync(path, 'utf8').replaceAll('\r\n', '\n') : '';
}

/** Compares the committed files with files generated into a temporary folder, and reports the differences. */
async function check() {
  const folder = mkdtempSync(join(tmpdir(), 'lockgate-gen-'));
  try {
    await generate(folder);
    for (const name of ['lock.js', 'lock.d.ts', ...Object.keys(pingFiles)]) {
      const fresh = readFileSync(join(folder, name), 'utf8');
      const finding = difference(name, readOrEmpty(join(protoFolder, 'gen', name)), fresh);
      if (finding === null) continue;
      console.error(finding);
      process.exitCode = 1;
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

await (process.argv.includes('--check') ? check() : generate(join(protoFolder, 'gen')));
