#!/usr/bin/env node
// The `lockgate` command. In a clone that is ready it is nothing but an import. It asks for three things only: packages
// and dist that were finished, and a SQLite driver for this Node.js. Whether dist is current is not asked: comparing
// the sources would cost every call what only a developer needs, and `npm run build` gives them.
import { existsSync, readFileSync } from 'node:fs';
import module from 'node:module';
import { refuseOldNode } from './prepare/node-version.mjs';

refuseOldNode();
// What was compiled is kept for the next call, where Node.js can do that (22.1 on).
module.enableCompileCache?.();
const main = new URL('../dist/program/main.js', import.meta.url);
if (isReady()) await import(main.href);
else await prepareAndRun();

function isReady() {
  // Outside of a clone there is nothing to prepare: what was packed is whole.
  if (!existsSync(new URL('../tsconfig.json', import.meta.url))) return true;
  // The build's stamp and not main.js, because a build that is still going on may have written that.
  if (!existsSync(new URL('../dist/.lockgate-build', import.meta.url))) return false;
  try {
    const stamp = readFileSync(new URL('../node_modules/.lockgate-install', import.meta.url), 'utf8');
    const { abi, platform } = JSON.parse(stamp);
    return abi === process.versions.modules && platform === `${process.platform}-${process.arch}`;
  } catch {
    return false;
  }
}

async function prepareAndRun() {
  const { makeReady } = await import('./prepare/ready.mjs');
  const { endWith } = await import('./prepare/workplace.mjs');
  await endWith(async () => {
    await makeReady();
    await import(main.href);
  });
}
