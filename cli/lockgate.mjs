#!/usr/bin/env node
// The `lockgate` command. In a prepared clone it only imports dist/program/main.js. It checks that packages and dist
// are complete and that the SQLite driver fits this Node.js. It does not check that dist is up to date: comparing the
// sources would slow every call down, and only developers need it, who have `npm run build`.
import { existsSync, readFileSync } from 'node:fs';
import module from 'node:module';
import { refuseOldNode } from './prepare/node-version.mjs';

refuseOldNode();
// From Node.js 22.1 on, compiled code is cached for the next call.
module.enableCompileCache?.();
const main = new URL('../dist/program/main.js', import.meta.url);
if (isReady()) await import(main.href);
else await prepareAndRun();

function isReady() {
  // Outside a clone there is nothing to prepare: an npm package is complete.
  if (!existsSync(new URL('../tsconfig.json', import.meta.url))) return true;
  // The build's stamp, not main.js: an unfinished build may already have written main.js.
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
  const { reportFailure } = await import('./prepare/workplace.mjs');
  await reportFailure(async () => {
    await makeReady();
    await import(main.href);
  });
}
