// Compiles the sources to dist when they differ from what dist was compiled from.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { at, fingerprint, readOrNull, runTool, Stop, say, sourceFiles } from './workplace.mjs';

/** Written last and only after a compile without errors, so where it is, dist is whole. */
const stampFile = at('dist', '.lockgate-build');

/** Contents, not times: a fresh clone and a switched branch have new times on old files. */
function wantedStamp() {
  const files = ['package-lock.json', 'package.json', 'tsconfig.json', ...sourceFiles()];
  return fingerprint(files.flatMap((file) => [file, readOrNull(at(file))]));
}

/** True when dist holds exactly what the present sources compile to. */
export function isBuilt() {
  return readOrNull(stampFile) === wantedStamp();
}

/** Brings dist up to date, or throws a Stop after the compiler has said what is wrong. */
export async function build() {
  const stamp = wantedStamp();
  if (readOrNull(stampFile) === stamp) return;
  say('Compiling the sources to dist, some 10 seconds.');
  // A test or module that was removed from the sources would otherwise go on running from dist.
  rmSync(at('dist'), { recursive: true, force: true });
  const { ok, how } = await runTool('tsc', ['-p', 'tsconfig.json'], { stdio: ['ignore', 2, 2] });
  if (!ok) {
    rmSync(at('dist'), { recursive: true, force: true });
    throw new Stop(`The sources don't compile: tsc ${how}, and its findings are above.`);
  }
  mkdirSync(at('dist'), { recursive: true });
  writeFileSync(stampFile, stamp);
}
