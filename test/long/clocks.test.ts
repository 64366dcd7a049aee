/**
 * A gateway that starts with the machine's clock 401 days ahead deletes no ping by age, not even in its first sweep
 * (deletion of old pings) a minute later.
 */
import t from 'tap';
import { ClockSetup } from '../helpers/clocks/clock-setup.js';
import { whyNoSetClock } from '../helpers/clocks/set-clock.js';

/** Longer than the time until the first sweep is done and reported. */
const FIRST_SWEEP_SECONDS = 75;
/** Each lock sends one ping. */
const LOCKS = 6;
t.setTimeout(240_000);

t.test('every ping is still there after the first sweep', { skip: whyNoSetClock() ?? false }, async (t) => {
  const setup = await ClockSetup.open(t, LOCKS);
  await setup.stop();
  setup.clock.set('+401d');
  await setup.start();
  // The event `swept` would report deleted pings.
  await t.rejects(
    setup.nextEvent('swept', () => true, FIRST_SWEEP_SECONDS),
    /not within/,
    'nothing is deleted',
  );
  t.same(await setup.storedPings(), Array(LOCKS).fill(1), 'the store has the ping of each lock');
  await setup.stop();
});
