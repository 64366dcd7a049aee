// `npm run release`: makes the npm package and what belongs to it in dist/release, and tries it out. Nothing is
// published or uploaded.
//
//   npm run release                the version of package.json, which CHANGELOG.md must have a dated section for
//   npm run release -- --rehearse  the same, with the section Unreleased, even if files are not committed yet
//   --out FOLDER                   another folder for the files
//   --no-try                       without the clean install, which may compile the SQLite driver for a minute
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { pathInClone, printProgress, reportFailure, run, UserError } from '../workplace.mjs';
import { sectionOf } from './changelog.mjs';
import { makeBill } from './materials.mjs';
import { makePackage } from './package.mjs';
import { tryPackage } from './trial.mjs';

const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/;
const options = {
  rehearse: { type: 'boolean', default: false },
  out: { type: 'string', default: pathInClone('dist', 'release') },
  'no-try': { type: 'boolean', default: false },
};

function readOptions() {
  try {
    return parseArgs({ options, args: process.argv.slice(2) }).values;
  } catch (error) {
    throw new UserError(`${error.message}. The options are --rehearse, --out FOLDER and --no-try.`);
  }
}

/** The version of package.json. Throws a UserError if it is no version. */
function readVersion() {
  const { version } = JSON.parse(readFileSync(pathInClone('package.json'), 'utf8'));
  if (VERSION.test(version)) return version;
  throw new UserError(`package.json has the version ${JSON.stringify(version)}: expected one such as 1.2.0.`);
}

/** A release is made from what is committed, so that it can be made again. */
async function refuseChanges() {
  const { ok, stdout, how } = await run('git', ['status', '--porcelain'], { stdio: ['ignore', 'pipe', 'pipe'] });
  if (!ok) throw new UserError(`A release needs a git repository, but git status ${how}; --rehearse does without.`);
  const first = stdout.split('\n')[0];
  if (first !== '') throw new UserError(`A release needs everything committed, but git status has "${first}".`);
}

/** Writes SHA256SUMS, which `sha256sum --check` reads. */
function writeSums(folder, files) {
  const lines = files.map((file) => {
    const sum = createHash('sha256').update(readFileSync(join(folder, file)));
    return `${sum.digest('hex')}  ${file}\n`;
  });
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
}

async function release() {
  const { rehearse, out, 'no-try': isUntried } = readOptions();
  const version = readVersion();
  const changes = sectionOf(readFileSync(pathInClone('CHANGELOG.md'), 'utf8'), rehearse ? null : version);
  if (!rehearse) await refuseChanges();
  const folder = resolve(out);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const tarball = await makePackage(folder);
  const bill = `lockgate-${version}.cdx.json`;
  writeFileSync(join(folder, bill), `${JSON.stringify(await makeBill(), null, 2)}\n`);
  writeFileSync(join(folder, 'CHANGES.md'), changes);
  writeSums(folder, [tarball, bill, 'CHANGES.md']);
  printProgress(`${tarball}, ${bill}, CHANGES.md and SHA256SUMS are in ${folder}.`);
  if (!isUntried) await tryPackage(join(folder, tarball), version);
}

await reportFailure(release);
