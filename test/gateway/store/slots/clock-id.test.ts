/**
 * Ids that a clock gives to uplinks where several gateways write one log. Each gateway writes in a slot. An id is
 * made of a time, a counter within its millisecond and the slot's number. Ids ascend in each slot and for each lock,
 * and a wrong clock gives none.
 */
import t from 'tap';
import { MAX_DENSE_ID, slotOf } from '../../../../gateway/store/contract/log/log-position.js';
import { ClockIds, counterOf, lowestIdAt, timeOfIdMs } from '../../../../gateway/store/contract/slots/clock-id.js';
import { DatabaseTime } from '../../../../gateway/store/contract/slots/database-time.js';
import { Hours, Minutes, Seconds } from '../../../../proto/clock.js';

const NOW_MS = Date.UTC(2026, 10, 23);

t.test('ids name their slot and their time, and ascend even if the clock stands still or goes back', async (t) => {
  // Slot 7, which has no ids yet (0). Each id must be above a given one (here 0), the lock's last.
  const ids = new ClockIds(7, 0);
  const made = [NOW_MS, NOW_MS, NOW_MS - 5, NOW_MS + 1].map((nowMs) => ids.next(0, nowMs));
  t.same(
    made,
    [...made].sort((a, b) => a - b),
  );
  t.equal(new Set(made).size, 4, 'all differ');
  t.same(new Set(made.map(slotOf)), new Set([7]));
  t.equal(timeOfIdMs(made[0] ?? 0), NOW_MS);
  t.equal(made[0], lowestIdAt(NOW_MS, 7));
  t.ok((made[0] ?? 0) > MAX_DENSE_ID, 'above the ids of a store for one gateway (1, 2, 3 …)');
  t.equal(ids.lastId, made[3]);
});

t.test('the ids of a lock ascend whichever slot it connects to', async (t) => {
  const [one, other] = [new ClockIds(3, 0), new ClockIds(2, 0)];
  const first = one.next(0, NOW_MS + Minutes(1));
  const second = other.next(first, NOW_MS);
  t.ok(second > first, 'although the other gateway’s clock is a minute behind');
  t.ok(one.next(second, NOW_MS) > second);
  t.ok(other.next(41, NOW_MS) > second, 'an id of a store for one gateway, which counts 1, 2, 3 …, limits nothing');
  t.equal(counterOf(MAX_DENSE_ID), 0, 'nor does the highest of those ids');
});

t.test('a new owner of a slot starts above what its former owner stored', async (t) => {
  const before = new ClockIds(5, 0).next(0, NOW_MS + Seconds(30));
  t.ok(new ClockIds(5, before).next(0, NOW_MS) > before);
});

t.test('a wrong clock gives no id, and there is no slot beyond 1 to 63', async (t) => {
  const ids = new ClockIds(1, lowestIdAt(NOW_MS + Hours(1) + Seconds(1), 1));
  t.throws(() => ids.next(0, NOW_MS), { name: 'IdClockError', message: /over an hour ahead/ });
  t.throws(() => new ClockIds(1, 0).next(0, Date.UTC(2020, 0, 2)), { name: 'IdClockError' });
  t.throws(() => new ClockIds(1, 0).next(0, Date.UTC(2060, 0, 1)), { name: 'IdClockError' });
  for (const slot of [0, 64, 1.5]) t.throws(() => new ClockIds(slot, 0), RangeError);
});

t.test('the database’s time goes on between two readings, and never back', async (t) => {
  // A reading of the database's time, and the monotonic time (ms) of this reading.
  const time = new DatabaseTime(NOW_MS, 100);
  t.equal(time.at(350), NOW_MS + 250);
  time.note(NOW_MS + 200, 400);
  t.equal(time.at(410), NOW_MS + 250, 'a reading that is behind slows it down');
  t.equal(time.at(500), NOW_MS + 300);
});
