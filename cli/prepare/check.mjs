// `npm run check`: what a machine can hold us to, beyond the tests. Every step runs, so one call shows all that's red.
import { makeReady } from './ready.mjs';
import { at, endWith, run, runTool, Stop, say, sourceFiles } from './workplace.mjs';

const captured = { stdio: ['ignore', 'pipe', 'pipe'] };

/** Each step's name, and what gives its findings: a text, empty when all is well. */
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

/** What a check before has found right is remembered by the compiler, so only what changed is checked again. */
function types() {
  const remembered = at('.prepare', 'types.tsbuildinfo');
  return findings(runTool('tsc', ['-p', 'tsconfig.json', '--noEmit', '--tsBuildInfoFile', remembered], captured));
}

/** Some steps after it run what was compiled. */
async function compile() {
  try {
    await makeReady({ packages: 'all', sources: 'all' });
    return '';
  } catch (error) {
    if (error instanceof Stop) return error.message;
    throw error;
  }
}

/** Holds the imports to the rules, and the cruiser to its job: with a wrong TypeScript it sees nothing and is happy. */
async function boundaries() {
  const folders = [...new Set(sourceFiles('all').map((file) => file.split('/')[0]))];
  const args = ['--config', '.dependency-cruiser.cjs', '--output-type', 'json', ...folders];
  const { stdout, stderr, how } = await runTool('depcruise', args, captured);
  if (!stdout.startsWith('{')) return `${stderr}\ndepcruise ${how} without a result.`;
  const { modules, summary } = JSON.parse(stdout);
  const seen = new Set(modules.map((module) => module.source));
  const unseen = sourceFiles('all').filter((file) => !seen.has(file));
  if (unseen.length > 0) return `${unseen.length} files were not looked at, the first of them ${unseen[0]}.`;
  const why = Object.fromEntries(summary.ruleSetUsed.forbidden.map((rule) => [rule.name, rule.comment]));
  const way = ({ from, to }) => (from === to ? from : `${from} -> ${to}`);
  return summary.violations.map((found) => `${way(found)}: ${found.rule.name}, ${why[found.rule.name]}`).join('\n');
}

async function checkAll() {
  const red = [];
  for (const [name, step] of steps) {
    const from = performance.now();
    const found = await step();
    const seconds = ((performance.now() - from) / 1000).toFixed(1);
    say(`${found === '' ? 'ok  ' : 'FAIL'} ${name.padEnd(16)} ${seconds.padStart(5)} s`);
    if (found === '') continue;
    say(`${found.replace(/^/gm, '     ')}\n`);
    red.push(name);
  }
  if (red.length > 0) throw new Stop(`The check is red: ${red.join(', ')}.`);
}

await endWith(checkAll);
