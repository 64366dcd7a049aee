/**
 * The entry point of the process; what it does is in process.ts. A gateway runs from a bundle of all modules with V8's
 * compiled code next to it (load-bundle.cjs), which halves the CPU time of its start. Other commands load only the
 * modules that they need, which takes less time than loading the bundle.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { tuneGarbageCollection } from './garbage-collection.js';

/** The commands that run a gateway. */
const GATEWAY_COMMANDS: readonly (string | undefined)[] = ['serve', 'demo'];
/** The bundle. This file is compiled to dist/program/ and to dist/cli/; the path is right from both. */
const BUNDLE = fileURLToPath(new URL('../program/lockgate.cjs', import.meta.url));
const LOADER = fileURLToPath(new URL('../../cli/load-bundle.cjs', import.meta.url));

type Process = typeof import('./process.js');

const words = process.argv.slice(2);
const command = words.find((word) => !word.startsWith('-'));
// Before anything is compiled: V8 refuses compiled code that was stored under other flags.
if (command === 'serve') tuneGarbageCollection();
const { runProcess } = canUseBundle() ? loadBundle() : await import('./process.js');
await runProcess(words);

function canUseBundle(): boolean {
  // Node.js maps positions in modules to those in the sources, but not positions in the bundle.
  const mapsPositions = process.sourceMapsEnabled;
  return GATEWAY_COMMANDS.includes(command) && !mapsPositions && existsSync(BUNDLE) && existsSync(LOADER);
}

function loadBundle(): Process {
  const loader = createRequire(import.meta.url)(LOADER);
  return loader.loadBundle(BUNDLE, { codeFile: `${BUNDLE}.${command}.code`, keepsCode: 'once-started' });
}
