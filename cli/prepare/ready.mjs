// Makes a clone ready for a job: its packages, those of test/clients, dist. Takes some 50 ms if nothing is missing.
import { buildStep, isBuilt } from './build.mjs';
import { areClientsInstalled, clientsStep } from './clients.mjs';
import { installStep, isInstalled } from './install.mjs';
import { oneAtATime } from './one-at-a-time.mjs';
import { printProgress } from './workplace.mjs';

/**
 * Installs and compiles what is missing or stale, with a numbered line for each step. Throws a UserError with a
 * sentence on failure. `packages` is `run` or `all`; `clients` says whether the packages of test/clients are needed,
 * with which tests act as merchants; `sources` is `product`, `all`, or null to compile nothing. `last` is the text for
 * the job itself, as the last numbered line.
 */
export async function makeReady({ packages = 'run', clients = false, sources = 'product', last = null } = {}) {
  if (isInstalled(packages) && (!clients || areClientsInstalled()) && (!sources || isBuilt(sources))) return;
  await oneAtATime(async () => {
    // Each is null if nothing is left to do: another process may have done it meanwhile.
    const steps = [installStep(packages), clients ? clientsStep() : null, sources ? buildStep(sources) : null].filter(
      Boolean,
    );
    const count = steps.length + (last ? 1 : 0);
    for (const [index, { title, work }] of steps.entries()) {
      const startedAt = performance.now();
      printProgress(`[${index + 1}/${count}] ${title}.`);
      await work();
      printProgress(`      Done in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.`);
    }
    if (steps.length > 0 && last) printProgress(`[${count}/${count}] ${last}.`);
  });
}
