/**
 * The lists in which the store holds its newest uplinks by key and by lock in memory (memtable) behave like plain
 * arrays: rows are inserted at the end and in between, and removed, beyond each size at which the block of memory
 * grows.
 */
import t from 'tap';
import { IdList } from '../../../gateway/store/sqlite/log/memtable/id-list.js';
import { KeyList } from '../../../gateway/store/sqlite/log/memtable/key-list.js';
import { NumberRows } from '../../../gateway/store/sqlite/log/memtable/number-rows.js';
import { chooseSeed, SeededChance } from '../../helpers/pair/seeded-chance.js';

const seed = chooseSeed();
t.comment(`seed ${seed}; repeat: LOCKGATE_SEED=${seed} node dist/test/gateway/store/number-rows.test.js`);

t.test('NumberRows equals an array of rows', async (t) => {
  const random = new SeededChance(seed);
  // Rows of two numbers.
  const rows = new NumberRows(2);
  const plain: [number, number][] = [];
  for (let step = 0; step < 2000; step++) {
    const insertedAt = random.between(0, plain.length + 1);
    if (plain.length > 0 && random.between(0, 4) === 0) {
      const removed = random.between(0, plain.length);
      rows.remove(removed);
      plain.splice(removed, 1);
      continue;
    }
    rows.insert(insertedAt);
    // A new row is all zeros, whatever was there earlier.
    if (rows.at(insertedAt, 0) !== 0 || rows.at(insertedAt, 1) !== 0)
      t.fail(`step ${step}: row ${insertedAt} is not empty`);
    const row: [number, number] = [step, Number.MAX_SAFE_INTEGER - step];
    rows.set(insertedAt, 0, row[0]);
    rows.set(insertedAt, 1, row[1]);
    plain.splice(insertedAt, 0, row);
  }
  t.same(
    Array.from({ length: rows.length }, (_, row) => [rows.at(row, 0), rows.at(row, 1)]),
    plain,
  );
});

t.test('KeyList is sorted by key, finds keys, and drops the newest', async (t) => {
  const random = new SeededChance(seed + 1);
  const list = new KeyList();
  let plain: { boot: number; sequence: number; id: number }[] = [];
  for (let id = 1; id <= 1000; id++) {
    // Boots near 2 ** 32, the highest, and so few keys that many uplinks share one.
    const key = { boot: 0xffff_fff0 + random.between(0, 3), sequence: random.between(0, 300) };
    list.add(key.boot, key.sequence, id);
    plain.push({ ...key, id });
  }
  const check = (what: string): void => {
    const sorted = [...plain].sort((a, b) => a.boot - b.boot || a.sequence - b.sequence);
    const keys = Array.from({ length: list.length }, (_, index) => [list.bootAt(index), list.sequenceAt(index)]);
    t.same(
      keys,
      sorted.map(({ boot, sequence }) => [boot, sequence]),
      what,
    );
    const { boot, sequence } = sorted.at(-1) as { boot: number; sequence: number };
    t.same(list.last, { boot, sequence }, `${what}, the last`);
    for (const { boot, sequence } of plain.slice(0, 50)) {
      const ids = plain.filter((each) => each.boot === boot && each.sequence === sequence).map(({ id }) => id);
      t.same(
        list.find(boot, sequence).sort((a, b) => a - b),
        ids,
        `${what}, ${boot}/${sequence}`,
      );
    }
    t.same(list.find(1, 1), [], 'a missing key is not found');
  };
  check('all');
  list.dropFrom(700);
  plain = plain.filter(({ id }) => id < 700);
  check('without the newest');
});

t.test('IdList returns the ids after a given id', async (t) => {
  const list = new IdList();
  t.equal(list.last, 0);
  for (let id = 3; id <= 300; id += 3) list.add(id);
  t.same(list.after(290), [291, 294, 297, 300]);
  t.same(list.after(300), []);
  t.equal(list.after(0).length, 100, 'every id');
  list.dropFrom(150);
  t.equal(list.last, 147);
  t.same(list.after(140), [141, 144, 147]);
  list.dropFrom(0);
  t.equal(list.length, 0, 'nothing is left');
});
