/**
 * A program that uses a client generated from the gateway's OpenAPI document compiles, and a wrong program does not:
 * the document has types for what the interface returns and takes (docs/http.md). Only `npm run check` runs it, because
 * it calls the compiler.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { clientPath } from '../clients/client-package.js';
import { testGateway } from '../helpers/gateway/test-gateway.js';
import { root } from '../helpers/house/our-files.js';
import { typeFaults } from '../helpers/house/type-faults.js';
import { callMerchantApi } from '../helpers/http/merchant-call.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

/** A rental, written with openapi-fetch and the generated types. */
function rentalProgram(types: string): string {
  // The package has its CommonJS file beside its module.
  return `
    import createClient from ${JSON.stringify(clientPath('openapi-fetch').replace('.cjs', '.mjs'))};
    import type { paths } from ${JSON.stringify(types)};
    const client = createClient<paths>({ baseUrl: 'http://127.0.0.1:8080' });
    export async function rent(mac: string): Promise<number> {
      const { data: locks } = await client.GET('/v1/locks', { params: { query: { presence: ['online'], limit: 10 } } });
      const first: string | undefined = locks?.data[0]?.mac_addr;
      const { data: command } = await client.POST('/v1/locks/{mac}/commands', {
        params: { path: { mac: first ?? mac }, header: { 'idempotency-key': 'rental 1' } },
        body: { type: 'unlock' },
      });
      const { data: events } = await client.GET('/v1/events', { params: { query: { wait: 30 } } });
      const reasons: string[] = (events?.data ?? []).map(({ reason }) => reason);
      return (command?.id ?? 0) + reasons.length;
    }`;
}

const NO_CLIENTS = existsSync(join(root, 'test/clients/node_modules/openapi-typescript'))
  ? false
  : 'the third-party client packages are not installed; npm test installs them';

t.test('a generated client compiles in a program, and knows misspelt members', { skip: NO_CLIENTS }, async (t) => {
  const { openapiTypes } = await import('../clients/openapi-tools.js');
  const gateway = await testGateway(t);
  const { body: document } = await callMerchantApi(gateway, '/openapi.json');
  const types = join(tempFolder(t), 'lockgate.d.ts');
  writeFileSync(types, await openapiTypes(document as object));
  const program = rentalProgram(types);
  const [errors, errorsOfWrong] = typeFaults(t, [program, program.replace('mac_addr', 'mac_address')]);
  t.same(errors, []);
  t.match(errorsOfWrong, [/mac_address/], 'a misspelt member is an error');
});
