// Brings node_modules to what package-lock.json says, and leaves it alone when it is there already.
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { at, fingerprint, readOrNull, Stop, say } from './workplace.mjs';

const stampFile = at('node_modules', '.lockgate-install');
const logFile = at('.prepare', 'install.log');
const tailLines = 25;
const lineEveryMs = 15_000;
const frameEveryMs = 120;

/** The SQLite driver is compiled for one ABI and one platform, so those are part of what an install is good for. */
function wantedStamp() {
  const lock = fingerprint([readOrNull(at('package-lock.json'))]);
  return `${lock} abi-${process.versions.modules} ${process.platform}-${process.arch}`;
}

/** True when this preparation has already installed what the lock says, for this Node.js and platform. */
export function isInstalled() {
  return readOrNull(stampFile) === wantedStamp();
}

/** Installs from the lock, or adopts what somebody installed by hand; throws a Stop that says what went wrong. */
export async function install() {
  if (isInstalled()) return;
  if (!installedByHand()) {
    say('Installing the packages that package-lock.json names, once: about 1-2 minutes, most of it compiling the');
    say('SQLite driver where there is no prebuilt one for this machine.');
    await cleanInstall();
  }
  writeFileSync(stampFile, wantedStamp());
}

/** After `npm ci` by hand there is no stamp; reinstalling would then only compile the driver a second time. */
function installedByHand() {
  const installed = JSON.parse(readOrNull(at('node_modules', '.package-lock.json')) ?? 'null');
  const wanted = JSON.parse(readOrNull(at('package-lock.json')) ?? 'null');
  if (!installed || !wanted) return false;
  for (const [path, { version, optional }] of Object.entries(wanted.packages)) {
    if (path === '') continue;
    const there = installed.packages[path];
    if (there ? there.version !== version : !optional) return false;
  }
  return driverLoads();
}

function driverLoads() {
  try {
    const Database = createRequire(import.meta.url)('better-sqlite3');
    new Database(':memory:').close();
    return true;
  } catch {
    return false;
  }
}

/** npm started us in most cases and says where it is; otherwise the one on the path will do. */
function npmCommand() {
  const running = process.env.npm_execpath;
  return running && basename(running) === 'npm-cli.js' ? [process.execPath, running] : ['npm'];
}

/**
 * The environment that npm runs in. Where no prebuilt driver is to be had, node-gyp compiles one and would download
 * Node.js's headers for it, which a closed network refuses. Most installations of Node.js bring their own headers; when
 * they are those of the Node.js that runs us, node-gyp is pointed at them, unless somebody configured another place.
 */
function npmEnvironment() {
  const { env, execPath, version } = process;
  if (Object.keys(env).some((name) => name.toLowerCase() === 'npm_config_nodedir')) return env;
  const root = dirname(dirname(execPath));
  const headers = readOrNull(join(root, 'include', 'node', 'node_version.h')) ?? '';
  const numberOf = (part) => headers.match(new RegExp(`^#define NODE_${part}_VERSION (\\d+)$`, 'm'))?.[1];
  const theirs = `v${['MAJOR', 'MINOR', 'PATCH'].map(numberOf).join('.')}`;
  if (theirs !== version) return env;
  // By both names: npm 12 will drop the first, which is the only one that older node-gyps read.
  return { ...env, npm_config_nodedir: root, npm_package_config_node_gyp_nodedir: root };
}

async function cleanInstall() {
  // A stamp must not outlive the packages it vouches for, even when npm is killed half-way.
  rmSync(stampFile, { force: true });
  mkdirSync(at('.prepare'), { recursive: true });
  const log = openSync(logFile, 'w');
  const stopHeartbeat = heartbeat();
  const [command, ...first] = npmCommand();
  // The tests and the compiler are development packages, wanted even where NODE_ENV says production.
  // An outer `npm --silent` would pass its silence on, and leave nothing in the log to explain a failure.
  const flags = ['ci', '--include=dev', '--no-audit', '--no-fund', '--foreground-scripts', '--loglevel=notice'];
  const how = await new Promise((resolve) => {
    const shell = process.platform === 'win32';
    const child = spawn(command, [...first, ...flags], {
      cwd: at(),
      env: npmEnvironment(),
      stdio: ['ignore', log, log],
      shell,
    });
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(code === 0 ? null : (signal ?? `status ${code}`)));
  });
  const seconds = stopHeartbeat();
  closeSync(log);
  if (how !== null) throw new Stop(failure(how));
  say(`The install took ${seconds} s.`);
}

function failure(how) {
  const tail = (readOrNull(logFile) ?? '').trimEnd().split('\n').slice(-tailLines).join('\n');
  return `${tail}\n\nInstalling failed: npm ci ended with ${how}; all it said is in ${logFile}, and what it needs is a \
way to the npm registry and, where there is no prebuilt SQLite driver, a C++ compiler with make and python3.`;
}

/**
 * On a terminal a spinner, elsewhere a line now and then, so that nobody takes a compiler for a hang.
 * Gives what stops it and tells the seconds it took.
 */
function heartbeat() {
  const from = Date.now();
  const seconds = () => Math.round((Date.now() - from) / 1000);
  const terminal = process.stderr.isTTY;
  let frame = 0;
  const beat = () => {
    if (!terminal) return say(`… still installing, ${seconds()} s`);
    frame += 1;
    process.stderr.write(`\r${'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'[frame % 10]} installing, ${seconds()} s `);
  };
  const timer = setInterval(beat, terminal ? frameEveryMs : lineEveryMs);
  return () => {
    clearInterval(timer);
    if (terminal) process.stderr.write('\r\x1b[K');
    return seconds();
  };
}
