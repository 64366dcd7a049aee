/** What the pages remember between two steps of a person, without a browser: keys, an invitation, a long table. */
import t from 'tap';
import { ScreenKeys } from '../../../gateway/console/page/app/screen-keys.js';
import { partHeights } from '../../../gateway/console/page/screens/deliveries/part-heights.js';
import { InvitationAcceptance } from '../../../gateway/console/page/screens/invitation-acceptance.js';
import { cutRows } from '../../../gateway/console/page/view/cut-rows.js';
import { PacedValue } from '../../../gateway/console/page/view/paced-value.js';
import { ManualClock, Seconds } from '../../../proto/clock.js';

t.test('g and the key of a screen open it; any other key in between ends that', (t) => {
  const done: string[] = [];
  const keys = new ScreenKeys({
    screens: new Map([
      ['n', 'now'],
      ['l', 'locks'],
    ]),
    open: (screen) => done.push(screen),
    showHelp: () => done.push('help'),
  });
  const afterKeys = (...pressed: readonly string[]): readonly string[] => {
    done.length = 0;
    for (const key of pressed) keys.press(key)?.();
    return done;
  };
  t.strictSame(afterKeys('n'), [], 'without g a letter does nothing');
  t.strictSame(afterKeys('g', 'l', 'n'), ['locks']);
  t.strictSame(afterKeys('g', 'x', 'l'), [], 'a wrong key ends it');
  t.strictSame(afterKeys('g', 'Escape', 'l'), []);
  t.strictSame(afterKeys('g', 'g', 'n'), ['now'], 'another g starts again');
  t.strictSame(afterKeys('g', 'Shift', '?', 'n'), ['help'], 'the list of keys ends it too');
  t.strictSame(afterKeys('g', 'Shift', 'n'), ['now'], 'Shift alone is no key');
  t.end();
});

t.test('an invitation is accepted once, even if the login after it fails', async (t) => {
  const calls: string[] = [];
  let canLogIn = false;
  const acceptance = new InvitationAcceptance(
    {
      acceptInvitation: async ({ token, username = '' }) => {
        calls.push(`accept ${token} ${username}`);
        return { merchant: 'Amber', username, dashboard: 'viewer' } as never;
      },
      logIn: async ({ merchant, username }) => {
        calls.push(`log in ${merchant} ${username}`);
        if (!canLogIn) throw new Error('the gateway is busy');
        return {} as never;
      },
    },
    { token: 'secret', merchant: 'Amber', username: null },
  );
  await t.rejects(acceptance.attempt({ username: 'grace', password: 'correct horse' }), { message: /busy/ });
  t.equal(acceptance.acceptedAs, 'grace');
  canLogIn = true;
  await acceptance.attempt({ username: '', password: 'correct horse' });
  t.strictSame(calls, ['accept secret grace', 'log in Amber grace', 'log in Amber grace']);
});

t.test('an invitation that was not accepted can be tried again with another name', async (t) => {
  const accepted: (string | undefined)[] = [];
  const acceptance = new InvitationAcceptance(
    {
      acceptInvitation: async ({ username }) => {
        accepted.push(username);
        if (username === 'ada') throw new Error('the name is taken');
        return {} as never;
      },
      logIn: async () => ({}) as never,
    },
    { token: 'secret', merchant: 'Amber', username: null },
  );
  await t.rejects(acceptance.attempt({ username: 'ada', password: 'correct horse' }), { message: /taken/ });
  t.equal(acceptance.acceptedAs, null);
  await acceptance.attempt({ username: 'grace', password: 'correct horse' });
  t.strictSame(accepted, ['ada', 'grace']);
});

t.test('a table that does not show all rows says so', (t) => {
  const rows = Array.from({ length: 1_200 }, (_each, index) => index);
  t.match(cutRows(rows, 50, 'findings', false), { shown: rows.slice(0, 50), note: 'The newest 50 of 1,200 findings.' });
  t.match(cutRows(rows, 50, 'findings', true), { note: 'The newest 50 of more than 1,200 findings.' });
  t.match(cutRows(rows.slice(0, 50), 50, 'findings', false), { shown: rows.slice(0, 50), note: null });
  t.match(cutRows(rows.slice(0, 50), 50, 'findings', true), { note: 'The newest 50 of more than 50 findings.' });
  t.match(cutRows([], 50, 'findings', false), { shown: [], note: null });
  t.end();
});

t.test('what a busy lock changes is passed on at once, then once in a while with the newest of it', (t) => {
  const clock = new ManualClock(0);
  const passed: string[] = [];
  const paced = new PacedValue('first', Seconds(5), (value) => passed.push(value), clock);
  paced.set('first');
  t.strictSame(passed, [], 'no change');
  paced.set('second');
  t.strictSame(passed, ['second']);
  for (const value of ['third', 'fourth', 'fifth']) paced.set(value);
  clock.advance(Seconds(5) - 1);
  t.strictSame(passed, ['second'], 'a change within the pause waits');
  clock.advance(1);
  t.strictSame(passed, ['second', 'fifth'], 'the newest one is passed on');
  clock.advance(Seconds(60));
  t.strictSame(passed, ['second', 'fifth']);
  paced.set('sixth');
  t.strictSame(passed, ['second', 'fifth', 'sixth'], 'after a quiet time at once');
  paced.set('seventh');
  paced.stop();
  clock.advance(Seconds(60));
  t.strictSame(passed, ['second', 'fifth', 'sixth'], 'nothing after the end');
  t.end();
});

t.test('the smallest part of a bar is seen, also in the highest bar', async (t) => {
  const sizes = { height: 34, minimum: 2 };
  t.same(partHeights([0, 10, 5], sizes), [0, 10, 5], 'in proportion, where there is room');
  t.same(partHeights([0.03, 0.03, 33.94], sizes), [2, 2, 30], 'the highest part makes room');
  t.same(partHeights([33, 0.5, 0.5], sizes), [30, 2, 2]);
  t.same(partHeights([0, 0, 0], sizes), [0, 0, 0]);
});
