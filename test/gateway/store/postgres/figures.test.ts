/**
 * The figures about a URL's backlog on PostgreSQL: what is after its cursor and has no outcome. A URL with a filter
 * counts only what passes it.
 */
import t from 'tap';
import { positionAfter, slotOf } from '../../../../gateway/store/contract/log/log-position.js';
import type { AttemptRecord } from '../../../../gateway/store/contract/webhooks/delivery.js';
import { NO_FILTER, type WebhookFilter } from '../../../../gateway/store/contract/webhooks/webhook-filter.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import type { Ping } from '../../../../proto/wire/ping.js';
import { testBytes } from '../../../helpers/gateway/test-gateway.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { TwoGateways } from '../../../helpers/store/postgres/two-gateways.js';
import { commit, HASH, uplink, withLock } from '../contract/contract-store.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);
/** More than one page of events, of which every third is a theft. */
const EVENTS = 3_000;
const THEFT = { kind: 'cellular', reason: 'REASON_THEFT', firmwareVersion: '2', position: null } as Partial<Ping>;
const ONLY_PINGS: WebhookFilter = { ...NO_FILTER, events: ['ping'] };
const ONLY_THEFT: WebhookFilter = { ...NO_FILTER, reasons: ['REASON_THEFT'] };

function attempt(urlId: number, uplinkId: number): AttemptRecord {
  const outcome = { state: 'delivered' } as const;
  return { urlId, uplinkId, number: 1, atMs: 9, durationMs: 1, status: 204, error: null, answer: null, outcome };
}

t.test('events after the cursor without an outcome are counted, once each', options, async (t) => {
  const { store } = await withLock(t, async (folder) => openPostgresStore(await databases.urlOf(folder)));
  const added = { merchant: 'Amber', headersSealed: {}, secretSealed: HASH, nowMs: 7 };
  await store.addWebhookUrl({ ...added, url: 'http://all/' });
  await store.addWebhookUrl({ ...added, url: 'http://thefts/', filter: ONLY_THEFT });
  const body = { ...THEFT, batteryPercent: 80, ebikeVolts: null, tetherState: 'detached', lockState: 'locked' } as Ping;
  const uplinks = Array.from({ length: EVENTS }, (_, index) =>
    uplink(index + 1, index % 3 === 2 ? { bytes: testBytes(index + 1, { body }) } : {}),
  );
  await store.append(commit(...uplinks));
  const ids = (await store.readEvents(1, new Map(), EVENTS)).map(({ id }) => id);
  const at = (place: number): number => ids[place] as number;
  for (const urlId of [1, 2]) {
    // The cursor is after the first hundred. Of those after it, ten are delivered and a later one has failed once.
    const cursor = positionAfter(at(99));
    const delivered = ids.slice(100, 110).map((id) => attempt(urlId, id));
    const failed = { ...attempt(urlId, at(150)), status: 500, error: 'status 500' };
    const attempts = [...delivered, { ...failed, outcome: { state: 'pending', nextAttemptAtMs: 99 } as const }];
    await store.recordProgress([{ urlId, attempts, cursor }]);
  }
  const [all, thefts] = (await store.readFigures()).backlogs;
  // The oldest is number 111, which is a theft.
  const oldestReceivedAtMs = 1000 + 111;
  t.match(all, { behind: EVENTS - 110 - 1, pending: 1, dead: 0, oldestReceivedAtMs });
  const theftsAfter = uplinks.slice(110).filter((_, index) => index % 3 === 0).length;
  t.match(thefts, { behind: theftsAfter, pending: 1, oldestReceivedAtMs });
});

t.test('what two gateways stored is counted from the cursor of each', options, async (t) => {
  const two = await TwoGateways.open(t, databases);
  for (const filter of [undefined, ONLY_PINGS]) await two.addUrl(filter);
  for (let sequence = 1; sequence <= 6; sequence += 1)
    for (const gateway of [0, 1] as const) await two.put(gateway, sequence, 1000 + sequence);
  const [store] = two.stores;
  const ids = (await store.readEvents(1, new Map(), 100)).map(({ id }) => id);
  const idsOf = (slot: number) => ids.filter((id) => slotOf(id) === slot);
  const slots = [...new Set(ids.map(slotOf))];
  t.equal(slots.length, 2);
  // The cursor is after the second uplink of one gateway, and after the fifth of the other.
  const [slow, fast] = slots as [number, number];
  const cursor = new Map([
    [slow, idsOf(slow)[1] as number],
    [fast, idsOf(fast)[4] as number],
  ]);
  t.same(await store.ownership.urls.claim([2, 3]), [2, 3]);
  for (const urlId of [2, 3]) {
    // As the URL's worker does, which learns the URL's version.
    await store.webhooks.find(urlId);
    t.same(await store.recordProgress([{ urlId, attempts: [], cursor }]), { refusedUrlIds: [] });
  }
  for (const backlog of (await store.readFigures()).backlogs.slice(1))
    t.match(backlog, { behind: 4 + 1, pending: 0, oldestReceivedAtMs: 1003 }, `URL ${backlog.urlId}`);
});
