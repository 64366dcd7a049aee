/**
 * What the worker of a webhook URL stores about its attempts. Thousands of events wait at a URL after an outage or a
 * takeover, and their outcomes are stored together: in a few statements, since each one costs a way to the database
 * and back, and the worker makes no further attempt meanwhile.
 */
import t from 'tap';
import { LOG_START, type LogPosition, positionAfter } from '../../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import type { DeliveryProgress } from '../../../../gateway/store/contract/webhooks/delivery.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import { FaultProxy } from '../../../helpers/chaos/fault-proxy.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { type Teardown, tempFolder } from '../../../helpers/store/temp-folder.js';
import { commit, HASH, MAC, uplink } from '../contract/contract-store.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);
const EVENTS = 400;
/** Far more than a transaction of a few statements needs, and far fewer than one for each outcome. */
const MAX_SENT = 40;

/** A store behind a proxy, with a URL and events after its cursor. */
async function openThroughProxy(test: Teardown): Promise<{ store: Store; proxy: FaultProxy; ids: number[] }> {
  const url = new URL(await databases.urlOf(tempFolder(test)));
  const port = Number(url.port);
  const proxy = await FaultProxy.start(test, () => port);
  url.port = String(proxy.port);
  const store = await openPostgresStore(url.href);
  test.teardown(() => store.close());
  await store.addMerchant('Amber', 5);
  await store.addDevice({ mac: MAC, merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
  await store.addWebhookUrl({ merchant: 'Amber', url: 'http://a/', headersSealed: {}, secretSealed: HASH, nowMs: 7 });
  await store.append(commit(...Array.from({ length: EVENTS }, (_, index) => uplink(index + 1))));
  const ids = (await store.readEvents(1, LOG_START, EVENTS)).map(({ id }) => id);
  return { store, proxy, ids };
}

function delivered(uplinkId: number, cursor: LogPosition): DeliveryProgress {
  const attempt = { urlId: 1, uplinkId, number: 1, atMs: 9, durationMs: 1, status: 204, error: null, answer: null };
  return { urlId: 1, attempts: [{ ...attempt, outcome: { state: 'delivered' } }], cursor };
}

t.test('outcomes that are stored together need few statements, however many they are', options, async (t) => {
  const { store, proxy, ids } = await openThroughProxy(t);
  t.equal(ids.length, EVENTS);
  const sentBefore = proxy.sent;
  await store.recordProgress(ids.map((id) => delivered(id, positionAfter(id))));
  const sent = proxy.sent - sentBefore;
  t.ok(sent <= MAX_SENT, `${sent} pieces were sent for ${EVENTS} outcomes`);
  t.same((await store.listWebhookUrls())[0]?.cursor.get(store.ownership.slot), ids.at(-1));
  t.match(await store.webhooks.countAttempted(1, { afterId: 0, toId: ids.at(-1) ?? 0, limit: EVENTS + 1 }), {
    attempted: EVENTS,
    delivered: EVENTS,
  });
});
