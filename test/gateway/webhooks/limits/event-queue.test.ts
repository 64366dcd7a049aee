/**
 * The event queue of a webhook URL reads the log only when the log may have events that the queue has not read. The
 * URL's worker asks the queue for events after each attempt; if the queue read the log each time, there would be a read
 * for each delivery. Although reads are saved, no event may be missed. The store here has only the two reads that the
 * queue makes.
 */
import t from 'tap';
import { LOG_START } from '../../../../gateway/store/contract/log/log-position.js';
import type { StoredUplink } from '../../../../gateway/store/contract/log/stored-uplink.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import type { WebhookUrl } from '../../../../gateway/store/contract/webhooks/webhook-url.js';
import { EventQueue } from '../../../../gateway/webhooks/url/event-queue.js';

/** The number of events that the queue reads at a time. */
const EVENTS_PER_READ = 128;

/** A log with ids from 1 on, and a queue that follows it. `beforeAnswer` runs while a read is under way. */
function setUp() {
  const log = { lastId: 0, reads: 0, beforeAnswer: async (): Promise<void> => undefined };
  // The methods of a store that a queue calls.
  const store = {
    readOutcomesAfter: async () => [],
    readEvents: async (_merchantId: number, after: ReadonlyMap<number, number>, limit: number) => {
      log.reads += 1;
      const first = Math.max(0, ...after.values()) + 1;
      const count = Math.min(limit, log.lastId - first + 1);
      const events = Array.from({ length: count }, (_, index) => ({ id: first + index, deviceId: 1 }) as StoredUplink);
      await log.beforeAnswer();
      return events;
    },
  } as unknown as Store;
  const url = { id: 1, merchantId: 1, cursor: LOG_START, filter: null } as WebhookUrl;
  return { log, queue: new EventQueue(url, store) };
}

/** Reads as a worker does: as long as there may be more. */
async function readAll(queue: EventQueue): Promise<void> {
  while (queue.mayHaveMore) await queue.readMore();
}

t.test('after a read to the end the log is not read again before the next commit', async (t) => {
  const { log, queue } = setUp();
  log.lastId = 3;
  await readAll(queue);
  t.same([queue.length, log.reads], [3, 1], 'a page that is not full is the last one');
  await readAll(queue);
  t.equal(log.reads, 1, 'nothing was stored since');
  log.lastId = 4;
  queue.expectMore();
  await readAll(queue);
  t.same([queue.length, log.reads], [4, 2]);
});

t.test('a full page may be followed by another', async (t) => {
  const { log, queue } = setUp();
  log.lastId = 2 * EVENTS_PER_READ;
  await readAll(queue);
  t.same([queue.length, log.reads], [2 * EVENTS_PER_READ, 3], 'the third page is empty');
});

t.test('a commit during a read is read after it', async (t) => {
  const { log, queue } = setUp();
  log.lastId = 1;
  log.beforeAnswer = async () => {
    log.beforeAnswer = async () => undefined;
    log.lastId = 2;
    queue.expectMore();
  };
  await readAll(queue);
  t.same([queue.length, log.reads], [2, 2]);
});

t.test('events are read again after a failed read, and after a lock was erased during one', async (t) => {
  const { log, queue } = setUp();
  log.lastId = 1;
  log.beforeAnswer = async () => {
    throw new Error('the disk is full');
  };
  await t.rejects(queue.readMore(), { message: 'the disk is full' });
  t.ok(queue.mayHaveMore, 'it must read again');
  log.beforeAnswer = async () => {
    log.beforeAnswer = async () => undefined;
    queue.forgetLock(2);
  };
  await readAll(queue);
  t.same([queue.length, log.reads], [1, 3], 'one event, from the failed read, the disturbed one and another');
});
