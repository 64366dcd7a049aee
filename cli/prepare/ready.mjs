// Makes a clone ready for a job: packages, foreign clients, dist. Costs some 50 ms when all is there already.
import { buildStep, isBuilt } from './build.mjs';
import { areClientsInstalled, clientsStep } from './clients.mjs';
import { installStep, isInstalled } from './install.mjs';
import { oneAtATime } from './one-at-a-time.mjs';
import { say } from './workplace.mjs';

/**
 * Installs and compiles what is missing or stale, with a numbered line for each step, or throws a Stop with a sentence.
 * `packages` is `run` or `all`; `clients` asks for the foreign clients too; `sources` is `product`, `all`, or null
 * where nothing is to be compiled. `last` names the job that follows, as the last of the steps.
 */
export async function makeReady({ packages = 'run', clients = false, sources = 'product', last = null } = {}) {
  if (isInstalled(packages) && (!clients || areClientsInstalled()) && (!sources || isBuilt(sources))) return;
  await oneAtATime(async () => {
    const steps = [installStep(packages), clients ? clientsStep() : null, sources ? buildStep(sources) : null].filter(
      Boolean,
    );
    const count = steps.length + (last ? 1 : 0);
    for (const [index, { title, work }] of steps.entries()) {
      const from = performance.now();
      say(`[${index + 1}/${count}] ${title}.`);
      await work();
      say(`      Done in ${((performance.now() - from) / 1000).toFixed(1)} s.`);
    }
    if (steps.length > 0 && last) say(`[${count}/${count}] ${last}.`);
  });
}
