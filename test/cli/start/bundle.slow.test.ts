/**
 * A gateway runs from a bundle whose compiled code is stored next to it (cli/main.ts, cli/load-bundle.cjs). Unusable
 * code is replaced; other commands, and a gateway without a bundle, run from modules.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { LOCKGATE, type Program, runProgram } from '../../helpers/cli/program.js';
import { root } from '../../helpers/house/our-files.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const folder = tempFolder(t);
/** A script for `node --require`: prints the name of each script compiled with `vm.Script`, which loads a bundle. */
const PRELOAD = path.join(folder, 'preload.cjs');
/** The start of the lines that the script prints. */
const COMPILED = 'compiled ';
writeFileSync(
  PRELOAD,
  `const vm = require('node:vm');
   vm.Script = class extends vm.Script {
     constructor(text, options) {
       super(text, options);
       console.error('${COMPILED}' + options.filename);
     }
   };`,
);
const WRONG_PORT = /--mqtt-port is "many": expected a port/;

/** Runs a program of Node.js to its end. */
function runNode(main: string, args: readonly string[], nodeOptions = ''): Promise<Program> {
  const environment = { NODE_OPTIONS: `--require ${PRELOAD} ${nodeOptions}` };
  return runProgram(t, process.execPath, [main, ...args], environment);
}

/** The names of the bundles that a program loaded. */
function bundlesOf({ stderr }: Program): string[] {
  return stderr.filter((line) => line.startsWith(COMPILED)).map((line) => path.basename(line));
}

t.test('a gateway runs from the bundle, and other commands from modules', async (t) => {
  const [serve, demo, add, mapped] = await Promise.all([
    runNode(LOCKGATE, ['serve', '--mqtt-port', 'many']),
    runNode(LOCKGATE, ['demo', '--locks', 'many']),
    runNode(LOCKGATE, ['device', 'add', 'A4:C1']),
    // Node.js maps positions in modules only, so with source maps a gateway does not use the bundle.
    runNode(LOCKGATE, ['serve', '--mqtt-port', 'many'], '--enable-source-maps'),
  ]);
  t.same([serve, demo, add, mapped].map(bundlesOf), [['lockgate.cjs'], ['lockgate.cjs'], [], []]);
  t.same(
    [serve, demo, add, mapped].map(({ exit }) => exit?.code),
    [2, 2, 2, 2],
  );
  for (const { stderr } of [serve, mapped]) t.match(stderr.at(-1), WRONG_PORT);
});

t.test('a gateway without a bundle runs from modules', async (t) => {
  const copy = path.join(folder, 'copy');
  mkdirSync(path.join(copy, 'cli'), { recursive: true });
  cpSync(path.join(root, 'dist/program'), path.join(copy, 'dist/program'), {
    recursive: true,
    filter: (source) => !/\.(cjs|map|code)$/.test(source),
  });
  cpSync(path.join(root, 'cli/load-bundle.cjs'), path.join(copy, 'cli/load-bundle.cjs'));
  cpSync(path.join(root, 'package.json'), path.join(copy, 'package.json'));
  for (const name of ['node_modules', 'dist/packages']) symlinkSync(path.join(root, name), path.join(copy, name));
  const serve = await runNode(path.join(copy, 'dist/program/main.js'), ['serve', '--mqtt-port', 'many']);
  t.same(bundlesOf(serve), []);
  t.match(serve.stderr.at(-1), WRONG_PORT);
});

t.test('compiled code is stored, used, replaced if it is unusable, and not required', async (t) => {
  const bundle = path.join(folder, 'bundle.cjs');
  const codeFile = `${bundle}.code`;
  writeFileSync(bundle, 'exports.answer = () => 42;');
  const main = path.join(folder, 'main.cjs');
  writeFileSync(
    main,
    `const vm = require('node:vm');
     let rejected;
     vm.Script = class extends vm.Script {
       constructor(text, options) {
         super(text, options);
         rejected = this.cachedDataRejected;
       }
     };
     const { loadBundle } = require(${JSON.stringify(path.join(root, 'cli/load-bundle.cjs'))});
     const [keepsCode, codeFile] = process.argv.slice(2);
     const { answer } = loadBundle(${JSON.stringify(bundle)}, { keepsCode, codeFile });
     console.log(answer(), String(rejected));`,
  );
  /**
   * Runs the bundle. The result has its answer, and whether V8 rejected the stored code (undefined without any).
   * `keepsCode` says when the process stores code: once it has run for a while, as it exits, or never.
   */
  const run = async (keepsCode: string, file = codeFile, ...flags: string[]): Promise<string> => {
    const program = await runProgram(t, process.execPath, [...flags, main, keepsCode, file]);
    return [...program.stdout, ...program.stderr].join('\n');
  };
  t.equal(await run('once-started'), '42 undefined', 'a process that ends at once stores nothing');
  t.notOk(existsSync(codeFile));
  t.equal(await run('at-exit'), '42 undefined');
  const code = readFileSync(codeFile);
  t.equal(await run('at-exit'), '42 false', 'the stored code is used');
  t.equal(await run('never', codeFile, '--max-lazy'), '42 true', 'code of other flags is not used');
  writeFileSync(codeFile, code.subarray(0, 20));
  t.equal(await run('never'), '42 true', 'a damaged file is not used');
  t.equal(await run('at-exit'), '42 true');
  t.equal(await run('at-exit'), '42 false', 'and was replaced');
  rmSync(codeFile);
  t.equal(await run('at-exit', path.join(folder, 'missing/code')), '42 undefined', 'a missing folder is no error');
});
