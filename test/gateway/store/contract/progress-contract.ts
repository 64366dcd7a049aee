// The part of the store contract (how every database engine must behave) about what the workers of webhook URLs record.
// store-contract.ts calls this.
import t from 'tap';
import { LOG_START, positionAfter } from '../../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import type { AttemptRecord, DeliveryProgress } from '../../../../gateway/store/contract/webhooks/delivery.js';
import { SeededChance } from '../../../helpers/pair/seeded-chance.js';
import { commit, HASH, type OpenStore, uplink, withLock } from './contract-store.js';

const STATES = ['pending', 'delivered', 'dead', 'damaged', 'kept'] as const;
const EVENTS = 6;
const ROUNDS = 8;
const RECORDED_TOGETHER = 14;

/** Random progress at the events of a URL, as workers record it. */
function randomProgress(chance: SeededChance, urlId: number, ids: readonly number[]): DeliveryProgress[] {
  const numbers = new Map<number, number>();
  const withRow = new Set<number>();
  const attemptAt = (uplinkId: number): AttemptRecord => {
    const number = (numbers.get(uplinkId) ?? 0) + 1;
    numbers.set(uplinkId, number);
    const state = chance.pick(['delivered', 'pending', 'dead'] as const);
    const outcome = state === 'pending' ? { state, nextAttemptAtMs: chance.between(1, 99) } : { state };
    const hasRow = withRow.has(uplinkId);
    if (state !== 'delivered') withRow.add(uplinkId);
    return { urlId, uplinkId, number, atMs: 9, durationMs: 1, status: 500, error: state, answer: '', hasRow, outcome };
  };
  return Array.from({ length: RECORDED_TOGETHER }, () => {
    const uplinkId = chance.pick(ids);
    const what = chance.pick(['attempt', 'attempt', 'attempt', 'blocked', 'damaged'] as const);
    if (what !== 'attempt') withRow.add(uplinkId);
    const since = { sinceMs: chance.between(1, 9), forMs: chance.between(1, 9) };
    return {
      urlId,
      attempts: what === 'attempt' ? [attemptAt(uplinkId)] : [],
      ...(what === 'blocked' && { blocked: [{ uplinkId, atMs: chance.between(1, 99) }] }),
      ...(what === 'damaged' && { damaged: [uplinkId] }),
      ...(chance.next() < 0.3 && { failing: chance.pick([null, since]) }),
      ...(chance.next() < 0.3 && { hold: { untilMs: chance.between(1, 99), spanMs: chance.between(1, 9) } }),
      ...(chance.next() < 0.5 && { cursor: positionAfter(chance.pick(ids)) }),
    };
  });
}

/** What is stored of a URL, without its id and address. */
async function storedOf(store: Store, urlId: number): Promise<unknown> {
  const url = await store.webhooks.find(urlId);
  const filter = { urlIds: [urlId], states: STATES, fromId: 0, toId: Number.MAX_SAFE_INTEGER, limit: 99 };
  const deliveries = await store.webhooks.readDeliveries(filter);
  return {
    cursor: url?.cursor,
    failing: [url?.failingSinceMs, url?.failingForMs],
    hold: url?.hold,
    deliveries: deliveries.map(({ urlId: _, ...delivery }) => delivery),
  };
}

export function progressContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: an event that was blocked and then delivered, recorded together, does not wait`, async (t) => {
    const { store } = await withLock(t, open);
    const url = { merchant: 'Amber', url: 'http://a/', headersSealed: {}, secretSealed: HASH, nowMs: 1 };
    const { id: urlId } = await store.addWebhookUrl(url);
    await store.append(commit(uplink(1)));
    const [event] = await store.readEvents(1, LOG_START, 1);
    const uplinkId = event?.id ?? 0;
    const answer = { status: 204, error: null, answer: null };
    const attempt = { urlId, uplinkId, number: 1, atMs: 9, durationMs: 1, ...answer, hasRow: true };
    await store.recordProgress([
      { urlId, attempts: [], blocked: [{ uplinkId, atMs: 5 }] },
      { urlId, attempts: [{ ...attempt, outcome: { state: 'delivered' } }] },
    ]);
    const filter = { urlIds: [urlId], states: STATES, fromId: 0, toId: Number.MAX_SAFE_INTEGER, limit: 9 };
    t.match(await store.webhooks.readDeliveries(filter), [{ state: 'delivered' }]);
  });

  t.test(`${engine}: what is recorded together is stored as if one followed the other`, async (t) => {
    const { store } = await withLock(t, open);
    const request = { merchant: 'Amber', url: 'http://a/', headersSealed: {}, secretSealed: HASH, nowMs: 1 };
    const urlIds: { together: number; apart: number }[] = [];
    while (urlIds.length < ROUNDS)
      urlIds.push({
        together: (await store.addWebhookUrl(request)).id,
        apart: (await store.addWebhookUrl(request)).id,
      });
    await store.append(commit(...Array.from({ length: EVENTS }, (_, index) => uplink(index + 1))));
    const ids = (await store.readEvents(1, LOG_START, EVENTS)).map(({ id }) => id);
    const mixed: DeliveryProgress[] = [];
    for (const [round, { together, apart }] of urlIds.entries()) {
      mixed.push(...randomProgress(new SeededChance(round), together, ids));
      for (const each of randomProgress(new SeededChance(round), apart, ids)) await store.recordProgress([each]);
    }
    // One of each URL in turn, as the outcomes of several URLs come.
    const inTurn = (index: number): number =>
      (index % RECORDED_TOGETHER) * ROUNDS + Math.floor(index / RECORDED_TOGETHER);
    const order = mixed.map((each, index) => ({ each, at: inTurn(index) })).sort((a, b) => a.at - b.at);
    await store.recordProgress(order.map(({ each }) => each));
    for (const { together, apart } of urlIds) t.same(await storedOf(store, together), await storedOf(store, apart));
  });
}
