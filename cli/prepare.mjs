// What every npm script goes through, so that one command is enough in a fresh clone: it installs, builds, and runs.
// Plain JavaScript and no package, because it runs where there is no node_modules yet.
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { refuseOldNode } from './prepare/node-version.mjs';

refuseOldNode();
// Imported only now, so that an old Node.js gets the sentence above and not a complaint about our syntax.
const { hasTestPackages } = await import('./prepare/install.mjs');
const { makeReady } = await import('./prepare/ready.mjs');
const { at, endWith, Stop, say } = await import('./prepare/workplace.mjs');

const forTests = { packages: 'all', clients: true, sources: 'all' };
/** Each job: the file that it runs, the arguments put before those of the command line, and what it needs. */
const jobs = {
  start: { file: 'dist/program/main.js', args: ['demo'], needs: { last: 'Starting the demo' } },
  test: { file: 'test/run.mjs', args: [], needs: { ...forTests, last: 'Running the tests' } },
  'test:long': { file: 'test/run.mjs', args: ['--long'], needs: { ...forTests, last: 'Running the long tests' } },
  bench: { file: 'dist/test/bench/main.js', args: [], needs: { ...forTests, last: 'Running the bench' } },
  check: { file: 'cli/prepare/check.mjs', args: [], needs: { packages: 'all', sources: null, last: 'Checking' } },
  build: { file: null },
};

async function prepare([name = '', ...rest]) {
  const job = jobs[name];
  if (!job) throw new Stop(`There is no job "${name}"; the jobs are ${Object.keys(jobs).join(', ')}.`);
  if (job.file === null) return build();
  await makeReady(job.needs);
  if (!existsSync(at(job.file))) throw new Stop(`There is no ${job.file}, which ${name} runs.`);
  // In this very process: a signal such as Ctrl-C then reaches the job itself, and there is no middleman to forward it.
  process.argv = [process.execPath, at(job.file), ...job.args, ...rest];
  await import(pathToFileURL(at(job.file)).href);
}

/** Builds the product, and the tests too where somebody has run them before. */
async function build() {
  const withTests = hasTestPackages();
  await makeReady(withTests ? { packages: 'all', sources: 'all' } : {});
  say(`dist is up to date${withTests ? ', tests included' : ''}.`);
}

await endWith(() => prepare(process.argv.slice(2)));
