/** Places in a log that several gateways on PostgreSQL write: its end, and the place of a time. */
import t from 'tap';
import type { LogPosition } from '../../../../gateway/store/contract/log/log-position.js';
import { lowestIdAt } from '../../../../gateway/store/contract/slots/clock-id.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import { Minutes, systemClock } from '../../../../proto/clock.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { TwoGateways } from '../../../helpers/store/postgres/two-gateways.js';
import { commit, uplink } from '../contract/contract-store.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);

/** The times of receipt of the merchant's events after a place, in the order of time. */
async function timesAfter({ stores: [store] }: TwoGateways, timeMs: number): Promise<number[]> {
  const events = await store.readEvents(1, await store.webhooks.findPositionAt(1, timeMs), 100);
  return events.map(({ receivedAtMs }) => receivedAtMs).sort((one, other) => one - other);
}

t.test('a new URL gets what is stored after it, of all gateways', options, async (t) => {
  const two = await TwoGateways.open(t, databases);
  for (const sequence of [1, 2]) for (const gateway of [0, 1] as const) await two.put(gateway, sequence, 1000);
  const [{ last } = {}] = await two.query('SELECT max(id) AS last FROM uplink');
  // Those of another merchant are not its own.
  for (const gateway of [0, 1] as const) await two.put(gateway, 9, 1000, 2);
  const url = await two.addUrl();
  t.equal(Math.max(...url.cursor.values()), Number(last));
  for (const gateway of [1, 0] as const) await two.put(gateway, 3, 2000 + gateway);
  const events = await two.stores[0].readEvents(1, url.cursor, 100);
  t.same(events.map(({ receivedAtMs }) => receivedAtMs).sort(), [2000, 2001]);
});

t.test(
  'a URL that is enabled again gets what is stored after it, and what came before can be recovered',
  options,
  async (t) => {
    const two = await TwoGateways.open(t, databases);
    const { id } = await two.addUrl();
    const [{ webhooks }] = two.stores;
    await webhooks.change(id, { disabledWhy: 'status 410' });
    for (const gateway of [0, 1] as const) await two.put(gateway, 1, 1000 + gateway);
    const { cursor } = await webhooks.change(id, { disabledWhy: null });
    t.same(await two.stores[0].readEvents(1, cursor, 100), []);
    for (const gateway of [1, 0] as const) await two.put(gateway, 2, 2000 + gateway);
    const events = await two.stores[0].readEvents(1, cursor, 100);
    t.same(events.map(({ receivedAtMs }) => receivedAtMs).sort(), [2000, 2001]);
    const [after, before] = await Promise.all([1001, 2001].map((atMs) => webhooks.findPositionAt(1, atMs)));
    const step = { after: after as LogPosition, before: before as LogPosition, limit: 10, nowMs: 1 };
    t.match(await webhooks.recover(id, step), { count: 1 }, 'only the second one of those that it missed');
  },
);

t.test('a gateway’s ids are above all that are stored, though the database’s clock went back', options, async (t) => {
  const two = await TwoGateways.open(t, databases);
  await two.put(0, 1, 1000);
  // As if the ids had been given half an hour from now, before a failover to a server whose clock is behind.
  const ahead = lowestIdAt(systemClock.now() + Minutes(30), 0);
  await two.query(`UPDATE uplink SET id = ${ahead} + slot`);
  const third = await openPostgresStore(two.url, { isShared: true });
  t.teardown(() => third.close());
  await third.append(commit(uplink(2, { deviceId: 2, credentialId: 2 })));
  const [{ lowest } = {}] = await two.query('SELECT min(id) AS lowest FROM uplink WHERE device_id = 2');
  t.ok(Number(lowest) > ahead);
});

t.test('the place of a time is exact in each slot, though a gateway’s clock is ahead', options, async (t) => {
  const two = await TwoGateways.open(t, databases);
  // The second gateway's clock is 3 s ahead.
  for (let second = 0; second < 8; second += 1) {
    await two.put(0, second, 10_000 + second * 1000);
    await two.put(1, second, 13_000 + second * 1000 + 1);
  }
  const all = Array.from({ length: 8 }, (_, second) => [10_000 + second * 1000, 13_000 + second * 1000 + 1])
    .flat()
    .sort((one, other) => one - other);
  for (const timeMs of [0, 10_000, 10_001, 14_500, 16_000, 16_001, 16_002, 20_001, 20_002, 99_000])
    t.same(
      await timesAfter(two, timeMs),
      all.filter((each) => each >= timeMs),
      `from ${timeMs} on`,
    );
});
