// Makes the npm package from the files that package.json lists. The package's own manifest names only the packages that
// the program still loads from node_modules: what is joined into its bundles, and what only the build needs, is not
// installed again. Those without a compiled part come with the package, in the versions that were tested: npm heeds
// neither our `overrides` nor a lock file where our package is installed from a file.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { buildPackages, programFolder, unbundled } from '../bundles.mjs';
import { filesBelow, pathInClone, printProgress, UserError } from '../workplace.mjs';
import { makeNotices } from './notices.mjs';
import { npmOutput } from './npm-output.mjs';
import { packageReadme } from './package-readme.mjs';

/** Packages with a part that was compiled for one platform: npm installs them on the user's machine. */
const COMPILED_PACKAGES = ['better-sqlite3', '@node-rs/argon2'];
/** The members of the manifest that only a clone needs. */
const CLONE_MEMBERS = ['private', 'scripts', 'devDependencies', 'imports', 'allowScripts', 'overrides'];
/** The imports in esbuild's output: static ones, each at the start of a line, and dynamic ones. */
const importPattern = /^(?:import|\} from|import .* from) ?"([^".#][^"]*)"|\bimport\("([^".#][^"]*)"\)/gm;

const readJson = (...place) => JSON.parse(readFileSync(join(...place), 'utf8'));

/** Makes the package in `folder`, and returns its file name. */
export async function makePackage(folder) {
  const stage = mkdtempSync(join(tmpdir(), 'lockgate-package-'));
  try {
    const [{ files }] = JSON.parse(await npmOutput(['pack', '--dry-run', '--json', '--ignore-scripts'], pathInClone()));
    for (const { path } of files) {
      mkdirSync(dirname(join(stage, path)), { recursive: true });
      cpSync(pathInClone(path), join(stage, path));
    }
    const packed = files.map(({ path }) => path);
    writeFileSync(join(stage, 'README.md'), packageReadme(readFileSync(pathInClone('README.md'), 'utf8'), packed));
    await writeManifest(stage);
    const [{ filename, size, unpackedSize, entryCount }] = JSON.parse(
      await npmOutput(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], stage),
    );
    const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
    printProgress(`${filename}: ${entryCount} files, ${megabytes(size)} MB, ${megabytes(unpackedSize)} MB unpacked.`);
    return filename;
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** Writes package.json and THIRD-PARTY-NOTICES.txt of the package, and copies the packages that come with it. */
async function writeManifest(stage) {
  const manifest = readJson(pathInClone('package.json'));
  const needed = neededPackages(manifest);
  writeFileSync(join(stage, 'THIRD-PARTY-NOTICES.txt'), makeNotices(needed));
  manifest.dependencies = Object.fromEntries(needed.map((name) => [name, manifest.dependencies[name]]));
  manifest.bundleDependencies = needed.filter((name) => !COMPILED_PACKAGES.includes(name));
  manifest.man = filesBelow('docs/man', '.1').map((file) => `./${file}`);
  manifest.files = [...manifest.files, 'THIRD-PARTY-NOTICES.txt'];
  // For npm, which packagePaths runs there. The finished manifest is written below.
  writeFileSync(join(stage, 'package.json'), JSON.stringify(manifest));
  for (const path of await packagePaths(stage)) {
    // Of these, npm packs what bundleDependencies names and what those packages need.
    const isOwnFile = (source) => !source.slice(pathInClone(path).length).includes('node_modules');
    cpSync(pathInClone(path), join(stage, path), { recursive: true, dereference: true, filter: isOwnFile });
  }
  for (const member of CLONE_MEMBERS) delete manifest[member];
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** The places in node_modules of what the manifest in `stage` needs, without packages for single platforms. */
async function packagePaths(stage) {
  const lockFile = join(stage, 'package-lock.json');
  cpSync(pathInClone('package-lock.json'), lockFile);
  // Removes from the lock file what the manifest no longer names; --offline proves that no version is chosen anew.
  await npmOutput(['install', '--package-lock-only', '--ignore-scripts', '--offline'], stage);
  const { packages } = readJson(lockFile);
  rmSync(lockFile);
  const isCompiled = (path) => COMPILED_PACKAGES.some((name) => path.startsWith(`node_modules/${name}`));
  return Object.keys(packages).filter((path) => path !== '' && !packages[path].optional && !isCompiled(path));
}

/**
 * The packages of `dependencies` that the program loads from node_modules, in alphabetical order. Throws a UserError if
 * it loads another one, which would not be installed.
 */
export function neededPackages({ dependencies }) {
  const imported = filesBelow(programFolder, '.js').flatMap((file) =>
    [...readFileSync(pathInClone(file), 'utf8').matchAll(importPattern)].map(
      ([, named, demanded]) => named ?? demanded,
    ),
  );
  const packageOf = (specifier) =>
    specifier
      .split('/')
      .slice(0, specifier.startsWith('@') ? 2 : 1)
      .join('/');
  const names = [...new Set([...imported, ...unbundled].map(packageOf))].filter(
    (name) => !builtinModules.includes(name) && !name.startsWith('node:') && !buildPackages.includes(name),
  );
  const unknown = names.find((name) => !(name in dependencies));
  if (unknown !== undefined) throw new UserError(`The program loads ${unknown}, which is not in dependencies.`);
  return names.sort();
}
