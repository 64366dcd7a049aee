// Every npm script runs this file, so that one command is enough in a fresh clone: it installs, builds, and runs the
// job. Plain JavaScript without packages, because it runs before node_modules exists.
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { refuseOldNode } from './prepare/node-version.mjs';

refuseOldNode();
// Imported after the check, so that an old Node.js prints its sentence instead of a syntax error.
const { hasTestPackages } = await import('./prepare/install.mjs');
const { makeReady } = await import('./prepare/ready.mjs');
const { pathInClone, reportFailure, UserError, printProgress } = await import('./prepare/workplace.mjs');

const forTests = { packages: 'all', clients: true, sources: 'all' };
/**
 * Each job: the file that it runs, arguments in front of those of the command line, and the options of `makeReady`,
 * which installs and compiles what the job needs; null builds as `npm run build` does. `last` is the text of the last
 * progress line.
 */
const jobs = {
  start: { file: 'dist/program/main.js', args: ['demo'], needs: { last: 'Starting the demo' } },
  test: { file: 'test/run.mjs', args: [], needs: { ...forTests, last: 'Running the tests' } },
  'test:slow': { file: 'test/run.mjs', args: ['--slow'], needs: { ...forTests, last: 'Running the slow tests' } },
  'test:long': { file: 'test/run.mjs', args: ['--long'], needs: { ...forTests, last: 'Running the long tests' } },
  'test:chaos': { file: 'dist/test/chaos/main.js', args: [], needs: { ...forTests, last: 'Running the chaos' } },
  'test:nodes': { file: 'test/node-matrix.mjs', args: [], needs: { ...forTests, last: 'Running the tests' } },
  bench: { file: 'dist/test/bench/main.js', args: [], needs: { ...forTests, last: 'Running the bench' } },
  pictures: { file: 'dist/test/pictures/main.js', args: [], needs: { ...forTests, last: 'Making the pictures' } },
  release: { file: 'cli/prepare/release/release.mjs', args: [], needs: null },
  check: { file: 'cli/prepare/check.mjs', args: [], needs: { packages: 'all', sources: null, last: 'Checking' } },
  build: { file: null, needs: null },
};

async function runJob([name = '', ...jobArguments]) {
  const job = jobs[name];
  if (!job) throw new UserError(`There is no job "${name}"; the jobs are ${Object.keys(jobs).join(', ')}.`);
  if (job.needs === null) await build();
  else await makeReady(job.needs);
  if (job.file === null) return;
  if (!existsSync(pathInClone(job.file))) throw new UserError(`There is no ${job.file}, which ${name} runs.`);
  // Runs in this process, so that a signal such as Ctrl-C reaches the job directly.
  process.argv = [process.execPath, pathInClone(job.file), ...job.args, ...jobArguments];
  await import(pathToFileURL(pathInClone(job.file)).href);
}

/** Builds the product; also the tests, if their packages are installed. */
async function build() {
  const withTests = hasTestPackages();
  await makeReady(withTests ? { packages: 'all', sources: 'all' } : {});
  printProgress(`dist is up to date${withTests ? ', including tests' : ''}.`);
}

await reportFailure(() => runJob(process.argv.slice(2)));
