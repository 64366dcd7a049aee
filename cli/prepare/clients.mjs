// Installs foreign clients: programs and libraries of others that tests run against lockgate. They are larger than all
// other packages together and only `npm test` needs them, so test/clients has a separate package.json, lock file and
// node_modules.
import { rmSync, writeFileSync } from 'node:fs';
import { runNpm } from './npm.mjs';
import { fingerprint, pathInClone, readOrNull } from './workplace.mjs';

const folder = pathInClone('test', 'clients');
/** Has the fingerprint of the installed lock file. */
const stampFile = pathInClone('test', 'clients', 'node_modules', '.lockgate-install');
const lockText = () => readOrNull(pathInClone('test', 'clients', 'package-lock.json')) ?? '';

/** Whether test/clients/node_modules matches its lock file. */
export function areClientsInstalled() {
  return readOrNull(stampFile) === fingerprint([lockText()]);
}

/** The install step, as `{ title, work }`; null if nothing is missing. */
export function clientsStep() {
  if (areClientsInstalled()) return null;
  const { packages } = JSON.parse(lockText());
  const paths = Object.keys(packages).filter((path) => path !== '' && !packages[path].optional);
  return {
    title: `Installing ${paths.length} packages of foreign clients for tests`,
    work: async () => {
      rmSync(stampFile, { force: true });
      // Some packages have install scripts that compile parts of them or send statistics; the tests need neither.
      await runNpm(['ci', '--ignore-scripts'], {
        folder,
        // Counted while npm installs them, to show the progress.
        packages: paths.map((path) => pathInClone('test', 'clients', path)),
      });
      writeFileSync(stampFile, fingerprint([lockText()]));
    },
  };
}
