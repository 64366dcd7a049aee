#!/usr/bin/env node
// The `lockgate` command. With dist in place it is nothing but an import: whether dist is current is not asked here,
// since hashing the sources would cost every call what only a developer needs, and `npm run build` gives them.
import { existsSync } from 'node:fs';
import module from 'node:module';
import { refuseOldNode } from './prepare/node-version.mjs';

refuseOldNode();
// What was compiled is kept for the next call, where Node.js can do that (22.1 on).
module.enableCompileCache?.();
const main = new URL('../dist/cli/main.js', import.meta.url);
const sources = new URL('../tsconfig.json', import.meta.url);
// In a clone the build's stamp is asked for, not main.js, because a build that is still going on may have written that.
const whole = existsSync(sources) ? new URL('../dist/.lockgate-build', import.meta.url) : main;
if (existsSync(whole)) await import(main.href);
else await prepareAndRun();

async function prepareAndRun() {
  const { makeReady } = await import('./prepare/ready.mjs');
  const { endWith } = await import('./prepare/workplace.mjs');
  await endWith(async () => {
    await makeReady();
    await import(main.href);
  });
}
