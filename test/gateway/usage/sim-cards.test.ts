/** Activations of SIM cards: each has the time of the lock's first accepted CONNECT (interfaces.md §5). */
import t from 'tap';
import { SimCards } from '../../../gateway/usage/sim-cards.js';
import { ManualClock } from '../../../proto/clock.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';

t.test('a lock that connects again while its activation is being written keeps its time', async (t) => {
  const mac = testMac(1);
  const clock = new ManualClock(1_000);
  const ends: (() => void)[] = [];
  const sims = await SimCards.load(
    { readActivations: async () => [], activate: () => new Promise((resolve) => ends.push(() => resolve())) },
    clock,
  );
  const first = sims.activate(mac);
  await Promise.resolve();
  t.equal(ends.length, 1, 'the write is under way');
  clock.advance(5_000);
  const second = sims.activate(mac);
  ends[0]?.();
  await first;
  t.equal(sims.activatedAtMs(mac), 1_000);
  await Promise.resolve();
  ends[1]?.();
  await second;
  t.equal(sims.activatedAtMs(mac), 1_000, 'the second CONNECT did not change it');
});
