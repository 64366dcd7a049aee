// The one question asked before anything else, so this file keeps to syntax that an old Node.js can still parse.
import { readFileSync } from 'node:fs';

/** The oldest Node.js that runs us, as package.json's `engines` says it, for example `20.19`. */
function oldestNode() {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return manifest.engines.node.replace(/^>=/, '');
}

/** True when `version` (`20.19.4`) is `oldest` (`20.19`) or newer. */
function isNewEnough(version, oldest) {
  const [major, minor] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldest.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

/** Ends the process with one clear sentence on a Node.js that is too old, before it fails in some obscure way. */
export function refuseOldNode() {
  const oldest = oldestNode();
  if (isNewEnough(process.versions.node, oldest)) return;
  const present = `${process.versions.node} (${process.execPath})`;
  console.error(`lockgate needs Node.js ${oldest} or newer, and this is ${present}.`);
  process.exit(1);
}
