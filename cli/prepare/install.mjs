// Installs the packages of package-lock.json, and compiles the SQLite driver only when necessary: that takes over a
// minute if no prebuilt driver can be downloaded.
//
// There are two sets of packages. `run` is what the product and its compile need (npm's `dependencies`); `all` adds
// what tests, linters and the type check need (`devDependencies`). An install grows from `run` to `all` and never
// shrinks.
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { runNpm } from './npm.mjs';
import { fingerprint, pathInClone, readOrNull, UserError } from './workplace.mjs';

const stampFile = pathInClone('node_modules', '.lockgate-install');
const platform = `${process.platform}-${process.arch}`;
const driver = 'better-sqlite3';

const lockText = () => readOrNull(pathInClone('package-lock.json')) ?? '';

function readStamp() {
  try {
    return JSON.parse(readOrNull(stampFile) ?? '{}');
  } catch {
    return {};
  }
}

/** Records what is installed, with the ABI and the platform that the SQLite driver is compiled for. */
function writeStamp(set) {
  // Removed first, not overwritten: the folder may share its files with another clone by hard links.
  rmSync(stampFile, { force: true });
  const stamp = { lock: fingerprint([lockText()]), set, abi: process.versions.modules, platform };
  writeFileSync(stampFile, `${JSON.stringify(stamp)}\n`);
}

/** Whether node_modules has this set (`run` or `all`) of package-lock.json, with a driver for this Node.js. */
export function isInstalled(set) {
  const stamp = readStamp();
  if (stamp.abi !== process.versions.modules || stamp.platform !== platform) return false;
  return (stamp.set === set || stamp.set === 'all') && stamp.lock === fingerprint([lockText()]);
}

/** Whether node_modules has packages that only tests and checks need; other packages may be missing. */
export function hasTestPackages() {
  return Object.values(installedPackages() ?? {}).some(({ dev = false }) => dev);
}

/**
 * The install step for `set`, as `{ title, work }`; null if nothing is missing. Packages that a user installed with
 * `npm ci` are used unchanged.
 */
export function installStep(set) {
  if (isInstalled(set)) return null;
  const wanted = JSON.parse(lockText()).packages;
  const installed = installedPackages();
  const isOtherPlatform = (readStamp().platform ?? platform) !== platform;
  const completeSet = installed && !isOtherPlatform ? setIn(wanted, installed) : null;
  if (completeSet === 'all' || completeSet === set) {
    if (!driverLoads()) {
      const title = `Rebuilding the SQLite driver for Node.js ${process.version}`;
      return { title, work: () => rebuildDriver(completeSet) };
    }
    writeStamp(completeSet);
    return null;
  }
  // An install never shrinks from `all` to `run`.
  const setToInstall = hasTestPackages() ? 'all' : set;
  const packages = requiredPaths(wanted, setToInstall);
  const isInstalledPath = (path) => !isOtherPlatform && installed?.[path]?.version === wanted[path].version;
  const missing = packages.filter((path) => !isInstalledPath(path)).length;
  const what = setToInstall === 'all' ? 'including those of tests and linters' : 'without those of tests and linters';
  return {
    title: `Installing ${missing} of ${packages.length} packages, ${what}`,
    work: () => installPackages(setToInstall, packages, !installed || isOtherPlatform),
  };
}

/**
 * Rebuilds the SQLite driver for a Node.js with a different ABI (the interface of compiled modules). All other packages
 * are JavaScript, or fit any version.
 */
async function rebuildDriver(set) {
  rmSync(stampFile, { force: true });
  await runNpm(['rebuild', driver], { last: 'compiling the SQLite driver, if there is no prebuilt one' });
  if (!driverLoads())
    throw new UserError(`${driver} was rebuilt but still does not load in Node.js ${process.version}.`);
  writeStamp(set);
}

async function installPackages(set, packages, fromNothing) {
  // Without the packages there must be no stamp, even if npm is killed half-way.
  rmSync(stampFile, { force: true });
  // All sets are named, because NODE_ENV and the user's npm configuration change the defaults.
  const sets = [set === 'all' ? '--include=dev' : '--omit=dev', '--include=optional'];
  const folders = packages.map((path) => pathInClone(path));
  // `npm ci` would first remove everything, including the compiled driver.
  if (!fromNothing) await runNpm(['install', '--no-save', ...sets], { packages: folders });
  if (fromNothing || installedSetNow() !== set) {
    const last = 'all are there; compiling a driver, if needed, takes 1-2 minutes';
    await runNpm(['ci', ...sets], { packages: folders, last });
  }
  if (driverLoads()) writeStamp(set);
  else await rebuildDriver(set);
}

/** The set that is completely installed now; null if none is. */
function installedSetNow() {
  const installed = installedPackages();
  return installed ? setIn(JSON.parse(lockText()).packages, installed) : null;
}

/** The installed packages by npm's own record; null if there is none. */
function installedPackages() {
  return JSON.parse(readOrNull(pathInClone('node_modules', '.package-lock.json')) ?? 'null')?.packages ?? null;
}

/** Which set is completely installed: `all`, `run`, or null. Both arguments are the `packages` of a lock file. */
function setIn(wanted, installed) {
  const isInstalledPath = (path) => installed[path]?.version === wanted[path].version;
  if (!requiredPaths(wanted, 'run').every(isInstalledPath)) return null;
  return requiredPaths(wanted, 'all').every(isInstalledPath) ? 'all' : 'run';
}

/** The paths of the packages that a set requires. Optional packages are usually for other platforms. */
function requiredPaths(wanted, set) {
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
