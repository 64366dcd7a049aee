/**
 * The screen of a lock loads the lock's past once, and then what has come since: a busy lock changes each second, and
 * each load costs the gateway time in which it takes no pings. What the screen shows must be as after a load of all.
 */
import t from 'tap';
import type { Page } from '../../../gateway/console/page/api/http.js';
import type { Delivery, Finding, LockDelivery, Ping, WebhookUrl } from '../../../gateway/console/page/api/shapes.js';
import { NewestItems } from '../../../gateway/console/page/screens/lock/newest-items.js';
import { type PastCalls, PastLoader } from '../../../gateway/console/page/screens/lock/past-loader.js';
import { Seconds } from '../../../proto/clock.js';

const MAC = 'A4:C1:38:00:00:01';
const DAYS = 2;

interface Item {
  readonly id: number;
  readonly state?: string;
}

/** A list, newest first, whose loads are noted. */
class FakeList {
  items: Item[] = [];
  limits: number[] = [];

  add(count: number): void {
    for (let added = 0; added < count; added++) this.items.unshift({ id: this.items.length + 1 });
  }

  load = async (limit: number): Promise<Page<Item>> => {
    this.limits.push(limit);
    return { data: this.items.slice(0, limit), next_cursor: this.items.length > limit ? 'more' : null };
  };

  /** The limits of the loads since the last call. */
  takeLimits(): number[] {
    return this.limits.splice(0);
  }
}

function listOf(fake: FakeList): NewestItems<Item> {
  return new NewestItems({ load: fake.load, idOf: ({ id }) => id, mayChange: ({ state }) => state === 'open' });
}

t.test('of a long list only the beginning is loaded again', async (t) => {
  const fake = new FakeList();
  fake.add(900);
  const list = listOf(fake);
  await list.loadNew();
  t.strictSame([list.items, list.hasMore, fake.takeLimits()], [fake.items, false, [1000]], 'first all of it');
  fake.add(5);
  await list.loadNew();
  t.strictSame([list.items, list.hasMore, fake.takeLimits()], [fake.items, false, [12]]);
  fake.add(15);
  await list.loadNew();
  t.strictSame([list.items, fake.takeLimits()], [fake.items, [22]], 'more, since some came last time');
  fake.add(0);
  await list.loadNew();
  t.strictSame([list.items, fake.takeLimits()], [fake.items, [42]]);
});

t.test('if more came than was expected, all of the list is loaded again', async (t) => {
  const fake = new FakeList();
  fake.add(40);
  const list = listOf(fake);
  await list.loadNew();
  fake.takeLimits();
  fake.add(100);
  await list.loadNew();
  t.strictSame([list.items, fake.takeLimits()], [fake.items, [12, 1000]]);
});

t.test('a list has a thousand items at most, and says that there are more', async (t) => {
  const fake = new FakeList();
  fake.add(998);
  const list = listOf(fake);
  await list.loadNew();
  fake.add(4);
  await list.loadNew();
  t.strictSame([list.items, list.hasMore], [fake.items.slice(0, 1000), true]);
});

t.test('items that changed or were withdrawn', async (t) => {
  const fake = new FakeList();
  fake.add(30);
  const list = listOf(fake);
  fake.items[20] = { id: 10, state: 'open' };
  await list.loadNew();
  fake.takeLimits();
  fake.items[20] = { id: 10, state: 'done' };
  await list.loadNew();
  t.strictSame([list.items, fake.takeLimits()], [fake.items, [12, 1000]], 'further down, while one was open there');
  fake.items.splice(3, 1);
  await list.loadNew();
  t.strictSame([list.items, fake.takeLimits()], [fake.items, [12]], 'withdrawn from the beginning');
  fake.items = [];
  await list.loadNew();
  t.strictSame(list.items, [], 'all of them');
});

t.test('a load that fails leaves the list as it is', async (t) => {
  const fake = new FakeList();
  fake.add(30);
  let isFailing = false;
  const list = new NewestItems<Item>({
    load: (limit) => (isFailing ? Promise.reject(new Error('unreachable')) : fake.load(limit)),
    idOf: ({ id }) => id,
  });
  await list.loadNew();
  isFailing = true;
  await t.rejects(list.loadNew());
  t.strictSame(list.items, fake.items);
});

/** The gateway as a loader sees it: the past of one lock, and the calls that were made. */
class FakePast implements PastCalls {
  calls: string[] = [];
  pingList: Ping[] = [];
  deliveryList: LockDelivery[] = [];
  urls: WebhookUrl[] = [{ id: 1, name: 'https://example.com', state: 'active' } as WebhookUrl];
  states = ['MID'];

  /** Adds a ping, and its delivery in this state. */
  ping(number: number, state: Delivery['state'] = 'delivered'): void {
    const received_at = timeOf(number);
    this.pingList.unshift({ event_id: `evt_${number}`, received_at } as Ping);
    this.setDelivery(number, state);
  }

  setDelivery(number: number, state: Delivery['state']): void {
    const delivery = { event_id: `evt_${number}`, received_at: timeOf(number), state } as Delivery;
    const others = this.deliveryList.filter(({ delivery: { event_id } }) => event_id !== delivery.event_id);
    this.deliveryList = [{ target: 'https://example.com', delivery }, ...others].sort((a, b) =>
      a.delivery.received_at < b.delivery.received_at ? 1 : -1,
    );
  }

  history = async () => {
    this.calls.push('history');
    return { states: this.states.map((state) => ({ state, since: timeOf(0) })), connections: [] };
  };

  pings = async (_mac: string, { limit }: { readonly limit: number }) => {
    this.calls.push(`pings ${limit}`);
    return { data: this.pingList.slice(0, limit), next_cursor: this.pingList.length > limit ? 'more' : null };
  };

  findings = async (_mac: string, { limit }: { readonly limit: number }) => {
    this.calls.push(`findings ${limit}`);
    return { data: [] as Finding[], next_cursor: null };
  };

  webhooks = async () => {
    this.calls.push('webhooks');
    return { data: this.urls };
  };

  lockDeliveries = async (_mac: string, { from }: { readonly from: string }) => {
    this.calls.push(Date.parse(from) < START_MS ? 'deliveries' : `deliveries from ${from.slice(17, 19)}`);
    return this.deliveryList.filter(({ delivery }) => delivery.received_at >= from);
  };

  takeCalls(): string[] {
    return this.calls.splice(0).sort();
  }
}

/** A time that is within the shown days, whenever the test runs. */
const START_MS = Math.floor(performance.timeOrigin / 60_000) * 60_000;

function timeOf(number: number): string {
  return new Date(START_MS + Seconds(number)).toISOString();
}

const ALL = ['deliveries', 'findings 1000', 'history', 'pings 1000', 'webhooks'];

t.test('a busy lock’s past is loaded once, then what has come since', async (t) => {
  const gateway = new FakePast();
  for (let number = 1; number <= 20; number++) gateway.ping(number);
  let nowMs = 0;
  const loader = new PastLoader(gateway, MAC, DAYS, () => nowMs);
  await loader.load('MID online');
  t.strictSame(gateway.takeCalls(), ALL);

  gateway.ping(21);
  nowMs += Seconds(5);
  const { past, hasMore } = await loader.load('MID online');
  t.strictSame(gateway.takeCalls(), ['deliveries from 20', 'findings 12', 'pings 12']);
  t.strictSame(past.pings, gateway.pingList);
  t.strictSame(past.deliveries, gateway.deliveryList);
  t.strictSame(hasMore, { pings: false, findings: false });

  gateway.states = ['MID', 'HIGH'];
  t.match((await loader.load('HIGH online')).past.history.states, [{ state: 'MID' }, { state: 'HIGH' }]);
  t.ok(gateway.takeCalls().includes('history'), 'after a change of its state');

  nowMs += Seconds(56);
  await loader.load('HIGH online');
  t.strictSame(gateway.takeCalls(), ALL, 'once a minute all of it');
});

t.test('a delivery that waited is shown as delivered', async (t) => {
  const gateway = new FakePast();
  for (let number = 1; number <= 9; number++) gateway.ping(number, number === 4 ? 'pending' : 'delivered');
  const loader = new PastLoader(gateway, MAC, DAYS, () => 0);
  await loader.load('');
  gateway.takeCalls();
  gateway.setDelivery(4, 'delivered');
  t.strictSame((await loader.load('')).past.deliveries, gateway.deliveryList);
  t.ok(gateway.takeCalls().includes('deliveries from 04'));
  await loader.load('');
  t.ok(gateway.takeCalls().includes('deliveries from 09'), 'then only newer ones');
});

t.test('without webhook URLs no deliveries are asked for', async (t) => {
  const gateway = new FakePast();
  gateway.urls = [];
  const loader = new PastLoader(gateway, MAC, DAYS, () => 0);
  await loader.load('');
  await loader.load('');
  t.notOk(gateway.takeCalls().some((call) => call.startsWith('deliveries')));
});

t.test('loads that begin at once are made one after another, also after one that failed', async (t) => {
  const gateway = new FakePast();
  for (let number = 1; number <= 20; number++) gateway.ping(number);
  const { webhooks } = gateway;
  gateway.webhooks = () => {
    gateway.webhooks = webhooks;
    return Promise.reject(new Error('unreachable'));
  };
  const loader = new PastLoader(gateway, MAC, DAYS, () => 0);
  const [first, second, third] = [loader.load(''), loader.load(''), loader.load('')];
  await t.rejects(first);
  t.equal((await second).past.pings.length, 20);
  t.strictSame((await third).past, (await second).past);
  const pingCalls = gateway.calls.filter((call) => call.startsWith('pings'));
  t.strictSame(pingCalls, ['pings 1000', 'pings 1000', 'pings 12']);
});
