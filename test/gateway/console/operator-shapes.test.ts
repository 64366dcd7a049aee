/**
 * The screens of the console show locks in the shape of the merchants' interface. The operators' interface has other
 * member names, so their page converts its answers and the events of its stream; the results must be equal.
 */
import t from 'tap';
import { lockDetailOf, type OperatorLockDetail } from '../../../gateway/console/page/api/operator-shapes.js';
import { readChange } from '../../../gateway/console/page/live/read-change.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { MERCHANT, testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';

t.test('an operator’s lock is shown as its merchant’s is', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, testMac());
  const stored = waitForEvents(gateway, 'uplink', 1);
  await lock.send(testBytes(1));
  await stored;
  const mac = formatMac(testMac());
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  const { body: merchantsAnswer } = await callMerchantApi(gateway, `/v1/locks/${mac}`, { key });
  const { body: operatorsAnswer } = await callOperator(gateway, 'GET', `/devices/${mac}`);
  const shown = lockDetailOf(operatorsAnswer as OperatorLockDetail);
  // The screen shows no SIM.
  const { sim, ...expected } = merchantsAnswer as Record<string, unknown>;
  t.ok(sim);
  t.ok(shown.battery_percent);
  t.same(shown, { ...expected, merchant: MERCHANT });
});

t.test('changes of both streams are read', async (t) => {
  const operatorLock = { mac: 'A4:C1:38:00:00:01', presence: 'never-seen', state: null };
  const snapshot = { part: 1, last: true, locks: [operatorLock] };
  t.match(readChange('snapshot', JSON.stringify(snapshot)), {
    type: 'snapshot',
    last: true,
    locks: [{ mac_addr: operatorLock.mac, position: null, received_at: null }],
  });
  t.match(readChange('lock', JSON.stringify(operatorLock)), { type: 'lock', lock: { mac_addr: operatorLock.mac } });
  const merchantLock = { mac_addr: operatorLock.mac, name: 'Harbour 7' };
  t.same(readChange('lock', JSON.stringify(merchantLock)), { type: 'lock', lock: merchantLock });
  for (const removed of [{ mac: operatorLock.mac }, { mac_addr: operatorLock.mac }])
    t.same(readChange('removed', JSON.stringify(removed)), { type: 'removed', mac_addr: operatorLock.mac });
});
