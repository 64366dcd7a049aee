// What every npm script goes through, so that one command is enough in a fresh clone: it installs, builds, and runs.
// Plain JavaScript and no package, because it runs where there is no node_modules yet.
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { refuseOldNode } from './prepare/node-version.mjs';

refuseOldNode();
// Imported only now, so that an old Node.js gets the sentence above and not a complaint about our syntax.
const { makeReady } = await import('./prepare/ready.mjs');
const { at, endWith, Stop, say } = await import('./prepare/workplace.mjs');

/** Each job, the file it runs, and the arguments put before those of the command line. */
const jobs = {
  start: { file: 'dist/cli/main.js', args: ['demo'] },
  test: { file: 'test/run.mjs', args: [] },
  'test:long': { file: 'test/run.mjs', args: ['--long'] },
  bench: { file: 'dist/test/bench/main.js', args: [] },
  check: { file: 'cli/prepare/check.mjs', args: [], compiled: false },
  build: { file: null, args: [] },
};

async function prepare([name = '', ...rest]) {
  const job = jobs[name];
  if (!job) throw new Stop(`There is no job "${name}"; the jobs are ${Object.keys(jobs).join(', ')}.`);
  await makeReady({ compiled: job.compiled });
  if (job.file === null) return say('The packages are installed and dist is up to date.');
  if (!existsSync(at(job.file))) throw new Stop(`There is no ${job.file}, which ${name} runs.`);
  // In this very process: a signal such as Ctrl-C then reaches the job itself, and there is no middleman to forward it.
  process.argv = [process.execPath, at(job.file), ...job.args, ...rest];
  await import(pathToFileURL(at(job.file)).href);
}

await endWith(() => prepare(process.argv.slice(2)));
