/**
 * Wrong input to the operations on a merchant's own data: a wrong query has the code `input-query`, a wrong body
 * `input-body`, both with a pointer to what is wrong; an unknown path part is 404 (interfaces.md §2).
 */
import t from 'tap';
import { OWN_DATA_ROUTES } from '../../../../gateway/http/merchant/own-data/routes.js';
import { callMerchantApi, type MerchantCall } from '../../../helpers/http/merchant-call.js';
import { type OwnDataSite, ownDataSite } from '../../../helpers/http/own-data/site.js';

/** A call with Amber's key. */
const callOwn = ({ gateway, amber }: OwnDataSite, where: string, terms: MerchantCall = {}) =>
  callMerchantApi(gateway, where, { key: amber.key, ...terms });

/** A parameter in the JSON Schema of a route's query. */
interface Parameter {
  readonly enum?: readonly string[];
  readonly items?: { readonly enum?: readonly string[] };
}

function parametersOf(query: unknown): [name: string, parameter: Parameter][] {
  const { properties = {} } = (query ?? {}) as { readonly properties?: Readonly<Record<string, Parameter>> };
  return Object.entries(properties);
}

t.test('a filter refuses a value that it can’t have', async (t) => {
  const site = await ownDataSite(t);
  const { mac } = site.amber;
  const wrong: [where: string, pointer: string][] = [
    [`/v1/locks/${mac}/pings?reason=FOO`, '/reason/0'],
    [`/v1/locks/${mac}/pings?reason=REASON_THEFT,REASON_UNRECOGNIZED_1`, '/reason/1'],
    [`/v1/locks/${mac}/pings?from=yesterday`, '/from'],
    ['/v1/events?reasons=FOO', '/reasons'],
    ['/v1/events?types=FOO', '/types'],
    ['/v1/commands?mac_addr=FOO', '/mac_addr'],
    ['/v1/webhooks/1/deliveries?mac_addr=FOO', '/mac_addr'],
  ];
  const writtenOut = wrong.length;
  // And each parameter with a fixed set of words, or a list of them.
  for (const { method, path, query } of OWN_DATA_ROUTES)
    for (const [name, { enum: words, items }] of parametersOf(query))
      if (method === 'GET' && (words ?? items?.enum) !== undefined)
        wrong.push([
          `${path.replace('{mac}', mac).replace('{id}', '1')}?${name}=FOO`,
          words ? `/${name}` : `/${name}/0`,
        ]);
  t.ok(wrong.length > writtenOut, 'parameters with a fixed set of words are found');
  for (const [where, pointer] of wrong)
    t.match(await callOwn(site, where), { status: 400, body: { code: 'input-query', errors: [{ pointer }] } }, where);
  t.match(await callOwn(site, `/v1/locks/${mac}/pings?reason=REASON_UNRECOGNIZED_99`), { status: 200 });
});

t.test('a parameter with one value is refused if it is repeated; one that is a list may be repeated', async (t) => {
  const site = await ownDataSite(t);
  const { mac } = site.amber;
  for (const [where, pointer] of [
    ['/v1/locks?limit=1&limit=2', '/limit'],
    ['/v1/locks?cursor=a&cursor=a', '/cursor'],
    [`/v1/locks/${mac}/track?format=gpx&format=gpx`, '/format'],
    ['/v1/events?wait=0&wait=0', '/wait'],
  ] as const) {
    const errors = [{ pointer, detail: 'expected one value: the parameter is repeated' }];
    t.match(await callOwn(site, where), { status: 400, body: { code: 'input-query', errors } }, where);
  }
  for (const where of ['/v1/locks?presence=late&presence=online', '/v1/events?types=gps&types=cellular,'])
    t.match(await callOwn(site, where), { status: 200 }, where);
});

t.test('a path part of any length is answered like an unknown one', async (t) => {
  const site = await ownDataSite(t);
  const long = 'x'.repeat(1_000);
  for (const where of [
    `/v1/locks/${long}`,
    `/v1/locks/${long}/pings`,
    `/v1/commands/${long}`,
    `/v1/statements/${long}`,
  ])
    t.match(await callOwn(site, where), { status: 404 }, where.slice(0, 40));
});

t.test('a wrong body is another code than a wrong query', async (t) => {
  const site = await ownDataSite(t);
  const where = `/v1/locks/${site.amber.mac}`;
  for (const [body, pointer] of [
    [{ name: 7 }, '/name'],
    [{ name: 'a\u0007b' }, '/name'],
    [{ labels: { a: 7 } }, '/labels/a'],
  ] as const)
    t.match(
      await callOwn(site, where, { method: 'PATCH', body }),
      { status: 400, body: { code: 'input-body', errors: [{ pointer }] } },
      JSON.stringify(body),
    );
});
