/**
 * A hundred receivers, ninety of them bad, as the bench has them (quality.md §2); the quick form is
 * test/gateway/webhooks/bad-receivers.test.ts. Times are for people to judge: `npm run bench -- --only
 * bad-receivers`.
 */
import t from 'tap';
import { runBadReceivers } from '../bench/rows/bad-receivers.js';

const MEGABYTES = 1e6;

t.setTimeout(600_000);

t.test('ninety bad receivers take nothing from ten good ones, and little memory', async (t) => {
  t.setTimeout(600_000);
  const { arrived, expected, growth, quiet, bad } = await runBadReceivers({ good: 10, bad: 90, pings: 60, rounds: 3 });
  t.comment(`p99 quiet ${quiet.map(Math.round)} ms, bad ${bad.map(Math.round)} ms`);
  t.equal(arrived, expected, 'the good ones got everything');
  t.comment(`memory +${Math.round(growth / MEGABYTES)} MB`);
  t.ok(growth < 50 * MEGABYTES, 'memory is bounded');
});
