// Checks the version of Node.js before anything else runs. This file must only use syntax that an old Node.js can
// parse.
import { readFileSync } from 'node:fs';

/** The oldest supported version of Node.js, from package.json's `engines`; `20.19`, for example. */
function oldestNode() {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return manifest.engines.node.replace(/^>=/, '');
}

/** Whether `version` (`20.19.4`) is `oldest` (`20.19`) or newer. */
function isNewEnough(version, oldest) {
  const [major, minor] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldest.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

/** Exits with one clear sentence if Node.js is too old, before it fails with an obscure error. */
export function refuseOldNode() {
  const oldest = oldestNode();
  if (isNewEnough(process.versions.node, oldest)) return;
  const present = `${process.versions.node} (${process.execPath})`;
  console.error(`lockgate needs Node.js ${oldest} or newer, but this is ${present}.`);
  process.exit(1);
}
