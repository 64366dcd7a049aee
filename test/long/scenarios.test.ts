// All stock scenarios over MQTT against a real gateway: each meets what it expects, with the same pings in the same
// order as without a gateway. The month takes 12 minutes at 3600 × speed.
import t from 'tap';
import { stockNames } from '../../firmware-sim/stock-scenarios.js';
import { playLiveAgainst, sameAsVirtual } from '../helpers/scenario-live.js';
import { testGateway } from '../helpers/test-gateway.js';

const names = stockNames().filter((name) => name !== 'month');

t.jobs = 2;

t.test('a dozen but one, at 600 × speed, all at once', async (t) => {
  const gateway = await testGateway(t, { speed: 600 });
  await Promise.all(names.map(async (name) => sameAsVirtual(t, await playLiveAgainst(gateway, name, 600))));
});

t.test('a month, at 3600 × speed', { buffered: true }, async (t) => {
  const gateway = await testGateway(t, { speed: 3600 });
  await sameAsVirtual(t, await playLiveAgainst(gateway, 'month', 3600));
});
