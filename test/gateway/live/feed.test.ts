/**
 * The feed behind the streams of locks (GET /v1/stream for merchants, GET /stream for operators), without HTTP: how
 * much work streams cause for each ping, what slow and interrupted clients get, and the limits. LiveSite has a store in
 * memory and clocks that advance only when the test says so, so every number is exact. A stream of merchant `undefined`
 * is an operator's. Changes are collected for 200 ms, so 300 ms later they have been sent.
 */
import t from 'tap';
import type { Audience, Delta } from '../../../gateway/live/audience.js';
import { LiveBatch, LiveDelivery } from '../../../gateway/live/live-batch.js';
import { MAX_STREAMS, MAX_STREAMS_PER_MERCHANT } from '../../../gateway/live/live-feed.js';
import { COMMENT_INTERVAL, MAX_LAG } from '../../../gateway/live/live-stream.js';
import { FLUSH_DELAY, MAX_MOVES_PER_FLUSH } from '../../../gateway/live/waiting-changes.js';
import { Minutes, Seconds } from '../../../proto/clock.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';
import { eventsIn, finishWork, LiveSite, readText } from '../../helpers/live/live-site.js';

t.test('without streams nothing listens, and for a minute after the last one changes are collected', async (t) => {
  const lockCount = 3;
  const site = new LiveSite(lockCount);
  t.equal(site.listeners, 0);
  const stream = site.open(undefined, { hasEvents: true });
  readText(stream.out);
  await finishWork();
  t.ok(site.listeners > 0);
  stream.end();
  await finishWork();
  t.equal(site.feed.count, 0);
  t.ok(site.listeners > 0, 'a client may reconnect soon');
  await site.advance(Minutes(1));
  t.equal(site.listeners, 0);
  t.equal(site.clock.pending, 0, 'no timer runs');
});

t.test('locks are read and rendered at intervals, not for each ping or each stream', async (t) => {
  const site = new LiveSite(200);
  const streams = Array.from({ length: 20 }, () => site.open(undefined, { hasEvents: true }));
  const readers = streams.map(({ out }) => readText(out));
  await finishWork();
  Object.assign(site.work, { locksRead: 0, locksRendered: 0, eventsRendered: 0 });
  for (let ping = 0; ping < 1_000; ping += 1) site.change((ping % 50) + 1);
  site.emitGatewayEvents(500);
  t.strictSame(
    site.work,
    { locksRead: 0, locksRendered: 0, eventsRendered: 0 },
    'nothing is read or rendered while pings arrive',
  );
  await site.advance(300);
  t.strictSame(
    site.work,
    { locksRead: 50, locksRendered: 50, eventsRendered: 500 },
    'after 1,000 pings of 50 locks, each lock is read and rendered once for all 20 streams',
  );
  for (const { text } of readers) t.equal(eventsIn(text).filter((name) => name.startsWith('lock ')).length, 50);
  site.feed.stop();
});

t.test('what 200 locks changed is written to each stream once', async (t) => {
  const lockCount = 200;
  const site = new LiveSite(lockCount);
  const streams = Array.from({ length: 3 }, () => site.open(undefined));
  const writes = streams.map(({ out }) => {
    const chunks: string[] = [];
    out.on('data', (chunk: Buffer) => chunks.push(chunk.toString()));
    return chunks;
  });
  await finishWork();
  for (const chunks of writes) chunks.length = 0;
  const edited = [...site.devices.keys()].map((deviceId) => ({ deviceId }));
  site.events.emit('locks-changed', { locks: edited, isEdit: true } as never);
  await site.advance(300);
  for (const chunks of writes) {
    t.equal(chunks.length, 1);
    t.equal(eventsIn(chunks.join('')).length, lockCount);
  }
  site.feed.stop();
});

t.test('a stream that read locks by itself does not get their states from before', (t) => {
  const audience = { name: 'operators', merchantId: undefined, departureJson: () => 'gone' } as unknown as Audience;
  const batchOf = (sequence: number) =>
    new LiveBatch([{ kind: 'departure', sequence, mac: testMac(sequence), merchantId: 1 } satisfies Delta]);
  const delivery = new LiveDelivery([batchOf(1), batchOf(2)]);
  const idsAfter = (position: number): string[] => eventsIn(delivery.bytesAfter(position, audience, String).toString());
  t.equal(idsAfter(0).length, 2);
  t.equal(idsAfter(1).length, 1);
  t.equal(idsAfter(2).length, 0);
  t.equal(
    delivery.bytesAfter(0, audience, String),
    delivery.bytesAfter(0, audience, String),
    'streams share the bytes',
  );
  t.end();
});

t.test('locks of merchants without a stream are not read again', async (t) => {
  const site = new LiveSite(2);
  const otherMerchant = 2;
  for (let id = 3; id <= 100; id += 1) site.setDevice(id, otherMerchant);
  readText(site.open(1).out);
  await finishWork();
  site.change(...site.devices.keys());
  await site.advance(300);
  // The first change of each lock made the feed read it, and note its merchant.
  site.work.locksRead = 0;
  await site.advance(Seconds(2));
  site.change(...site.devices.keys());
  await site.advance(300);
  t.equal(site.work.locksRead, 2, 'only the locks of merchant 1, which has the stream');
  site.feed.stop();
});

t.test('streams that open within a second share a snapshot, and get what changed since it was read', async (t) => {
  const lockCount = 250;
  const site = new LiveSite(lockCount);
  const together = Array.from({ length: 20 }, () => readText(site.open(undefined).out));
  await finishWork();
  t.match(site.work, { locksRead: lockCount, locksRendered: lockCount });
  const snapshot = ['snapshot of 100', 'snapshot of 100', 'snapshot of 50'];
  for (const { text } of together) t.strictSame(eventsIn(text), snapshot);

  site.setDevice(7, 1, 'renamed');
  site.events.emit('locks-changed', { locks: [{ deviceId: 7 }], isEdit: true });
  await site.advance(300);
  const late = readText(site.open(undefined).out);
  await finishWork();
  t.strictSame(eventsIn(late.text), [...snapshot, 'lock 7'], 'the snapshot is older than the change');
  t.match(late.text.slice(late.text.indexOf('event: lock')), 'renamed');
  t.match(
    late.text,
    /^id: [\w-]{16}\.0\nd.+\n\nevent: lock/m,
    'the snapshot’s id is from before the change, so a client that is cut off after the snapshot and resumes gets it',
  );

  const once = readText(site.open(undefined, { duration: 0 }).out);
  await finishWork();
  t.strictSame(eventsIn(once.text), snapshot, 'a stream that ends with its snapshot gets a new one, without changes');

  await site.advance(Seconds(1));
  site.work.locksRead = 0;
  const later = readText(site.open(undefined).out);
  await finishWork();
  t.strictSame(eventsIn(later.text), snapshot);
  t.equal(site.work.locksRead, lockCount, 'after a second it is read again');
  readText(site.open(1).out);
  await finishWork();
  t.equal(site.work.locksRead, 2 * lockCount, 'merchants share nothing with operators');
  site.feed.stop();
});

t.test('a stream starts with a snapshot and has each lock at most once a second', async (t) => {
  const site = new LiveSite(250);
  const received = readText(site.open(1).out);
  await finishWork();
  t.strictSame(eventsIn(received.text), ['snapshot of 100', 'snapshot of 100', 'snapshot of 50']);
  const ids = [...received.text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id);
  t.match(ids, ['', /^[\w-]{16}\.0$/], 'the first part clears the last id, the last one sets it');
  received.text = '';
  for (let turn = 0; turn < 30; turn += 1) {
    site.change(7);
    await site.advance(100);
  }
  t.strictSame(eventsIn(received.text), ['lock 7', 'lock 7', 'lock 7']);
  await site.advance(Seconds(2));
  t.equal(eventsIn(received.text).length, 4, 'the last change is sent too');
  site.feed.stop();
});

t.test('of many locks that only move, each has its turn, and 250 of a merchant are sent in a second', async (t) => {
  const lockCount = 600;
  const site = new LiveSite(lockCount);
  const otherMerchant = 2;
  site.setDevice(lockCount + 1, otherMerchant);
  const received = readText(site.open(1).out);
  const others = readText(site.open(otherMerchant).out);
  await finishWork();
  received.text = '';
  await site.changeAllFor(Seconds(1));
  const sentFirst = eventsIn(received.text).length;
  t.ok(sentFirst <= (Seconds(1) * MAX_MOVES_PER_FLUSH) / FLUSH_DELAY, `${sentFirst} right after the snapshot`);
  await site.advance(Seconds(4));
  received.text = '';
  others.text = '';
  await site.changeAllFor(Seconds(4));
  const sent = eventsIn(received.text);
  t.equal(sent.length, (4 * Seconds(1) * MAX_MOVES_PER_FLUSH) / FLUSH_DELAY);
  t.equal(new Set(sent).size, lockCount, 'each lock was sent');
  t.ok(eventsIn(others.text).length >= 3, 'another merchant’s lock does not wait for them');
  await site.advance(Seconds(4));
  t.strictSame(
    new Set(eventsIn(received.text).slice(-lockCount)).size,
    lockCount,
    'when they rest, all of them have been sent once more',
  );
  site.feed.stop();
});

t.test('a theft, an edit and a command do not wait for locks that only move', async (t) => {
  const lockCount = 600;
  const site = new LiveSite(lockCount);
  const received = readText(site.open(1).out);
  await site.changeAllFor(Seconds(1));
  await site.advance(Seconds(4));
  await site.changeAllFor(Seconds(2));
  // Of the 600 locks, three that were sent longest ago.
  const sentLately = eventsIn(received.text).slice(-300);
  const [stolen = 0, edited = 0, commanded = 0] = [...site.devices.keys()].filter(
    (id) => !sentLately.includes(`lock ${id}`),
  );
  received.text = '';
  site.change(...site.devices.keys());
  site.steal(stolen);
  site.change(stolen);
  site.events.emit('locks-changed', { locks: [{ deviceId: edited }], isEdit: true });
  site.events.emit('command', { record: { deviceId: commanded } } as never);
  await site.advance(300);
  const sent = eventsIn(received.text);
  for (const id of [stolen, edited, commanded]) t.ok(sent.includes(`lock ${id}`));
  const mostFlushes = Math.ceil(300 / FLUSH_DELAY);
  t.ok(sent.length <= mostFlushes * MAX_MOVES_PER_FLUSH + 3, 'the others wait for their turns');
  site.feed.stop();
});

t.test('a merchant gets only its locks, also when locks move to another merchant or are added', async (t) => {
  const site = new LiveSite(2);
  site.setDevice(3, 2);
  const [ownEvents, otherMerchantsEvents, operatorsEvents] = [1, 2, undefined].map((merchantId) =>
    readText(site.open(merchantId).out),
  );
  await finishWork();
  for (const received of [ownEvents, otherMerchantsEvents, operatorsEvents])
    if (received !== undefined) received.text = '';
  site.setDevice(1, 2, 'moved');
  site.events.emit('lock-departed', { deviceId: 1, mac: testMac(1), merchantId: 1 });
  site.change(1);
  site.setDevice(4, 1);
  site.events.emit('locks-added', { macs: [testMac(4)] });
  await site.advance(300);
  t.strictSame(eventsIn(ownEvents?.text ?? ''), ['removed', 'lock 4']);
  t.strictSame(eventsIn(otherMerchantsEvents?.text ?? ''), ['lock 1']);
  t.strictSame(eventsIn(operatorsEvents?.text ?? ''), ['removed', 'lock 1', 'lock 4']);
  site.feed.stop();
});

t.test('a client that reconnects gets what it missed, but only with an id of its own stream', async (t) => {
  const site = new LiveSite(5);
  const stream = site.open(1);
  const received = readText(stream.out);
  await finishWork();
  site.change(1);
  await site.advance(300);
  const lastEventId = [...received.text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1] ?? '';
  stream.end();
  await finishWork();
  site.change(2, 3);
  await site.advance(Seconds(2));
  site.change(3);
  await site.advance(Seconds(2));
  const resumed = readText(site.open(1, { lastEventId }).out);
  await finishWork();
  t.strictSame(eventsIn(resumed.text), ['lock 2', 'lock 3'], 'each changed lock once');
  // An id is the tag of the gateway's run and of the caller, and a number that counts the changes.
  const [tag = '', sequence = ''] = lastEventId.split('.');
  for (const [name, request] of [
    ['another merchant', { merchantId: 2, lastEventId }],
    ['the operators', { merchantId: undefined, lastEventId }],
    ['an unknown tag', { merchantId: 1, lastEventId: `${'x'.repeat(16)}.${sequence}` }],
    ['a sequence to come', { merchantId: 1, lastEventId: `${tag}.999` }],
    ['no id at all', { merchantId: 1, lastEventId: '1 OR 1' }],
  ] as const) {
    const newStream = readText(site.open(request.merchantId, { lastEventId: request.lastEventId }).out);
    await finishWork();
    t.match(eventsIn(newStream.text)[0], /^snapshot/, name);
  }
  site.feed.stop();
  const otherSite = new LiveSite(5);
  // Its changes have the sequence of the id, and higher ones.
  readText(otherSite.open(1).out);
  await finishWork();
  otherSite.change(1, 2, 3, 4, 5);
  await otherSite.advance(Seconds(2));
  const streamElsewhere = readText(otherSite.open(1, { lastEventId }).out);
  await finishWork();
  t.match(eventsIn(streamElsewhere.text)[0], /^snapshot/, 'another gateway');
  otherSite.feed.stop();
});

t.test('a slow client costs little memory, and gets a new snapshot', async (t) => {
  const site = new LiveSite(1);
  const longName = 'x'.repeat(20_000);
  for (let id = 1; id <= 20; id += 1) site.setDevice(id, 1, longName);
  const stream = site.open(1);
  const received = readText(stream.out);
  await finishWork();
  stream.out.pause();
  received.text = '';
  let maxWaitingBytes = 0;
  for (let second = 0; second < 20; second += 1) {
    site.change(...site.devices.keys());
    await site.advance(Seconds(1));
    maxWaitingBytes = Math.max(maxWaitingBytes, stream.out.readableLength + stream.out.writableLength);
  }
  t.ok(maxWaitingBytes < 1_000_000, `${maxWaitingBytes} bytes wait, although 8 MB were to be sent`);
  stream.out.resume();
  await finishWork();
  const events = eventsIn(received.text);
  t.equal(events.filter((each) => each.startsWith('lock ')).length, 20, 'the changes of one second were sent');
  t.equal(events.at(-1), 'snapshot of 20', 'then the present state');
  received.text = '';
  site.change(3);
  await site.advance(Seconds(1));
  t.strictSame(eventsIn(received.text), ['lock 3'], 'and then changes again');
  site.feed.stop();
});

t.test('a client that was slow for less than MAX_LAG gets the present state of each changed lock', async (t) => {
  const site = new LiveSite(30);
  for (let id = 1; id <= 30; id += 1) site.setDevice(id, 1, 'x'.repeat(20_000));
  const stream = site.open(1);
  let received = readText(stream.out);
  await site.advance(Seconds(2));
  stream.out.removeAllListeners('data').pause();
  site.change(...site.devices.keys());
  await site.advance(300);
  site.change(2);
  // Together less than MAX_LAG since the client stopped reading.
  await site.advance(MAX_LAG - 1_500);
  received.text = '';
  received = readText(stream.out);
  stream.out.resume();
  await finishWork();
  const events = eventsIn(received.text);
  t.notOk(events.some((each) => each.startsWith('snapshot')));
  t.equal(events.at(-1), 'lock 2');
  site.feed.stop();
});

t.test('a client that reads nothing is disconnected after two minutes', async (t) => {
  const site = new LiveSite(20);
  for (let id = 1; id <= 20; id += 1) site.setDevice(id, 1, 'x'.repeat(20_000));
  site.open(1);
  await site.advance(Minutes(1));
  t.equal(site.feed.count, 1);
  await site.advance(Minutes(1) + Seconds(10));
  t.equal(site.feed.count, 0, 'the client that did not read is gone');
  site.feed.stop();
});

t.test('a comment comes every 15 seconds', async (t) => {
  const site = new LiveSite(1);
  const received = readText(site.open(1).out);
  await site.advance(COMMENT_INTERVAL * 4);
  t.equal(received.text.split('\n\n').filter((block) => block === ':').length, 4, 'four in a minute');
  site.feed.stop();
});

t.test('a caller that loses its rights loses its stream within 5 seconds; a failing store ends none', async (t) => {
  const site = new LiveSite(1);
  let outcome: 'allowed' | 'failing' | 'refused' = 'allowed';
  const isAllowed = async (): Promise<boolean> => {
    if (outcome === 'failing') throw new Error('the store can’t be read');
    return outcome === 'allowed';
  };
  const [checked, alwaysAllowed] = [site.open(1, { isAllowed }), site.open(1)];
  for (const { out } of [checked, alwaysAllowed]) readText(out);
  await site.advance(Seconds(10));
  outcome = 'failing';
  await site.advance(Seconds(10));
  t.equal(site.feed.count, 2);
  outcome = 'refused';
  await site.advance(Seconds(4));
  t.equal(site.feed.count, 1, 'the refused one has ended');
  site.feed.stop();
});

t.test('streams are limited for each merchant and in all', async (t) => {
  const site = new LiveSite(1);
  const open = (merchantId: number | undefined): void => void readText(site.open(merchantId).out);
  for (let count = 0; count < MAX_STREAMS_PER_MERCHANT; count += 1) open(1);
  t.throws(() => open(1), { code: 'rate-limited', budget: 'streams' });
  for (let merchantId = 2; site.feed.count < MAX_STREAMS; merchantId += 1)
    for (let count = 0; count < MAX_STREAMS_PER_MERCHANT; count += 1) open(merchantId);
  t.throws(() => open(999), { code: 'busy' });
  t.doesNotThrow(() => open(undefined), 'operators have places of their own');
  site.feed.stop();
  t.throws(() => open(1), { code: 'stopping' });
});

t.test('a stream ends after its duration, or with duration 0 right after the snapshot', async (t) => {
  const site = new LiveSite(1);
  const once = readText(site.open(1, { duration: 0 }).out);
  await finishWork();
  t.strictSame([eventsIn(once.text), site.feed.count], [['snapshot of 1'], 0]);
  readText(site.open(1, { duration: Seconds(3) }).out);
  await site.advance(Seconds(2));
  t.equal(site.feed.count, 1);
  await site.advance(Seconds(2));
  t.equal(site.feed.count, 0);
  site.feed.stop();
});

t.test('gateway events beyond 1,000 that wait to be sent are skipped, and the client gets their number', async (t) => {
  const site = new LiveSite(1);
  const received = readText(site.open(undefined, { hasEvents: true, hasLocks: false }).out);
  await finishWork();
  site.emitGatewayEvents(3);
  await site.advance(300);
  t.strictSame(eventsIn(received.text), ['event', 'event', 'event']);
  site.emitGatewayEvents(1_300);
  await site.advance(Seconds(2));
  t.match(received.text, /event: skipped\ndata: \{"events":300\}/, 'within two seconds, without a further event');
  site.emitGatewayEvents(1);
  await site.advance(300);
  t.equal(site.work.eventsRendered, 3 + 1_000 + 1, 'skipped events are not rendered');
  site.feed.stop();
});
