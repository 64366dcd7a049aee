// Brings node_modules to what package-lock.json says, for what is wanted of it, and compiles the SQLite driver no more
// often than it must: it takes over a minute where no prebuilt one can be had.
//
// Two sets of packages: `run` is what the product and its compile need (npm's `dependencies`), `all` adds what tests,
// linters and the check of types need (`devDependencies`). An install grows from `run` to `all` and never shrinks back.
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { runNpm } from './npm.mjs';
import { at, fingerprint, readOrNull, Stop } from './workplace.mjs';

const stampFile = at('node_modules', '.lockgate-install');
const platform = `${process.platform}-${process.arch}`;
const driver = 'better-sqlite3';

const lockText = () => readOrNull(at('package-lock.json')) ?? '';

function readStamp() {
  try {
    return JSON.parse(readOrNull(stampFile) ?? '{}');
  } catch {
    return {};
  }
}

/** The SQLite driver is compiled for one ABI of Node.js and one platform, so those are part of what is vouched for. */
function writeStamp(set) {
  // Replaced and not written over: the folder may be a copy that shares its files with another clone by hard links.
  rmSync(stampFile, { force: true });
  const stamp = { lock: fingerprint([lockText()]), set, abi: process.versions.modules, platform };
  writeFileSync(stampFile, `${JSON.stringify(stamp)}\n`);
}

/** True when node_modules holds this set (`run` or `all`) as the lock says, with a driver for this Node.js. */
export function isInstalled(set) {
  const stamp = readStamp();
  if (stamp.abi !== process.versions.modules || stamp.platform !== platform) return false;
  return (stamp.set === set || stamp.set === 'all') && stamp.lock === fingerprint([lockText()]);
}

/** True when node_modules has packages that only tests and checks want, whatever else it lacks. */
export function hasTestPackages() {
  return Object.values(packagesThere() ?? {}).some(({ dev = false }) => dev);
}

/**
 * What is left to do for `set`, as `{ title, work }`, or null when all is there. What somebody installed by hand, with
 * `npm ci`, is taken as it is.
 */
export function installStep(set) {
  if (isInstalled(set)) return null;
  const wanted = JSON.parse(lockText()).packages;
  const there = packagesThere();
  const foreign = (readStamp().platform ?? platform) !== platform;
  const setThere = there && !foreign ? setIn(wanted, there) : null;
  if (setThere === 'all' || setThere === set) {
    if (!driverLoads()) {
      const title = `Rebuilding the SQLite driver for Node.js ${process.version}`;
      return { title, work: () => rebuildDriver(setThere) };
    }
    writeStamp(setThere);
    return null;
  }
  const larger = hasTestPackages() ? 'all' : set;
  const packages = needed(wanted, larger);
  const isThere = (path) => !foreign && there?.[path]?.version === wanted[path].version;
  const missing = packages.filter((path) => !isThere(path)).length;
  const what = larger === 'all' ? 'those of tests and linters included' : 'without those of tests and linters';
  return {
    title: `Installing ${missing} of ${packages.length} packages, ${what}`,
    work: () => installPackages(larger, packages, !there || foreign),
  };
}

/** For another Node.js than the one that it was built for; the other packages are JavaScript, or fit any version. */
async function rebuildDriver(setThere) {
  rmSync(stampFile, { force: true });
  await runNpm(['rebuild', driver], { last: 'compiling it, where there is no prebuilt one' });
  if (!driverLoads()) throw new Stop(`${driver} was rebuilt and still does not load in Node.js ${process.version}.`);
  writeStamp(setThere);
}

async function installPackages(set, packages, fromNothing) {
  // A stamp must not outlive the packages it vouches for, even when npm is killed half-way.
  rmSync(stampFile, { force: true });
  // Named in full, because NODE_ENV and a user's configuration of npm change what is left out.
  const sets = [set === 'all' ? '--include=dev' : '--omit=dev', '--include=optional'];
  const folders = packages.map((path) => at(path));
  // `npm ci` would remove everything first, and with it the compiled driver.
  if (!fromNothing) await runNpm(['install', '--no-save', ...sets], { packages: folders });
  if (fromNothing || setNow() !== set) {
    const last = 'all are there; compiling a driver, where needed, takes 1-2 minutes';
    await runNpm(['ci', ...sets], { packages: folders, last });
  }
  if (driverLoads()) writeStamp(set);
  else await rebuildDriver(set);
}

function setNow() {
  const there = packagesThere();
  return there ? setIn(JSON.parse(lockText()).packages, there) : null;
}

/** What npm wrote down of what it installed, or null. */
function packagesThere() {
  return JSON.parse(readOrNull(at('node_modules', '.package-lock.json')) ?? 'null')?.packages ?? null;
}

/** Which set is there in full: `all`, `run`, or null. Both arguments are the `packages` of a lock file. */
function setIn(wanted, there) {
  const isThere = (path) => there[path]?.version === wanted[path].version;
  if (!needed(wanted, 'run').every(isThere)) return null;
  return needed(wanted, 'all').every(isThere) ? 'all' : 'run';
}

/** The paths of the packages that a set can't be without; optional ones are for other platforms, as a rule. */
function needed(wanted, set) {
  return Object.keys(wanted).filter((path) => {
    const { dev = false, optional = false, devOptional = false } = wanted[path];
    return path !== '' && !optional && (set === 'all' || !(dev || devOptional));
  });
}

function driverLoads() {
  try {
    const Database = createRequire(import.meta.url)(driver);
    new Database(':memory:').close();
    return true;
  } catch {
    return false;
  }
}
