/**
 * `GET /v1/events` brings every event once and in the order of its lock, although the gateway is killed between two
 * calls and readers lose answers (interfaces.md §2). The check compares the readers' diaries with those of the locks
 * and of the merchant that received the webhooks, without asking the gateway.
 */
import { createHash } from 'node:crypto';
import t, { type Test } from 'tap';
import { ChangeSignal, realDelay } from '../helpers/clocks/change-signal.js';
import { checkDeliveries } from '../helpers/durability/delivery-check.js';
import { DiaryLock } from '../helpers/durability/diary-lock.js';
import { type Arrival, DiaryMerchant } from '../helpers/durability/diary-merchant.js';
import type { SabotageName } from '../helpers/durability/sabotage.js';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { quickOrLong } from '../helpers/house/test-length.js';
import { chooseSeed, SeededChance } from '../helpers/pair/seeded-chance.js';

const seed = chooseSeed();
const repeat = `LOCKGATE_SEED=${seed} npm test -- test/system/events.slow.test.ts`;
const LOCKS = 8;
const KILLS = quickOrLong(1, 20);
/** Pings that are acknowledged after each start, before the gateway is killed or the test ends. */
const PINGS_PER_START = 150;
/** Maximum time that each step of the test may take. */
const PHASE_SECONDS = 60;
/** At the end: after this time without a new arrival, missing events are considered lost. */
const STALL_SECONDS = 3;
/** How long a reader that loses its answer, or finds no gateway, waits before its next call. */
const RETRY_MS = 20;
/**
 * The fraction of the answers that a reader loses before it has stored their cursor: it then reads the same page again.
 */
const LOST_FRACTION = 0.1;

t.setTimeout(170_000);
t.comment(`seed ${seed}; repeat: ${repeat}`);

/** Reads events and writes each page with its cursor into its diary. */
class EventReader {
  readonly diary: Arrival[] = [];
  readonly #gateway: GatewayChild;
  readonly #key: string;
  readonly #query: string;
  readonly #chance: SeededChance;
  #cursor = '';
  #isStopped = false;
  /** Resolves when the reader has stopped. */
  readonly finished: Promise<void>;

  constructor(gateway: GatewayChild, key: string, query: string, chance: SeededChance, onPage: () => void) {
    this.#gateway = gateway;
    this.#key = key;
    this.#query = query;
    this.#chance = chance;
    this.finished = this.#read(onPage);
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #read(onPage: () => void): Promise<void> {
    while (!this.#isStopped) {
      // While the gateway is killed, there is no answer.
      const page = await this.#nextPage().catch(() => undefined);
      if (page === undefined || this.#chance.next() < LOST_FRACTION) {
        await realDelay(RETRY_MS);
        continue;
      }
      this.diary.push(...page.data.map(arrivalOf));
      this.#cursor = page.next_cursor;
      onPage();
    }
  }

  /** @throws Error without an answer of 200 */
  async #nextPage(): Promise<{ readonly data: readonly EventJson[]; readonly next_cursor: string }> {
    const after = this.#cursor === '' ? '' : `&after=${this.#cursor}`;
    const url = `http://127.0.0.1:${this.#gateway.httpPort}/v1/events?${this.#query}${after}`;
    const authorization = `Basic ${Buffer.from(`${this.#key}:`).toString('base64')}`;
    const answer = await fetch(url, { headers: { authorization } });
    if (!answer.ok) throw new Error(`${answer.status}`);
    return (await answer.json()) as { data: EventJson[]; next_cursor: string };
  }
}

/** An event of `GET /v1/events`, as far as this test reads it. */
interface EventJson {
  readonly event_id: string;
  readonly mac_addr: string;
  readonly boot: number;
  readonly sequence: number;
}

/** An event as the diary has it; the merchant's diary has a hash of the body too. */
function arrivalOf(event: EventJson): Arrival {
  const bodyHash = createHash('sha256').update(JSON.stringify(event)).digest('base64url').slice(0, 12);
  const { event_id: webhookId, mac_addr, boot, sequence } = event;
  return { webhookId, mac: mac_addr.replaceAll(':', ''), boot, sequence, bodyHash, accepted: true };
}

/** Runs locks, a merchant with webhooks and two readers while the gateway is killed, until both have all events. */
async function runReaders(t: Test, kills: number, sabotage?: SabotageName) {
  const chance = new SeededChance(seed);
  const changes = new ChangeSignal();
  const onLine = (): void => changes.notify();
  const merchant = await DiaryMerchant.start({ chance, webhookFailureShare: 0, maxAnswerMs: 0, onLine });
  t.teardown(() => merchant.close());
  const gateway = await GatewayChild.start(t, { sabotage });
  merchant.verifyWith(await gateway.addWebhook(merchant.url));
  const { key } = await gateway.post<{ key: string }>('/keys', { name: 'reader' });
  const locks: DiaryLock[] = [];
  for (let number = 1; number <= LOCKS; number += 1) {
    const mac = `A4C13800000${number}`;
    const secret = await gateway.addLock(mac);
    const options = { mac, secret, port: gateway.mqttPort, maxUnacked: 3, mayCreateUplinks: () => true, onLine };
    locks.push(new DiaryLock({ ...options, chance: new SeededChance(seed + number) }));
  }
  t.teardown(() => locks.forEach((lock) => void lock.cut()));
  // One reader takes large pages and waits long for new events, the other takes small pages.
  const readers = ['limit=1000&wait=5', 'limit=7&wait=1'].map((query) => {
    return new EventReader(gateway, key, query, new SeededChance(seed), onLine);
  });
  t.teardown(async () => {
    for (const reader of readers) reader.stop();
    await gateway.kill();
    await Promise.all(readers.map((reader) => reader.finished));
  });
  const ackedCount = (): number => locks.reduce((sum, { acked }) => sum + acked.length, 0);
  const waitForAcked = async (count: number): Promise<void> => {
    const expected = (): string => `${count} acknowledged pings, ${ackedCount()} are`;
    await changes.waitUntil(() => ackedCount() >= count, PHASE_SECONDS, expected);
  };

  for (const lock of locks) lock.allowConnections();
  for (let kill = 0; kill < kills; kill += 1) {
    await waitForAcked(ackedCount() + PINGS_PER_START);
    for (const lock of locks) lock.forbidConnections();
    await gateway.kill();
    await gateway.start();
    for (const lock of locks) lock.allowConnections();
  }
  await waitForAcked(ackedCount() + PINGS_PER_START);
  for (const lock of locks) lock.stopCreating();
  const isSettled = (): boolean => locks.every(({ unackedCount }) => unackedCount === 0);
  await changes.waitUntil(isSettled, PHASE_SECONDS, () => 'an acknowledgement for every ping');
  const hasAll = (): boolean => readers.every(({ diary }) => diary.length >= ackedCount());
  const readCount = (): number => readers.reduce((sum, { diary }) => sum + diary.length, merchant.accepted);
  await changes.waitUntilOrStalled(() => hasAll() && merchant.accepted >= ackedCount(), readCount, STALL_SECONDS);
  const diaries = locks.map(({ mac, acked }) => ({ mac, acked, unacked: [] }));
  return { diaries, readers, merchant, minAcked: PINGS_PER_START * (kills + 1) };
}

t.test('two readers get every event once and in order, the same events as the webhooks', async (t) => {
  const { diaries, readers, merchant, minAcked } = await runReaders(t, KILLS);
  const webhooks = new Map(merchant.arrivals.map(({ webhookId, bodyHash }) => [webhookId, bodyHash]));
  t.same(checkDeliveries(diaries, merchant.arrivals, minAcked), [], 'the webhooks themselves are complete');
  for (const { diary } of readers) {
    t.same(checkDeliveries(diaries, diary, minAcked), [], 'every event came, unchanged and in order');
    t.equal(new Set(diary.map(({ webhookId }) => webhookId)).size, diary.length, 'none came twice');
    const read = new Map(diary.map(({ webhookId, bodyHash }) => [webhookId, bodyHash]));
    t.same(new Map([...read].sort()), new Map([...webhooks].sort()), 'the same bodies as the webhooks');
  }
});

t.test('the same check detects a gateway that skips events', async (t) => {
  const { diaries, readers, minAcked } = await runReaders(t, 0, 'skip-event');
  for (const { diary } of readers) t.not(checkDeliveries(diaries, diary, minAcked).length, 0);
});
