// Runs npm to its end and shows progress. npm's output goes to a log file; a failure quotes the end of that file.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathInClone, printProgress, readOrNull, UserError } from './workplace.mjs';

/** The output of the last run of npm. */
const logFile = pathInClone('.prepare', 'install.log');
/** A failure quotes this many lines of npm's output. */
const quotedLines = 25;
/** How often progress is printed in a pipe, and redrawn on a terminal. */
const printEveryMs = 15_000;
const redrawEveryMs = 200;
// --loglevel: an outer `npm --silent` would silence this npm too, and the log would not explain a failure.
const flags = ['--no-audit', '--no-fund', '--foreground-scripts', '--loglevel=notice'];

/**
 * Runs `npm ...args` in a folder of the clone. Throws a UserError with the end of npm's output if it fails. `packages`
 * are the folders that npm will create; progress counts those that exist. When all exist, progress shows the text
 * `last`.
 */
export async function runNpm(args, { folder = pathInClone(), packages = [], last = 'finishing' } = {}) {
  mkdirSync(pathInClone('.prepare'), { recursive: true });
  const log = openSync(logFile, 'w');
  const stopProgress = showProgress(packages, last);
  const [command, ...npmArguments] = npmCommand();
  const how = await new Promise((resolve) => {
    const child = spawn(command, [...npmArguments, ...args, ...flags], {
      cwd: folder,
      env: npmEnvironment(),
      stdio: ['ignore', log, log],
      // On Windows `npm` is a script, which needs a shell; a path with spaces must not go through one.
      shell: process.platform === 'win32' && command === 'npm',
    });
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(code === 0 ? null : (signal ?? `status ${code}`)));
  });
  stopProgress();
  closeSync(log);
  if (how !== null) throw new UserError(failure(args[0], how));
}

/** The npm that started this process, which it names in the environment; otherwise the npm on the path. */
export function npmCommand() {
  const running = process.env.npm_execpath;
  return running && basename(running) === 'npm-cli.js' ? [process.execPath, running] : ['npm'];
}

/**
 * npm's environment, for the case that node-gyp compiles the SQLite driver: with all cores, and with the headers of the
 * installed Node.js. node-gyp would otherwise download headers, which a closed network refuses. A user's own settings
 * win, and headers of a different version of Node.js are not used.
 */
export function npmEnvironment() {
  const { execPath, version } = process;
  const env = { JOBS: 'max', ...process.env };
  if (Object.keys(env).some((name) => name.toLowerCase() === 'npm_config_nodedir')) return env;
  const root = dirname(dirname(execPath));
  const headers = readOrNull(join(root, 'include', 'node', 'node_version.h')) ?? '';
  const numberOf = (part) => headers.match(new RegExp(`^#define NODE_${part}_VERSION (\\d+)$`, 'm'))?.[1];
  const headersVersion = `v${['MAJOR', 'MINOR', 'PATCH'].map(numberOf).join('.')}`;
  if (headersVersion !== version) return env;
  // npm 12 will drop the first name; older versions of node-gyp read only the first name.
  return { ...env, npm_config_nodedir: root, npm_package_config_node_gyp_nodedir: root };
}

function failure(job, how) {
  const tail = (readOrNull(logFile) ?? '').trimEnd().split('\n').slice(-quotedLines).join('\n');
  return `${tail}\n\nnpm ${job} failed: ${how}. Its output is in ${logFile}. npm needs access to the npm registry \
and, if there is no prebuilt SQLite driver, a C++ compiler with make and python3.`;
}

/** On a terminal redraws one line; elsewhere prints a line from time to time. Returns the function that stops it. */
function showProgress(packages, last) {
  const startedAt = Date.now();
  const isTerminal = process.stderr.isTTY;
  const line = () => {
    const count = packages.filter((path) => existsSync(join(path, 'package.json'))).length;
    const state = count < packages.length ? `${count} of ${packages.length} packages are there` : last;
    return `${state}, ${Math.round((Date.now() - startedAt) / 1000)} s`;
  };
  // The line is cut: a line that reaches the edge would wrap, and the next line would be drawn below it.
  const paint = () => process.stderr.write(`\r\x1b[K${`      ${line()}`.slice(0, (process.stderr.columns || 80) - 1)}`);
  const timer = setInterval(
    isTerminal ? paint : () => printProgress(`      ${line()}`),
    isTerminal ? redrawEveryMs : printEveryMs,
  );
  return () => {
    clearInterval(timer);
    if (isTerminal) process.stderr.write('\r\x1b[K');
  };
}
