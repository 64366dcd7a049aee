// Writes the licences of the packages whose code is in the bundles: whoever passes code on must pass on its licence.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { buildPackages, gatewayBundle, packagesFolder } from '../bundles.mjs';
import { filesBelow, pathInClone, UserError } from '../workplace.mjs';

/** How esbuild names, in a bundle, the file of a package whose code follows. */
const originPattern = /^\s*\/\/ (?:\S*?\/)??((?:node_modules\/(?:@[^/\s]+\/)?[^/\s]+\/)+)\S+$/gm;
const licenceFile = /^(licen[cs]e|copying)(\.|-|$)/i;
const RULE = '-'.repeat(80);

/**
 * The text of THIRD-PARTY-NOTICES.txt. `installed` are the dependencies that npm installs next to our package: they
 * bring their licences. Comments in the program's bundles name the packages that are in them. The pages' bundles have
 * no comments, so all other dependencies, except the tools of the build, are taken to be in those.
 */
export function makeNotices(installed) {
  const { dependencies } = JSON.parse(readFileSync(pathInClone('package.json'), 'utf8'));
  const ofPages = Object.keys(dependencies).filter(
    (name) => !installed.includes(name) && !buildPackages.includes(name),
  );
  const folders = new Set([...bundledFolders(), ...ofPages.map((name) => `node_modules/${name}`)]);
  // A version that is installed at two places has one notice.
  const notices = new Map([...folders].map(noticeOf).map((notice) => [notice.name, notice.text]));
  const head = 'The program of lockgate contains code of these packages, under the licences below.\n';
  const parts = [...notices.keys()].sort().map((name) => `\n${RULE}\n${name}\n${RULE}\n\n${notices.get(name)}\n`);
  return `${head}${parts.join('')}`;
}

/** The folders of the packages in the bundles of the program. */
function bundledFolders() {
  const files = [gatewayBundle, ...filesBelow(packagesFolder, '.js')];
  return files.flatMap((file) =>
    [...readFileSync(pathInClone(file), 'latin1').matchAll(originPattern)].map(([, folder]) =>
      folder.replace(/\/$/, ''),
    ),
  );
}

/** Name, version and licence of an installed package. Throws a UserError if it has no licence. */
function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(pathInClone(folder, 'package.json'), 'utf8'));
  const files = existsSync(pathInClone(folder))
    ? readdirSync(pathInClone(folder)).filter((file) => licenceFile.test(file))
    : [];
  if (files.length === 0 && !license) throw new UserError(`${folder} has no licence, so it can't be passed on.`);
  const texts = files.map((file) => readFileSync(pathInClone(folder, file), 'utf8').trim());
  return { name: `${name} ${version}, ${license}`, text: texts.join('\n\n') || `License: ${license}` };
}
