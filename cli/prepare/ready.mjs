// Makes a clone ready to run: packages, then dist. Costs some 20 ms when both are there already.
import { build, isBuilt } from './build.mjs';
import { install, isInstalled } from './install.mjs';
import { oneAtATime } from './one-at-a-time.mjs';

/** Installs and, unless told `{ compiled: false }`, builds what is missing or stale; throws a Stop with a sentence. */
export async function makeReady({ compiled = true } = {}) {
  const isReady = () => isInstalled() && (!compiled || isBuilt());
  if (isReady()) return;
  await oneAtATime(async () => {
    await install();
    if (compiled) await build();
  });
}
