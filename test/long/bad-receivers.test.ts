/**
 * Ninety misbehaving receivers do not affect ten good ones (quality.md §2). Runs the code with which the bench measures
 * delays (`npm run bench -- --only bad-receivers`), and asserts only that nothing is lost and memory stays bounded.
 * Quick version: test/gateway/webhooks/bad-receivers.test.ts.
 */
import t from 'tap';
import { runBadReceivers } from '../bench/rows/bad-receivers.js';

const MEGABYTES = 1e6;

t.setTimeout(600_000);

t.test('ten good receivers get every webhook although ninety others misbehave, and memory stays bounded', async (t) => {
  t.setTimeout(600_000);
  const { arrived, expected, growth, quiet, bad } = await runBadReceivers({ good: 10, bad: 90, pings: 60, rounds: 3 });
  t.comment(`p99 quiet ${quiet.map(Math.round)} ms, bad ${bad.map(Math.round)} ms`);
  t.equal(arrived, expected, 'the good receivers got every webhook');
  t.comment(`memory +${Math.round(growth / MEGABYTES)} MB`);
  t.ok(growth < 50 * MEGABYTES, 'memory is bounded');
});
