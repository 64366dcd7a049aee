// Runs npm to its end, saying how far it is; everything that npm says goes to a log file, and its end to a failure.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { at, readOrNull, Stop, say } from './workplace.mjs';

const logFile = at('.prepare', 'install.log');
const tailLines = 25;
const lineEveryMs = 15_000;
const frameEveryMs = 200;
// An outer `npm --silent` would pass its silence on, and leave nothing in the log to explain a failure.
const flags = ['--no-audit', '--no-fund', '--foreground-scripts', '--loglevel=notice'];

/**
 * Runs `npm ...args` in a folder of the clone, or throws a Stop with the end of what it said. `packages` are the
 * folders that it fills, by which progress is counted; when all are there, it is at the `last` thing that it does.
 */
export async function runNpm(args, { folder = at(), packages = [], last = 'finishing' } = {}) {
  mkdirSync(at('.prepare'), { recursive: true });
  const log = openSync(logFile, 'w');
  const stopProgress = showProgress(packages, last);
  const [command, ...first] = npmCommand();
  const how = await new Promise((resolve) => {
    const child = spawn(command, [...first, ...args, ...flags], {
      cwd: folder,
      env: npmEnvironment(),
      stdio: ['ignore', log, log],
      shell: process.platform === 'win32',
    });
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(code === 0 ? null : (signal ?? `status ${code}`)));
  });
  stopProgress();
  closeSync(log);
  if (how !== null) throw new Stop(failure(args[0], how));
}

/** npm started us in most cases and says where it is; otherwise the one on the path will do. */
function npmCommand() {
  const running = process.env.npm_execpath;
  return running && basename(running) === 'npm-cli.js' ? [process.execPath, running] : ['npm'];
}

/**
 * The environment that npm runs in, for where no prebuilt driver is to be had and node-gyp compiles one: with all
 * cores, and with the headers that Node.js brought along. It would download them, which a closed network refuses.
 * Neither is set where somebody configured it, nor the headers where they are another Node.js's than the one that runs
 * us.
 */
function npmEnvironment() {
  const { execPath, version } = process;
  const env = { JOBS: 'max', ...process.env };
  if (Object.keys(env).some((name) => name.toLowerCase() === 'npm_config_nodedir')) return env;
  const root = dirname(dirname(execPath));
  const headers = readOrNull(join(root, 'include', 'node', 'node_version.h')) ?? '';
  const numberOf = (part) => headers.match(new RegExp(`^#define NODE_${part}_VERSION (\\d+)$`, 'm'))?.[1];
  const theirs = `v${['MAJOR', 'MINOR', 'PATCH'].map(numberOf).join('.')}`;
  if (theirs !== version) return env;
  // By both names: npm 12 will drop the first, which is the only one that older node-gyps read.
  return { ...env, npm_config_nodedir: root, npm_package_config_node_gyp_nodedir: root };
}

function failure(job, how) {
  const tail = (readOrNull(logFile) ?? '').trimEnd().split('\n').slice(-tailLines).join('\n');
  return `${tail}\n\nnpm ${job} failed: ${how}. Its whole output is in ${logFile}. It needs access to the npm registry \
and, where there is no prebuilt SQLite driver, a C++ compiler with make and python3.`;
}

/** Repaints one line on a terminal, and prints one now and then elsewhere. Returns the function that stops it. */
function showProgress(packages, last) {
  const from = Date.now();
  const terminal = process.stderr.isTTY;
  const line = () => {
    const there = packages.filter((path) => existsSync(join(path, 'package.json'))).length;
    const doing = there < packages.length ? `${there} of ${packages.length} packages are there` : last;
    return `${doing}, ${Math.round((Date.now() - from) / 1000)} s`;
  };
  // A line that reaches the edge would wrap, and the next one would be painted below it.
  const paint = () => process.stderr.write(`\r\x1b[K${`      ${line()}`.slice(0, (process.stderr.columns || 80) - 1)}`);
  const timer = setInterval(terminal ? paint : () => say(`      ${line()}`), terminal ? frameEveryMs : lineEveryMs);
  return () => {
    clearInterval(timer);
    if (terminal) process.stderr.write('\r\x1b[K');
  };
}
