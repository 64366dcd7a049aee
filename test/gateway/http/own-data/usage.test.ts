/**
 * A merchant reads its usage of cellular data and its statements (bills): pages, CSV, and nothing about other merchants
 * (interfaces.md §2 and §5).
 */
import { parse } from 'csv-parse/sync';
import t from 'tap';
import type { Month } from '../../../../gateway/usage/month.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { callMerchantApi, type MerchantAnswer } from '../../../helpers/http/merchant-call.js';
import { ownDataSite, SITE_CLOSED_MONTH, SITE_NOW_MS } from '../../../helpers/http/own-data/site.js';

interface UsageJson {
  readonly mac_addr: string;
  readonly bytes: number;
}

t.test('usage has stable pages in the order of MACs, as JSON and as CSV', async (t) => {
  const { gateway, amber, basil } = await ownDataSite(t);
  const month = '2026-09' as Month;
  const counts = { messagesUp: 1, messagesDown: 2, connections: 3, bytesUp: 40, bytesDown: 5 };
  const row = { month, simulated: false, merchantId: amber.merchantId, ...counts };
  const add = (number: number, members: Partial<typeof row> = {}) =>
    gateway.store.usage.add([{ ...row, mac: testMac(number), ...members }], SITE_NOW_MS);
  for (const number of [12, 10, 14]) await add(number);
  await add(12, { simulated: true });
  await add(11, { merchantId: basil.merchantId });
  await add(10, { month: '2026-08' as Month });

  const read = (query: string, key = amber.key): Promise<MerchantAnswer> =>
    callMerchantApi(gateway, `/v1/usage?month=${month}&${query}`, { key });
  const first = (await read('limit=2')).body as { data: UsageJson[]; next_cursor: string };
  const macsOf = (data: readonly UsageJson[]): string[] => data.map(({ mac_addr }) => mac_addr);
  t.same(
    macsOf(first.data),
    [10, 12].map((number) => formatMac(testMac(number))),
  );
  t.match(first.data[0], { bytes: 45, bytes_up: 40, messages: 3, connections: 3, sim_activated_at: null });
  await add(9);
  const second = (await read(`limit=9&cursor=${first.next_cursor}`)).body as { data: UsageJson[]; next_cursor: null };
  t.match(second, { data: [{ simulated: true }, { simulated: false }], next_cursor: null });
  t.same(
    macsOf(second.data),
    [12, 14].map((number) => formatMac(testMac(number))),
    'lock 9, added between the pages, moves no other lock',
  );
  t.same(macsOf(((await read('', basil.key)).body as { data: UsageJson[] }).data), [formatMac(testMac(11))]);

  const csv = await read('limit=2&format=csv');
  t.match(csv.headers, { 'content-type': /^text\/csv/, link: /rel="next"/ });
  const rows = parse(csv.text, { columns: true });
  t.match(rows, [{ mac_addr: formatMac(testMac(9)), bytes: '45', simulated: 'no' }, { bytes: '45' }]);
});

t.test('without a month the answer is the usage of the current month so far', async (t) => {
  const { gateway, amber } = await ownDataSite(t);
  const { body } = await callMerchantApi(gateway, '/v1/usage', { key: amber.key });
  t.match(body, { data: [{ mac_addr: amber.mac, connections: 1, messages_up: 4, sim_activated_at: String }] });
});

t.test('a statement is answered as it was closed, also as CSV, and only to its merchant', async (t) => {
  const { gateway, amber, basil } = await ownDataSite(t);
  const where = `/v1/statements/${SITE_CLOSED_MONTH}`;
  const stored = await gateway.store.usage.findStatement(amber.merchantId, SITE_CLOSED_MONTH);
  const answer = await callMerchantApi(gateway, where, { key: amber.key });
  t.equal(answer.text, stored);
  t.match(answer.body, { merchant: 'Amber', month: SITE_CLOSED_MONTH });
  t.match((await callMerchantApi(gateway, where, { key: basil.key })).body, { merchant: 'Basil' });
  const csv = await callMerchantApi(gateway, `${where}?format=csv`, { key: amber.key });
  t.match(parse(csv.text, { columns: true }), [{ merchant: 'Amber' }]);
  const list = await callMerchantApi(gateway, '/v1/statements', { key: amber.key });
  t.match(list.body, { data: [{ month: SITE_CLOSED_MONTH, closed_at: String }], next_cursor: null });
});
