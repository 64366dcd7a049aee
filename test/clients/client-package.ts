/** Finds packages installed in test/clients. Node.js would not find them from the compiled files in dist. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from '../helpers/house/our-files.js';

const require = createRequire(join(root, 'test/clients/package.json'));

/** The absolute path of a module, such as `@stoplight/prism-cli/dist/index.js`. @throws Error if not installed */
export function clientPath(name: string): string {
  try {
    return require.resolve(name);
  } catch (error) {
    throw new Error(`${name} is not installed in test/clients; npm test installs it.`, { cause: error });
  }
}

/** A sentence if a package is not installed in test/clients; null if it is. */
export function missingClient(name: string): string | null {
  try {
    clientPath(name);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The exports of a CommonJS or JSON module. The caller gives the type, so that compiling needs no such package. */
export function loadClient<Exports>(name: string): Exports {
  return require(clientPath(name)) as Exports;
}
