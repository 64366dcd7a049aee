/**
 * Shows that the durability test can fail: here the gateway loses or repeats events on purpose, and the check of
 * kill.test.ts must detect it (quality.md §2).
 */
import t, { type Test } from 'tap';
import { type BrokenPromise, checkDeliveries, summarize } from '../../helpers/durability/delivery-check.js';
import { KillRun, type KillRunOptions } from '../../helpers/durability/kill-run.js';
import type { EventSabotageName } from '../../helpers/durability/sabotage.js';
import { quickOrLong } from '../../helpers/house/test-length.js';
import { chooseSeed } from '../../helpers/pair/seeded-chance.js';

const seed = chooseSeed();
const repeat = `LOCKGATE_SEED=${seed} npm test -- dist/test/system/sabotage/kill.slow.test.js`;

/** The merchant answers slowly, so that deliveries are usually under way when the gateway is killed. */
const options: KillRunOptions = {
  seed,
  locks: 10,
  maxUnacked: 3,
  kills: 1,
  // Diary lines (sent, acknowledged or arrived) from a start to the kill.
  minLinesPerKill: quickOrLong(60, 90),
  // Lost events count as backlog too, and must not slow down the load.
  maxBacklog: 5000,
  minAcked: quickOrLong(120, 180),
  webhookFailureShare: 0,
  maxAnswerMs: 25,
  // kill.test.ts checks the store's file after its kills; here the diaries are enough.
  checksFile: false,
};

t.setTimeout(170_000);
t.comment(`seed ${seed}, options ${JSON.stringify(options)}; repeat: ${repeat}`);

t.test('the check reports each broken promise', async (t) => {
  const mac = 'A4C138000001';
  const pingKey = (sequence: number) => ({ boot: 1, sequence });
  const arrival = (webhookId: string, sequence: number, members = {}) => {
    return { webhookId, mac, boot: 1, sequence, bodyHash: `hash ${sequence}`, accepted: true, ...members };
  };
  const good = [arrival('a', 1), arrival('b', 2)];
  const locks = [{ mac, acked: [pingKey(1), pingKey(2)], unacked: [pingKey(3)] }];
  const broken = (arrivals: typeof good, minAcked = 2): BrokenPromise[] =>
    checkDeliveries(locks, arrivals, minAcked).map((finding) => finding.broken);
  t.same(broken(good), [], 'each event arrived once');
  t.same(broken([...good, arrival('a', 1)]), [], 'a repeat under the same id is fine');
  t.same(broken([...good, arrival('c', 3)]), [], 'an event of a ping that was sent but not acknowledged is fine');
  t.same(broken(good, 3), ['too-few-acked']);
  t.same(broken([arrival('a', 1)]), ['missing']);
  t.same(
    broken([arrival('a', 1), arrival('b', 2, { accepted: false })]),
    ['missing'],
    'an arrival that the merchant refused does not count',
  );
  t.same(broken([...good, arrival('c', 1)]), ['two-ids-for-a-ping']);
  t.same(broken([...good, arrival('a', 2)]), ['two-ids-for-a-ping', 'one-id-for-two-pings']);
  t.same(broken([...good, arrival('a', 1, { bodyHash: 'other' })]), ['changed-on-repeat']);
  t.same(broken([...good, arrival('d', 4)]), ['never-sent']);
  t.same(broken([arrival('b', 2), arrival('a', 1)]), ['out-of-order']);
  t.same(broken([...good, arrival('c', 3), arrival('a', 1)]), [], 'a repeat may arrive at any time');
  // Ping 2 is a theft, which a lock may send before older pings, as ping 1.
  const overtaken = locks.map((lock) => ({ ...lock, overtaking: lock.acked.slice(1) }));
  t.same(checkDeliveries(overtaken, [arrival('b', 2), arrival('a', 1)], 2), [], 'a lock may send a theft first');
  const order = checkDeliveries(overtaken, [arrival('c', 3), arrival('b', 2), arrival('a', 1)], 2);
  t.equal(order.length, 2, 'after ping 3, ping 1 and the overtaking ping 2 are both too late');
});

/** A kill at a moment without deliveries under way loses nothing, so the sabotage is tried with several seeds. */
const MAX_TRIES = 3;

/** Runs with a sabotage until the check has findings. `hits` counts those of the expected kind. */
async function sabotagedRun(t: Test, sabotage: EventSabotageName, broken: BrokenPromise) {
  for (let attempt = 0; ; attempt += 1) {
    const { findings } = await KillRun.run(t, { ...options, seed: seed + attempt, sabotage });
    const hits = findings.filter((finding) => finding.broken === broken).length;
    if (findings.length > 0 || attempt + 1 === MAX_TRIES) return { findings, hits };
  }
}

t.test('the same check detects each sabotage', async (t) => {
  t.setTimeout(170_000);
  const found: Readonly<Record<EventSabotageName, BrokenPromise>> = {
    'ack-first': 'missing',
    'skip-event': 'missing',
    'early-cursor': 'missing',
    'new-ids': 'two-ids-for-a-ping',
  };
  const runs = Object.entries(found).map(async ([name, broken]) => {
    const { findings, hits } = await sabotagedRun(t, name as EventSabotageName, broken);
    t.ok(hits > 0, `${name}: ${summarize(findings)}\nrepeat: ${repeat}`);
    t.equal(findings.length, hits, `${name} breaks only this promise`);
  });
  // In the quick form kill.test.ts alone shows that there are no findings without sabotage.
  const healthy = quickOrLong<readonly KillRunOptions[]>([], [options]).map(async (withoutSabotage) => {
    const { findings } = await KillRun.run(t, withoutSabotage);
    t.same(findings, [], `without sabotage there are no findings: ${summarize(findings)}\nrepeat: ${repeat}`);
  });
  await Promise.all([...healthy, ...runs]);
});
