// `npm run check`: format, lint, types, import rules and generated files. The tests are separate. Every step runs, even
// after a failure, and prints its result as soon as it ends.
import { makeReady } from './ready.mjs';
import { pathInClone, printProgress, reportFailure, run, runTool, sourceFiles, UserError } from './workplace.mjs';

/** Options for running a program whose output is collected instead of printed. */
const captured = { stdio: ['ignore', 'pipe', 'pipe'] };

/** Each step's name, and a function that resolves to its findings as a text, empty if there are none. */
const steps = [
  ['format and lint', () => findings(runTool('biome', ['ci', '--colors=off'], captured))],
  ['types', types],
  ['types of pages', () => findings(runTool('tsc', ['-p', 'gateway/console/page/tsconfig.json'], captured))],
  ['boundaries', boundaries],
  ['compile', compile],
  ['house rules', () => findings(run(process.execPath, ['test/run.mjs', '--check'], captured))],
  ['generated code', () => findings(run(process.execPath, ['proto/generate.mjs', '--check'], captured))],
  ['documents', () => findings(run(process.execPath, ['proto/reference/generate.mjs', '--check'], captured))],
  ['man pages', () => findings(run(process.execPath, ['cli/manual/generate.mjs', '--check'], captured))],
  [
    'monitoring',
    () => findings(run(process.execPath, ['gateway/metrics/monitoring/generate.mjs', '--check'], captured)),
  ],
  ['new store', () => findings(run(process.execPath, ['gateway/store/sqlite/generate.mjs', '--check'], captured))],
  ['payload', () => findings(run(process.execPath, ['gateway/webhooks/payload/generate.mjs', '--check'], captured))],
  ['scenarios', () => findings(run(process.execPath, ['firmware-sim/scenario/generate.mjs', '--check'], captured))],
  ['schema', () => findings(runTool('buf', ['lint', 'proto'], captured))],
  ['nothing unused', () => findings(runTool('knip', ['--no-progress', '--no-config-hints'], captured))],
];

/** The output of a program that failed; empty if it succeeded. */
async function findings(running) {
  const { ok, how, stdout, stderr } = await running;
  return ok ? '' : `${stdout}${stderr}`.trim() || how;
}

/** tsc caches the results of the last check, so that only changes are checked. */
function types() {
  const cacheFile = pathInClone('.prepare', 'types.tsbuildinfo');
  return findings(runTool('tsc', ['-p', 'tsconfig.json', '--noEmit', '--tsBuildInfoFile', cacheFile], captured));
}

/** Compiles, because later steps run the output. */
async function compile() {
  try {
    await makeReady({ packages: 'all', sources: 'all' });
    return '';
  } catch (error) {
    if (error instanceof UserError) return error.message;
    throw error;
  }
}

/**
 * Checks imports with depcruise; also that it read every file, because it silently reads none if TypeScript is missing.
 */
async function boundaries() {
  const folders = [...new Set(sourceFiles('all').map((file) => file.split('/')[0]))];
  const args = ['--config', '.dependency-cruiser.cjs', '--output-type', 'json', ...folders];
  const { stdout, stderr, how } = await runTool('depcruise', args, captured);
  if (!stdout.startsWith('{')) return `${stderr}\ndepcruise ${how} without a result.`;
  const { modules, summary } = JSON.parse(stdout);
  const readFiles = new Set(modules.map((module) => module.source));
  const unreadFiles = sourceFiles('all').filter((file) => !readFiles.has(file));
  if (unreadFiles.length > 0) return `depcruise did not read ${unreadFiles.length} files, such as ${unreadFiles[0]}.`;
  const reasons = Object.fromEntries(summary.ruleSetUsed.forbidden.map((rule) => [rule.name, rule.comment]));
  const importText = ({ from, to }) => (from === to ? from : `${from} -> ${to}`);
  return summary.violations
    .map((found) => `${importText(found)}: ${found.rule.name}, ${reasons[found.rule.name]}`)
    .join('\n');
}

async function checkAll() {
  const failed = [];
  for (const [name, step] of steps) {
    const startedAt = performance.now();
    const text = await step();
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    printProgress(`${text === '' ? 'ok  ' : 'FAIL'} ${name.padEnd(16)} ${seconds.padStart(5)} s`);
    if (text === '') continue;
    printProgress(`${text.replace(/^/gm, '     ')}\n`);
    failed.push(name);
  }
  if (failed.length > 0) throw new UserError(`The check failed: ${failed.join(', ')}.`);
}

await reportFailure(checkAll);
