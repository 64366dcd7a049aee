/**
 * A gateway that starts with the machine's clock 401 days ahead deletes no ping by age, not even in its first sweep
 * (deletion of old pings) a minute later.
 */
import t from 'tap';
import { ClockSetup } from '../helpers/clocks/clock-setup.js';
import { whyNoSetClock } from '../helpers/clocks/set-clock.js';

/** Longer than the time until the first sweep is done and reported. */
const FIRST_SWEEP_SECONDS = 75;
t.setTimeout(240_000);

t.test('every ping is still there after the first sweep', { skip: whyNoSetClock() ?? false }, async (t) => {
  const setup = await ClockSetup.open(t, 6);
  await setup.stop();
  setup.clock.set('+401d');
  await setup.start();
  await t.rejects(
    setup.nextEvent('swept', () => true, FIRST_SWEEP_SECONDS),
    /not within/,
    'nothing is deleted',
  );
  t.same(await setup.storedPings(), Array(6).fill(1));
  await setup.stop();
});
