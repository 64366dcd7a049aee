// All stock scenarios over MQTT against a real gateway, by a clock that runs fast: each meets what it expects, with the
// same pings in the same order as without a gateway. That needs a machine with little else to do: what it stops for
// counts 240 times. The month is played in step: its 31 days would take 12 minutes at the highest speed there is.
import t from 'tap';
import { builtInNames } from '../../firmware-sim/scenario/built-in.js';
import { testGateway } from '../helpers/gateway/test-gateway.js';
import { playInStep, playLiveAgainst, sameAsVirtual } from '../helpers/sim/scenario-live.js';

const SPEED = 240;
const names = builtInNames().filter((name) => name !== 'month');

t.setTimeout(1_800_000);

t.test(`a dozen but one, at ${SPEED} × speed, all at once`, async (t) => {
  t.setTimeout(1_800_000);
  const gateway = await testGateway(t, { speed: SPEED });
  await Promise.all(names.map(async (name) => sameAsVirtual(t, await playLiveAgainst(gateway, name, SPEED))));
});

t.test('a month, in step', async (t) => {
  t.setTimeout(900_000);
  for (const outcome of await playInStep(t, ['month'])) sameAsVirtual(t, outcome);
});
