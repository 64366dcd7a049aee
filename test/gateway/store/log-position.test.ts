/**
 * Positions in the log of several gateways: what is before them, and the values of cursors that clients keep. A slot is
 * the number of a gateway; ids that it gives contain it. A gateway alone gives dense ids: 1, 2, 3 …
 */
import t from 'tap';
import {
  DENSE_SLOT,
  decodePosition,
  encodePosition,
  isBehind,
  LOG_START,
  type LogPosition,
  MAX_DENSE_ID,
  movedAfter,
  movedBefore,
  positionAfter,
  SLOT_COUNT,
  slotOf,
} from '../../../gateway/store/contract/log/log-position.js';
import { OpenEvents } from '../../../gateway/webhooks/url/open-events.js';

/** An id that a slot gives at a tick of its clock. All ticks are far above the dense ids. */
function idOf(tick: number, slot: number): number {
  return (2 ** 42 + tick) * SLOT_COUNT + slot;
}

t.test('an id names its slot', async (t) => {
  t.same([0, 1, 64, MAX_DENSE_ID].map(slotOf), [DENSE_SLOT, DENSE_SLOT, DENSE_SLOT, DENSE_SLOT]);
  t.same([idOf(0, 1), idOf(5, 63), idOf(2 ** 30, 7)].map(slotOf), [1, 63, 7]);
});

t.test('a position covers each slot up to its own id', async (t) => {
  const position = movedAfter(movedAfter(positionAfter(9), idOf(100, 3)), idOf(50, 5));
  const behind = [9, idOf(100, 3), idOf(7, 3), idOf(50, 5)];
  const ahead = [10, idOf(101, 3), idOf(51, 5), idOf(1, 4)];
  t.same(
    [...behind, ...ahead].map((id) => isBehind(position, id)),
    [true, true, true, true, false, false, false, false],
  );
  t.equal(movedAfter(position, idOf(7, 3)), position, 'it never moves back');
  const before = movedBefore(position, idOf(60, 3));
  t.same(
    [idOf(60, 3), idOf(59, 3), idOf(50, 5), 9].map((id) => isBehind(before, id)),
    [false, true, true, true],
  );
  t.equal(movedBefore(position, idOf(101, 3)), position, 'nothing to move');
  t.equal(isBehind(LOG_START, 1), false);
});

t.test('a position in dense ids is a number, as older versions wrote it', async (t) => {
  t.equal(encodePosition(LOG_START), 0);
  t.equal(encodePosition(positionAfter(41)), 41);
  t.same(decodePosition(41), positionAfter(41));
  t.same(decodePosition(0), LOG_START);
});

t.test('a position in several slots is a text, and only a correct text is a position', async (t) => {
  const position: LogPosition = new Map([
    [12, idOf(8, 12)],
    [DENSE_SLOT, 41],
    [3, idOf(9, 3)],
  ]);
  const text = encodePosition(position);
  t.equal(text, `0:41,3:${idOf(9, 3)},12:${idOf(8, 12)}`);
  t.same(decodePosition(text), position);
  const wrong = [-1, 1.5, MAX_DENSE_ID + 1, Number.NaN, null, undefined, {}, '', '41', '0:-1', '64:9', '3:1,3:2'];
  const hostile = ['0:99999999999999999', `0:${MAX_DENSE_ID + 1}`, '1:9007199254740993', `${'1:1,'.repeat(999)}2:2`];
  for (const each of [...wrong, ...hostile]) t.equal(decodePosition(each), undefined, String(each).slice(0, 30));
});

t.test('the cursor stays before the oldest open event of each slot', async (t) => {
  const open = new OpenEvents(LOG_START);
  const ids = [idOf(10, 1), idOf(11, 1), idOf(4, 2), idOf(12, 1), idOf(5, 2)];
  // `true`: the event is open, it has no outcome yet.
  for (const id of ids) open.read(id, true);
  open.read(idOf(6, 2), false);
  t.notOk(ids.some((id) => isBehind(open.cursor, id)));
  open.end(idOf(4, 2));
  open.end(idOf(11, 1));
  t.same(
    ids.filter((id) => isBehind(open.cursor, id)),
    [idOf(4, 2)],
    'the other slot does not move',
  );
  open.end(idOf(10, 1));
  t.same(
    ids.filter((id) => isBehind(open.cursor, id)),
    [idOf(10, 1), idOf(11, 1), idOf(4, 2)],
  );
  open.end(idOf(12, 1));
  open.end(idOf(5, 2));
  open.end(idOf(3, 2));
  t.same(open.cursor, open.readTo, 'nothing is open; an event that was never read changes nothing');
  t.ok(isBehind(open.cursor, idOf(6, 2)), 'an event that was concluded before is passed');
});

t.test('two writers commit out of order: a cursor for each slot skips nothing', async (t) => {
  // Each writer commits its ids in order, but the writers do not wait for each other.
  const commits = [idOf(1, 1), idOf(3, 1), idOf(2, 2), idOf(6, 2), idOf(4, 1), idOf(5, 1), idOf(7, 2)];
  const log: number[] = [];
  const open = new OpenEvents(LOG_START);
  const [byPosition, byNumber]: [number[], number[]] = [[], []];
  let highest = 0;
  for (const id of commits) {
    log.push(id);
    for (const found of log.filter((each) => !isBehind(open.readTo, each))) {
      byPosition.push(found);
      open.read(found, false);
    }
    for (const found of log.filter((each) => each > highest)) {
      byNumber.push(found);
      highest = found;
    }
  }
  t.same(byPosition, commits);
  t.same(byNumber, [idOf(1, 1), idOf(3, 1), idOf(6, 2), idOf(7, 2)], 'a single number loses events');
});

t.test('the oldest open event is found although thousands have ended', async (t) => {
  const open = new OpenEvents(positionAfter(100));
  for (let id = 101; id <= 10_100; id += 1) open.read(id, true);
  for (let id = 10_100; id > 101; id -= 1) open.end(id);
  t.same(open.cursor, positionAfter(100));
  open.end(101);
  t.same(open.cursor, positionAfter(10_100));
  open.read(10_101, true);
  t.same(open.cursor, positionAfter(10_100));
});
