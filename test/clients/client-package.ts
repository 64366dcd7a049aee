/** Finds what test/clients/package.json installs: Node.js looks for packages above the importing file, so not there. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from '../helpers/house/our-files.js';

const require = createRequire(join(root, 'test/clients/package.json'));

/** The absolute path of a module, such as `@stoplight/prism-cli/dist/index.js`; throws where `npm test` never ran. */
export function clientPath(name: string): string {
  try {
    return require.resolve(name);
  } catch (error) {
    throw new Error(`${name} is not installed in test/clients; npm test installs it.`, { cause: error });
  }
}

/** What a CommonJS or JSON module exports. The caller says the type, so that no compile needs these packages. */
export function loadClient<Exports>(name: string): Exports {
  return require(clientPath(name)) as Exports;
}
