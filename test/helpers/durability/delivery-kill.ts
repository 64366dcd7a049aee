/**
 * Tests that kill the gateway repeatedly in the middle of a hundred deliveries (quality.md §2): every event still
 * arrives, repeats have the same id, and each lock's first attempts are in order. What breaks that is a finding.
 */
import type { Test } from 'tap';
import { chooseSeed } from '../pair/seeded-chance.js';
import { summarize } from './delivery-check.js';
import { KillRun, type KillRunOptions } from './kill-run.js';

/**
 * A hundred acknowledged pings wait for a slow merchant; the gateway is killed when 50 to 100 of them have arrived.
 */
const HUNDRED_DELIVERIES: Omit<KillRunOptions, 'seed' | 'kills' | 'minAcked'> = {
  locks: 12,
  maxUnacked: 4,
  countedLines: 'arrived',
  minLinesPerKill: 50,
  maxBacklog: 100,
  webhookFailureShare: 0,
  maxAnswerMs: 30,
};

/** Adds the test with `kills` kills. */
export function testDeliveryKills(t: Test, kills: number, file: string): void {
  const seed = chooseSeed();
  const repeat = `LOCKGATE_SEED=${seed} npm test -- ${file}`;
  // Ten minutes: the long form has many kills.
  t.setTimeout(600_000);
  t.test(`${kills} kills in the middle of 100 deliveries lose none`, async (t) => {
    t.setTimeout(600_000);
    // On average 75 pings arrive before a kill.
    const result = await KillRun.run(t, { ...HUNDRED_DELIVERIES, seed, kills, minAcked: 75 * kills });
    t.comment(`${result.acked} acknowledged, ${result.arrivals} webhooks, ${kills} kills`);
    t.same(result.findings, [], `${summarize(result.findings)}\nrepeat: ${repeat}`);
    t.same(result.invalid, [], 'every webhook verifies');
    t.ok(result.arrivals >= 50 * kills, 'webhooks arrived before each kill');
  });
}

/** Adds a test that the check works: the same run must find missing pings if the gateway skips events on purpose. */
export function testSkippedEvents(t: Test, file: string): void {
  const seed = chooseSeed();
  t.test('a run with one kill finds missing pings if the gateway skips events on purpose', async (t) => {
    t.setTimeout(600_000);
    const { findings } = await KillRun.run(t, {
      ...HUNDRED_DELIVERIES,
      seed,
      kills: 1,
      minAcked: 75,
      sabotage: 'skip-event',
    });
    t.ok(
      findings.some(({ broken }) => broken === 'missing'),
      `${summarize(findings)}\nrepeat: LOCKGATE_SEED=${seed} npm test -- ${file}`,
    );
  });
}
