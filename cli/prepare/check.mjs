// `npm run check`: static checks beyond the tests. Every step runs even if one before it failed.
import { makeReady } from './ready.mjs';
import { at, endWith, run, runTool, Stop, say, sourceFiles } from './workplace.mjs';

const captured = { stdio: ['ignore', 'pipe', 'pipe'] };

/** Each step's name, and the function that returns its findings as a text; empty if there are none. */
const steps = [
  ['format and lint', () => findings(runTool('biome', ['ci', '--colors=off'], captured))],
  ['types', types],
  ['boundaries', boundaries],
  ['compile', compile],
  ['house rules', () => findings(run(process.execPath, ['test/run.mjs', '--check'], captured))],
  ['generated code', () => findings(run(process.execPath, ['proto/generate.mjs', '--check'], captured))],
  ['payload', () => findings(run(process.execPath, ['gateway/webhooks/payload/generate.mjs', '--check'], captured))],
  ['schema', () => findings(runTool('buf', ['lint', 'proto'], captured))],
  ['nothing unused', () => findings(runTool('knip', ['--no-progress', '--no-config-hints'], captured))],
];

async function findings(running) {
  const { ok, how, stdout, stderr } = await running;
  return ok ? '' : `${stdout}${stderr}`.trim() || how;
}

/** tsc caches the results of the last check, so that only changes are checked. */
function types() {
  const cacheFile = at('.prepare', 'types.tsbuildinfo');
  return findings(runTool('tsc', ['-p', 'tsconfig.json', '--noEmit', '--tsBuildInfoFile', cacheFile], captured));
}

/** Compiles, because later steps run the output. */
async function compile() {
  try {
    await makeReady({ packages: 'all', sources: 'all' });
    return '';
  } catch (error) {
    if (error instanceof Stop) return error.message;
    throw error;
  }
}

/** Checks imports against the rules; also that depcruise read all files, as it reads none with a wrong TypeScript. */
async function boundaries() {
  const folders = [...new Set(sourceFiles('all').map((file) => file.split('/')[0]))];
  const args = ['--config', '.dependency-cruiser.cjs', '--output-type', 'json', ...folders];
  const { stdout, stderr, how } = await runTool('depcruise', args, captured);
  if (!stdout.startsWith('{')) return `${stderr}\ndepcruise ${how} without a result.`;
  const { modules, summary } = JSON.parse(stdout);
  const seen = new Set(modules.map((module) => module.source));
  const unseen = sourceFiles('all').filter((file) => !seen.has(file));
  if (unseen.length > 0) return `depcruise did not read ${unseen.length} files, such as ${unseen[0]}.`;
  const reasons = Object.fromEntries(summary.ruleSetUsed.forbidden.map((rule) => [rule.name, rule.comment]));
  const importText = ({ from, to }) => (from === to ? from : `${from} -> ${to}`);
  return summary.violations
    .map((found) => `${importText(found)}: ${found.rule.name}, ${reasons[found.rule.name]}`)
    .join('\n');
}

async function checkAll() {
  const failed = [];
  for (const [name, step] of steps) {
    const from = performance.now();
    const found = await step();
    const seconds = ((performance.now() - from) / 1000).toFixed(1);
    say(`${found === '' ? 'ok  ' : 'FAIL'} ${name.padEnd(16)} ${seconds.padStart(5)} s`);
    if (found === '') continue;
    say(`${found.replace(/^/gm, '     ')}\n`);
    failed.push(name);
  }
  if (failed.length > 0) throw new Stop(`The check failed: ${failed.join(', ')}.`);
}

await endWith(checkAll);
