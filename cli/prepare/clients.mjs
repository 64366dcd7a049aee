// The programs and libraries of others that tests look at us with. They are more than all the rest together and only
// `npm test` wants them, so they have a package.json, a lock and a node_modules of their own in test/clients.
import { rmSync, writeFileSync } from 'node:fs';
import { runNpm } from './npm.mjs';
import { at, fingerprint, readOrNull } from './workplace.mjs';

const folder = at('test', 'clients');
const stampFile = at('test', 'clients', 'node_modules', '.lockgate-install');
const lockText = () => readOrNull(at('test', 'clients', 'package-lock.json')) ?? '';

/** True when test/clients/node_modules holds what its lock says. */
export function areClientsInstalled() {
  return readOrNull(stampFile) === fingerprint([lockText()]);
}

/** What is left to do, as `{ title, work }`, or null. */
export function clientsStep() {
  if (areClientsInstalled()) return null;
  const { packages } = JSON.parse(lockText());
  const paths = Object.keys(packages).filter((path) => path !== '' && !packages[path].optional);
  return {
    title: `Installing ${paths.length} packages of foreign clients, which tests look at us with`,
    work: async () => {
      rmSync(stampFile, { force: true });
      // Some have install scripts that compile or report; what we use of them works without.
      await runNpm(['ci', '--ignore-scripts'], { folder, packages: paths.map((path) => at('test', 'clients', path)) });
      writeFileSync(stampFile, fingerprint([lockText()]));
    },
  };
}
