/**
 * The operators' long lists are read page by page: every item once and in order, while new ones arrive between two
 * pages; with a `Link` to the next page, and with cursors that are valid only for the same list.
 */
import got from 'got';
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { testBytes, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { eventually, readDeliveries } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';

interface Answer {
  readonly status: number;
  readonly link: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

async function get(gateway: Gateway, path: string): Promise<Answer> {
  const { statusCode, headers, body } = await got(`http://127.0.0.1:${gateway.operatorPort}${path}`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
    throwHttpErrors: false,
  });
  return { status: statusCode, link: headers.link as string | undefined, body: JSON.parse(body) };
}

/**
 * Reads all pages of a list, whose items are in this member of the answer, by following the links; calls `addItem` with
 * the number of pages read so far after each page. Returns the items of each page.
 */
async function follow(
  gateway: Gateway,
  path: string,
  member: string,
  addItem: (number: number) => Promise<unknown>,
): Promise<readonly unknown[][]> {
  const pages: unknown[][] = [];
  let next: string | undefined = path;
  while (next !== undefined) {
    const { status, link, body } = await get(gateway, next);
    if (status !== 200) throw new Error(`${next}: ${status} ${JSON.stringify(body)}`);
    pages.push(body[member] as unknown[]);
    next = /^<([^>]*)>; rel="next"$/.exec(link ?? '')?.[1];
    if ((next === undefined) !== (body.next_cursor === null)) throw new Error('Link and next_cursor differ');
    await addItem(pages.length);
  }
  return pages;
}

/** A stored user with nothing but a name. */
const user = (username: string) => ({
  ...{ id: null, username, firstName: null, lastName: null, email: null, phone: null, userStatus: null },
  passwordHash: null,
});

async function addUsers({ store }: Gateway, names: readonly string[]): Promise<void> {
  const [merchant] = await store.listMerchants();
  await store.people.addUsers(merchant?.id ?? 0, names.map(user), 0);
}

async function addNotice({ store }: Gateway, number: number): Promise<void> {
  const at = { firstAtMs: number, lastAtMs: number, resolvedAtMs: null };
  await store.notices.write([{ kind: 'lock-late', subject: `${number}`, text: `late ${number}`, count: 1, ...at }]);
}

/** Adds an entry to the audit log: odd numbers are `device.add`, even ones `notice.read`. */
async function addEntry({ store }: Gateway, number: number): Promise<void> {
  const origin = { actor: 'gateway' as const, address: null, agent: null, osUser: null, token: null };
  const done = { outcome: 'done' as const, code: null, after: null, before: null, atMs: number, endedAtMs: number };
  await store.audit.write([
    { ...origin, ...done, action: number % 2 ? 'device.add' : 'notice.read', object: `${number}` },
  ]);
}

t.test('pages of users are in the order of ids, and a new user comes at the end', async (t) => {
  const gateway = await testGateway(t);
  await addUsers(gateway, ['a', 'b', 'c', 'd', 'e']);
  const pages = await follow(gateway, '/users?limit=2', 'users', async (page) => {
    if (page === 1) await addUsers(gateway, ['f']);
  });
  const names = pages.map((page) => page.map((each) => (each as { username: string }).username));
  t.strictSame(names, [
    ['a', 'b'],
    ['c', 'd'],
    ['e', 'f'],
  ]);
});

t.test('pages of notices and audit entries are newest first, and a new one does not change later pages', async (t) => {
  const gateway = await testGateway(t);
  for (const number of [1, 2, 3, 4, 5]) {
    await addNotice(gateway, number);
    await addEntry(gateway, number);
  }
  const notices = await follow(gateway, '/notices?limit=2&kind=lock-late', 'notices', (page) =>
    addNotice(gateway, 10 + page),
  );
  const subjects = notices.map((page) => page.map((each) => (each as { subject: string }).subject));
  t.strictSame(subjects, [['5', '4'], ['3', '2'], ['1']]);
  const entries = await follow(gateway, '/audit?limit=2&action=device', 'entries', (page) =>
    addEntry(gateway, 2 * page + 9),
  );
  const objects = entries.map((page) => page.map((each) => (each as { object: string }).object));
  t.strictSame(objects, [['5', '3'], ['1']]);
});

t.test('pages of the commands in one state are newest first', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  await gateway.accounts.addDevice({ mac });
  const send = async (): Promise<void> => {
    const { statusCode } = await got.post(`http://127.0.0.1:${gateway.operatorPort}/commands`, {
      headers: { authorization: `Bearer ${gateway.operatorToken}` },
      json: { macs: [mac], type: 'unlock' },
    });
    t.equal(statusCode, 201);
  };
  for (let count = 0; count < 5; count += 1) await send();
  const pages = await follow(gateway, '/commands?limit=2&state=queued', 'commands', send);
  const ids = pages.map((page) => page.map((each) => (each as { id: number }).id));
  t.strictSame(ids, [[5, 4], [3, 2], [1]]);
});

t.test('pages of the findings about all locks are newest first, each with its lock', async (t) => {
  const gateway = await testGateway(t);
  const macs = [testMac(1), testMac(2), testMac(3)];
  // The judge objects to a second uplink of the same kind that comes too soon.
  for (const mac of macs) {
    const lock = await connectedLock(t, gateway, mac);
    await lock.send(testBytes(1));
    await lock.send(testBytes(2));
  }
  const pages = await follow(gateway, '/findings?limit=2', 'findings', async () => undefined);
  const found = pages.flat() as { id: number; mac: string; rule: string }[];
  t.same(
    found.map(({ id }) => id),
    found.map((_, index) => found.length - index),
    'newest first, each once',
  );
  t.same(new Set(found.map(({ mac }) => mac)), new Set(macs.map(formatMac)));
  const [newest] = found;
  t.match(await get(gateway, `/why?id=finding:${newest?.id}`), { status: 200 });
  t.match(await get(gateway, '/findings?cursor=x'), { status: 400, body: { code: 'input-cursor' } });
});

t.test('a page of deliveries to several URLs may end between two deliveries of one event', async (t) => {
  const gateway = await testGateway(t);
  const receiver = await testReceiver(t);
  for (let count = 0; count < 3; count += 1) await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const lock = await connectedLock(t, gateway, testMac(1));
  for (let sequence = 1; sequence <= 3; sequence += 1) await lock.send(testBytes(sequence));
  const areDelivered = async (count: number): Promise<boolean> =>
    (await readDeliveries(gateway, ['delivered'])).length === count;
  await eventually('all are delivered', () => areDelivered(9));
  const pages = await follow(gateway, '/deliveries?limit=4', 'deliveries', async (page) => {
    if (page !== 1) return;
    await lock.send(testBytes(4));
    await eventually('the new event is delivered too', () => areDelivered(12));
  });
  const places = pages.map((page) =>
    page.map((each) => {
      const { event_id: event, url_id: url } = each as { event_id: string; url_id: number };
      // An event's id is `evt`, the MAC, the credential, the boot, the sequence and a digest.
      const sequence = event.split('_')[4];
      return `${sequence}-${url}`;
    }),
  );
  t.strictSame(places, [['3-1', '3-2', '3-3', '2-1'], ['2-2', '2-3', '1-1', '1-2'], ['1-3']]);
  const until = '2100-01-01T00:00:00Z';
  const recent = await get(gateway, `/deliveries?url=2&mac=${testMac(1)}&until=${until}&since=2020-01-01T00:00:00Z`);
  t.equal((recent.body.deliveries as unknown[]).length, 4, 'each of the four events, once');
  t.equal(recent.link, undefined);
  const none = await get(gateway, `/deliveries?since=${until}`);
  t.match(none.body, { deliveries: [], next_cursor: null });
});

t.test('a cursor is valid only for the same list, and anything else is refused', async (t) => {
  const gateway = await testGateway(t);
  for (const number of [1, 2, 3, 4]) await addEntry(gateway, number);
  const { body } = await get(gateway, '/audit?limit=1');
  const refused = { status: 400, body: { code: 'input-cursor' } };
  t.match(await get(gateway, `/audit?since=2020-01-01T00:00:00Z&cursor=${body.next_cursor}`), { status: 200 });
  t.match(await get(gateway, `/audit?action=device&cursor=${body.next_cursor}`), refused);
  for (const list of ['users', 'notices', 'commands', 'deliveries', 'audit']) {
    t.match(await get(gateway, `/${list}?cursor=${body.next_cursor}0`), refused, list);
    t.match(await get(gateway, `/${list}?limit=0`), { status: 400 }, list);
    t.match(await get(gateway, `/${list}`), { status: 200, body: { next_cursor: null } }, list);
  }
});
