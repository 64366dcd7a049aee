// The part of the store contract (how every database engine must behave) about deliveries of events to webhook URLs. A
// URL's cursor is the position in the log up to which the URL needs no further event. store-contract.ts calls this.
import t from 'tap';
import { LOG_START, positionAfter } from '../../../../gateway/store/contract/log/log-position.js';
import type { AttemptRecord } from '../../../../gateway/store/contract/webhooks/delivery.js';
import { afterThisTurn } from '../../../../proto/clock.js';
import { commit, HASH, type OpenStore, uplink, withLock } from './contract-store.js';

/** An attempt at a delivery, with this outcome. The receiver's answer is arbitrary. */
function attempt(uplinkId: number, number: number, outcome: AttemptRecord['outcome']): AttemptRecord {
  return { urlId: 1, uplinkId, number, atMs: 9, durationMs: 1, status: 500, error: 'no', answer: '', outcome };
}

export function deliveryContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: failed deliveries are due at their time; a cursor never goes back`, async (t) => {
    const { store } = await withLock(t, open);
    const request = { merchant: 'Amber', url: 'http://a/', headersSealed: {}, secretSealed: HASH, nowMs: 1 };
    await store.append(commit(uplink(1)));
    const url = await store.addWebhookUrl(request);
    const [first] = await store.readEvents(1, LOG_START, 1);
    t.same(url.cursor, positionAfter(first?.id ?? 0), 'a new URL gets events from now on');
    await store.append(commit(uplink(2), uplink(3)));
    const [secondEvent, thirdEvent] = await store.readEvents(1, url.cursor, 9);
    const [secondId, thirdId] = [secondEvent?.id ?? 0, thirdEvent?.id ?? 0];
    const pending = { state: 'pending', nextAttemptAtMs: 50 } as const;
    const attempts = [attempt(secondId, 1, pending), attempt(thirdId, 1, { ...pending, nextAttemptAtMs: 40 })];
    await store.recordProgress([{ urlId: url.id, attempts, cursor: positionAfter(thirdId) }]);
    t.equal(await store.nextDueAtMs(url.id), 40);
    t.same(await store.readDueDeliveries(url.id, 39, 9), []);
    const due = await store.readDueDeliveries(url.id, 50, 9);
    t.same(
      due.map(({ uplink, attempts }) => [uplink.id, attempts]),
      [
        [thirdId, 1],
        [secondId, 1],
      ],
      'the longest due first',
    );
    const lastAttempts = [attempt(secondId, 2, { state: 'delivered' }), attempt(thirdId, 2, { state: 'dead' })];
    await store.recordProgress([{ urlId: url.id, attempts: lastAttempts, cursor: positionAfter(secondId) }]);
    t.equal(await store.nextDueAtMs(url.id), null);
    t.same((await store.listWebhookUrls())[0]?.cursor, positionAfter(thirdId));
    await store.recordProgress([{ urlId: url.id, attempts: [], disabledWhy: 'gone' }]);
    t.match(await store.listWebhookUrls(), [{ state: 'disabled', disabledWhy: 'gone' }]);
  });

  t.test(`${engine}: other work goes on while the many attempts of a removed URL are deleted`, async (t) => {
    const { store } = await withLock(t, open);
    const request = { merchant: 'Amber', url: 'http://a/', headersSealed: {}, secretSealed: HASH, nowMs: 1 };
    const { id } = await store.addWebhookUrl(request);
    await store.append(commit(uplink(1)));
    const [event] = await store.readEvents(1, LOG_START, 1);
    const attempts = Array.from({ length: 1_000 }, (_, index) => {
      return attempt(event?.id ?? 0, index + 1, { state: 'pending', nextAttemptAtMs: 50 });
    });
    await store.recordProgress([{ urlId: id, attempts }]);
    let turns = 0;
    let isRemoved = false;
    const countTurns = (): void => {
      turns += 1;
      if (!isRemoved) afterThisTurn(countTurns);
    };
    afterThisTurn(countTurns);
    await store.webhooks.remove(id);
    isRemoved = true;
    t.ok(turns >= 5, `the event loop had ${turns} turns`);
    t.same(await store.listWebhookUrls(), []);
  });
}
