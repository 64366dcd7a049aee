// All built-in scenarios over MQTT against a real gateway, at 240 × speed: each meets its expectations, with the same
// pings in the same order as without a gateway. The machine must be nearly idle, since each delay counts 240 times. The
// scenario `month` runs by a shared clock that waits for messages: its 31 days would take 12 minutes even at the
// highest speed.
import t from 'tap';
import { builtInNames } from '../../firmware-sim/scenario/built-in.js';
import { testGateway } from '../helpers/gateway/test-gateway.js';
import { checkLiveOutcome, playLiveAgainst, playSynchronised } from '../helpers/sim/scenario-live.js';

const SPEED = 240;
const names = builtInNames().filter((name) => name !== 'month');

t.setTimeout(1_800_000);

t.test(`all scenarios except the month, at ${SPEED} × speed, at the same time`, async (t) => {
  t.setTimeout(1_800_000);
  const gateway = await testGateway(t, { speed: SPEED });
  await Promise.all(names.map(async (name) => checkLiveOutcome(t, await playLiveAgainst(gateway, name, SPEED))));
});

t.test('the month, with a shared clock', async (t) => {
  t.setTimeout(900_000);
  for (const outcome of await playSynchronised(t, ['month'])) checkLiveOutcome(t, outcome);
});
