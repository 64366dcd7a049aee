/**
 * LiveLocks, the console page's list of locks, is in order after any changes, without being sorted for each change:
 * first by how urgent a lock's trouble is. Tested without a browser, against a list that is sorted anew.
 */
import t from 'tap';
import type { Lock } from '../../../gateway/console/page/api/shapes.js';
import { compareByTrouble, LiveLocks } from '../../../gateway/console/page/live/live-locks.js';
import { TROUBLES } from '../../../proto/power/troubles.js';
import { SeededChance } from '../../helpers/pair/seeded-chance.js';

/** A lock of the list; seven names, so that some locks differ only by their MAC. */
function lockOf(number: number, changes: Partial<Lock> = {}): Lock {
  const mac_addr = `A4:C1:38:00:00:${String(number).padStart(2, '0')}`;
  return { mac_addr, name: `Lock ${number % 7}`, trouble: 'none', presence: 'online', ...changes } as Lock;
}

t.test('after any changes, the locks are the present ones, sorted', async (t) => {
  const chance = new SeededChance(7);
  const live = new LiveLocks();
  live.apply({ type: 'snapshot', part: 1, last: true, locks: Array.from({ length: 40 }, (_, n) => lockOf(n)) });
  for (let step = 0; step < 500; step++) {
    const number = chance.between(0, 50);
    const { mac_addr } = lockOf(number);
    if (chance.next() < 0.1) live.apply({ type: 'removed', mac_addr });
    else {
      const trouble = chance.pick(['none', 'none', 'theft', 'late']);
      const name = chance.next() < 0.2 ? null : `Lock ${number % 7}`;
      live.apply({ type: 'lock', lock: lockOf(number, { trouble, name, battery_percent: step }) });
    }
    // Several changes may come before the order is asked for.
    if (chance.next() < 0.5) continue;
    const present = (live.asSnapshot() as { readonly locks: readonly Lock[] }).locks;
    t.same(live.sorted, [...present].sort(compareByTrouble));
    if (!live.sorted.every((lock) => lock === live.find(lock.mac_addr))) t.fail(`a former lock after step ${step}`);
  }
});

t.test('the array stays the same until something changes, and is a new one after a change', async (t) => {
  const live = new LiveLocks();
  live.apply({ type: 'snapshot', part: 1, last: true, locks: [lockOf(1), lockOf(2)] });
  const before = live.sorted;
  t.equal(live.sorted, before);
  live.apply({ type: 'lock', lock: lockOf(2, { battery_percent: 5 }) });
  t.not(live.sorted, before);
  t.equal(live.sorted[1]?.battery_percent, 5);
  live.apply({ type: 'snapshot', part: 1, last: true, locks: [lockOf(3)] });
  t.same(
    live.sorted.map(({ mac_addr }) => mac_addr),
    [lockOf(3).mac_addr],
  );
});

t.test('the page has the gateway’s order of troubles; an unknown one comes before “none”', async (t) => {
  const locks = [...TROUBLES].reverse().map((trouble, number) => lockOf(number, { trouble }));
  const live = new LiveLocks();
  live.apply({
    type: 'snapshot',
    part: 1,
    last: true,
    locks: [...locks, lockOf(30, { trouble: 'of-a-newer-gateway' })],
  });
  // The page may be older than the gateway: a trouble that it does not know is listed before “none”.
  const expected = (TROUBLES as readonly string[]).toSpliced(-1, 0, 'of-a-newer-gateway');
  t.same(
    live.sorted.map(({ trouble }) => trouble),
    expected,
  );
});
