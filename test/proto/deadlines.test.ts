// Checks the queue of items by due time (proto/deadlines.ts). An item that is not in the queue has the due time -1.
import fc from 'fast-check';
import t from 'tap';
import { Deadlines, type Due } from '../../proto/deadlines.js';

t.test('items are taken in the order of their due times, and each item once at its last time', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat({ max: 9 }), fc.nat({ max: 50 })), { maxLength: 60 }), (moves) => {
      const items: (Due & { name: number })[] = Array.from({ length: 10 }, (_, name) => ({ name, dueMs: -1 }));
      const deadlines = new Deadlines<Due & { name: number }>();
      for (const [name, dueMs] of moves) deadlines.set(items[name] as Due & { name: number }, dueMs);
      /** Due time and name of each item that is due before 40, in the order in which the queue gave them. */
      const taken: [number, number][] = [];
      for (let item = deadlines.take(40); item !== undefined; item = deadlines.take(40)) {
        taken.push([item.dueMs, item.name]);
        item.dueMs = -1;
      }
      const last = new Map(moves);
      const due = [...last].map(([name, dueMs]) => [dueMs, name]).filter(([dueMs]) => (dueMs as number) < 40);
      return (
        JSON.stringify([...taken].sort()) === JSON.stringify(due.sort()) &&
        taken.every(([dueMs], index) => index === 0 || (taken[index - 1] as [number, number])[0] <= dueMs)
      );
    }),
    { numRuns: 1000, seed: 11 },
  );
  t.pass('1000 random series of changes were in order');
});

t.test('changing due times again and again does not fill the queue with stale entries', async (t) => {
  const items = Array.from({ length: 100 }, (_, name) => ({ name, dueMs: -1 }));
  const deadlines = new Deadlines<(typeof items)[number]>();
  let maxEntries = 0;
  for (let change = 0; change < 50_000; change++) {
    // The times repeat, so an item’s stale time may become its time again. The factors are prime, to mix the order.
    deadlines.set(items[(change * 7) % 100] as (typeof items)[number], (change * 7919) % 503);
    maxEntries = Math.max(maxEntries, deadlines.entries);
  }
  t.ok(maxEntries < 2000, `at most ${maxEntries} entries`);
  const expected = items.map(({ name, dueMs }) => [dueMs, name]);
  const taken: number[][] = [];
  for (let item = deadlines.take(1000); item !== undefined; item = deadlines.take(1000)) {
    taken.push([item.dueMs, item.name]);
    item.dueMs = -1;
  }
  const inOrder = (all: number[][]): number[][] => [...all].sort(([a = 0, b = 0], [c = 0, d = 0]) => a - c || b - d);
  t.same(inOrder(taken), inOrder(expected), 'each item is taken once, at its last time');
  t.ok(taken.every(([dueMs = 0], index) => index === 0 || (taken[index - 1]?.[0] ?? 0) <= dueMs));
});
