/**
 * A URL to whose address no webhook may be sent is refused when an operator sets it. The error has the address's range
 * and the setting that allows it. A name that can't be resolved at that moment is accepted.
 */
import t from 'tap';
import { type AddressRange, parseRange } from '../../../gateway/webhooks/sending/address-rule.js';
import type { LookupAll } from '../../../gateway/webhooks/sending/name-service.js';
import { TargetCheck } from '../../../gateway/webhooks/sending/target-check.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { testGateway } from '../../helpers/gateway/test-gateway.js';

/** A name service with these names; it never answers for `slow.example`. */
const lookUp: LookupAll = (hostname, _options, callback) => {
  const addresses: Readonly<Record<string, readonly string[]>> = {
    'inner.example': ['10.1.2.3', 'fd00::8'],
    'mixed.example': ['10.1.2.3', '93.184.215.14'],
    'outer.example': ['93.184.215.14'],
  };
  const found = addresses[hostname];
  if (hostname === 'slow.example') return;
  const error = Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
  if (found === undefined) callback(error, []);
  else
    callback(
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
};

/** The check of a gateway whose operator allows these ranges, besides public addresses. */
const checkWith = (allowed: readonly AddressRange[] = []): TargetCheck => new TargetCheck(allowed, lookUp);

t.test('the error for a refused address has the range, what the range is for, and the remedy', async (t) => {
  const refused: readonly (readonly [url: string, range: string, kind: RegExp])[] = [
    ['http://127.0.0.1:9/hook', '127.0.0.0/8', /loopback/],
    ['http://0x7f.1/', '127.0.0.0/8', /loopback/],
    ['https://10.0.0.8/', '10.0.0.0/8', /private/],
    ['https://172.20.1.1/', '172.16.0.0/12', /private/],
    ['https://192.168.1.1/', '192.168.0.0/16', /private/],
    ['http://169.254.169.254/latest', '169.254.0.0/16', /metadata/],
    ['http://[::1]:8080/', '::1/128', /loopback/],
    ['http://[::ffff:10.0.0.8]/', '10.0.0.0/8', /private/],
    ['http://[fd00:ec2::254]/', 'fc00::/7', /private/],
    ['http://192.0.2.7/', '192.0.2.7/32', /not public/],
    ['https://inner.example/', '10.0.0.0/8', /inner\.example resolves to 10\.1\.2\.3/],
  ];
  for (const [url, range, kind] of refused) {
    const error = await checkWith()
      .check(url)
      .catch((each: unknown) => each);
    t.match(error, { code: 'input-webhook-address', message: kind, faults: [{ pointer: '/url' }] }, url);
    t.match(error, { message: `is in ${range} (` }, url);
    t.ok((error as Error).message.endsWith(`--allow-webhook-range ${range}`), url);
    // Following the remedy helps.
    await checkWith([parseRange(range)]).check(url);
  }
});

t.test('public addresses, names with at least one, and names that can’t be resolved now are accepted', async (t) => {
  const urls = ['https://93.184.215.14/', 'https://outer.example/', 'https://mixed.example/', 'https://gone.example/'];
  for (const url of [...urls, 'https://slow.example/', 'no URL']) await t.resolves(checkWith().check(url), url);
});

t.test('the operators’ interface refuses such an address when a URL is added or changed', async (t) => {
  const gateway = await testGateway(t, { lookUp });
  const refusal = { status: 400, body: { code: 'input-webhook-address', errors: [{ pointer: '/url' }] } };
  t.match(await callOperator(gateway, 'POST', '/webhooks', { url: 'https://inner.example/' }), refusal);
  t.same(await gateway.store.listWebhookUrls(), [], 'nothing was added');
  t.match(await callOperator(gateway, 'POST', '/webhooks', { url: 'https://gone.example/' }), { status: 201 });
  t.match(await callOperator(gateway, 'POST', '/webhooks/1', { url: 'http://169.254.169.254/' }), refusal);
  t.match(await callOperator(gateway, 'POST', '/webhooks/1', { url: 'http://127.0.0.1:9/' }), { status: 200 });
});
