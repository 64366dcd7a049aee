/**
 * The calls that the pages make (gateway/console/page/api/) do what the screens promise. The HTTP interface ignores a
 * member that is null, as if it were left out. So where a screen passes null to remove a name or a role, the call must
 * send an empty name, or `none`.
 */
import t, { type Test } from 'tap';
import { merchantApi } from '../../../gateway/console/page/api/merchant.js';
import { operatorApi } from '../../../gateway/console/page/api/operator.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { addUser, Dashboard } from '../../helpers/console/dashboard.js';
import { MERCHANT, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';

/** Sends the pages' calls, which have only a path, to this port, with these headers added. */
function sendPageCalls(t: Test, port: number, headers: Readonly<Record<string, string>>): void {
  const realFetch = globalThis.fetch;
  t.teardown(() => {
    globalThis.fetch = realFetch;
  });
  globalThis.fetch = (path, request) => {
    const added = { ...(request?.headers as Record<string, string>), ...headers };
    return realFetch(`http://127.0.0.1:${port}${path}`, { ...request, headers: added });
  };
}

async function openDashboard(t: Test, gateway: Gateway): Promise<void> {
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  const { cookie } = await Dashboard.open(gateway, MERCHANT, 'ada');
  sendPageCalls(t, gateway.httpPort, { cookie, origin: `http://127.0.0.1:${gateway.httpPort}` });
}

t.test('the dashboard takes a user’s role away', async (t) => {
  const gateway = await testGateway(t);
  await openDashboard(t, gateway);
  const id = await addUser(gateway, MERCHANT, 'bo', 'staff');
  t.match(await merchantApi.changeUser(String(id), { dashboard: 'viewer' }), { dashboard: 'viewer' });
  t.match(await merchantApi.changeUser(String(id), { dashboard: null }), { dashboard: null });
});

t.test('the dashboard gives a lock a name, and takes it away', async (t) => {
  const gateway = await testGateway(t);
  await openDashboard(t, gateway);
  await gateway.accounts.addDevice({ mac: testMac(), merchant: MERCHANT });
  const mac = formatMac(testMac());
  t.match(await merchantApi.rename(mac, 'Harbour 7'), { name: 'Harbour 7' });
  t.match(await merchantApi.rename(mac, null), { name: null });
});

t.test('the operators’ page gives a lock a name, and takes it away', async (t) => {
  const gateway = await testGateway(t);
  sendPageCalls(t, gateway.operatorPort, { authorization: `Bearer ${gateway.operatorToken}` });
  await gateway.accounts.addDevice({ mac: testMac(), merchant: MERCHANT });
  const mac = formatMac(testMac());
  await operatorApi.rename(mac, 'Harbour 7');
  t.match(await operatorApi.lock(mac), { name: 'Harbour 7' });
  await operatorApi.rename(mac, null);
  t.match(await operatorApi.lock(mac), { name: null });
});
