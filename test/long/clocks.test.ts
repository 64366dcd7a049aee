/** A start with the machine's clock 401 days ahead deletes nothing, not even in the first sweep a minute later. */
import t from 'tap';
import { ClockSetup } from '../helpers/clocks/clock-setup.js';
import { whyNoSetClock } from '../helpers/clocks/set-clock.js';

/** Longer than the time until the first sweep is done and reported. */
const SWEPT_WITHIN_SECONDS = 75;
t.setTimeout(240_000);

t.test('every ping is still there after the first sweep', { skip: whyNoSetClock() ?? false }, async (t) => {
  const site = await ClockSetup.open(t, 6);
  await site.stop();
  site.clock.set('+401d');
  await site.start();
  await t.rejects(
    site.nextEvent('swept', () => true, SWEPT_WITHIN_SECONDS),
    /not within/,
    'nothing is deleted',
  );
  t.same(await site.storedPings(), Array(6).fill(1));
  await site.stop();
});
