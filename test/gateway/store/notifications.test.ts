/**
 * The queue of notifications in the SQLite store: its migration, its bounds, its indexes, and its secrets when the key
 * of the store changes or is lost. A notification is about one trouble: a message is sent when it opens, and one when
 * it ends. Operators are one recipient, each merchant is one.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { forgetSecrets, rotateKey } from '../../../gateway/data-folder/key-change.js';
import { writeSecretFile } from '../../../gateway/data-folder/secret-file.js';
import {
  MAX_NOTIFICATIONS,
  type NotificationChange,
  OPERATOR_RECIPIENT,
} from '../../../gateway/store/contract/notify/notification-store.js';
import { checkDatabase } from '../../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { migrationProvider } from '../../../gateway/store/sqlite/migrations.js';
import { Kysely, Migrator, SqliteDialect } from '../../../gateway/store/tables/kysely.js';
import { openGateway } from '../../helpers/gateway/test-gateway.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** Any encrypted signing secret. */
const SEALED = Buffer.from('sealed');
const URL = 'http://127.0.0.1:9/';

/** A change of a trouble. @param mayHold whether an opening soon after an end is held back */
function trouble(subject: string, type: 'open' | 'end', atMs: number, mayHold = true): NotificationChange {
  const about = { recipientId: OPERATOR_RECIPIENT, kind: 'lock-late', subject, atMs };
  if (type === 'end') return { ...about, change: { type, how: 'resolved' } };
  return { ...about, change: { type, text: 'late', details: {}, mayHold } };
}

t.test('an older store gets the tables, and its notices are not sent', async (t) => {
  const folder = tempFolder(t);
  const file = path.join(folder, 'lockgate.sqlite');
  const db = openDurable(file);
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  // The last migration before the one that made these tables.
  t.notOk((await new Migrator({ db: tables, provider: migrationProvider }).migrateTo('0030-merchant-closing')).error);
  db.exec(`INSERT INTO notice (kind, subject, text, count, first_at_ms, last_at_ms)
    VALUES ('lock-late', 'A', 'late', 1, 1, 1)`);
  db.close();
  const store = await openStore(folder);
  t.same(await store.notifications.readRecipients(), []);
  await store.notifications.setUrl(OPERATOR_RECIPIENT, URL, SEALED);
  t.equal(await store.notifications.readDue(OPERATOR_RECIPIENT, Number.MAX_SAFE_INTEGER), null);
  await store.notifications.record([trouble('A', 'open', 5)]);
  t.match(await store.notifications.readDue(OPERATOR_RECIPIENT, 0), { subject: 'A', part: 'opened' });
  await store.close();
  t.same((await checkDatabase(file)).damage, [], 'the store is undamaged');
});

t.test('the queue is bounded: finished notifications are deleted first, open ones last', async (t) => {
  const store = await openStore(tempFolder(t));
  t.teardown(() => store.close());
  const { notifications } = store;
  await notifications.setUrl(OPERATOR_RECIPIENT, URL, SEALED);
  await notifications.record([trouble('open', 'open', 1), trouble('done', 'open', 1)]);
  /** Stores that a message was delivered. */
  const conclude = async (id: number, part: 'opened' | 'ended'): Promise<void> => {
    const delivered = { id, part, recipientId: OPERATOR_RECIPIENT, atMs: 1, failure: null, nextAttemptAtMs: null };
    await notifications.conclude(delivered);
  };
  for (const id of [1, 2]) await conclude(id, 'opened');
  await notifications.record([trouble('done', 'end', 2)]);
  await conclude(2, 'ended');
  const more = Array.from({ length: MAX_NOTIFICATIONS - 1 }, (_, number) => trouble(String(number), 'open', 3));
  await notifications.record(more);
  t.equal((await notifications.countMessages(OPERATOR_RECIPIENT)).pending, MAX_NOTIFICATIONS - 1);
  await notifications.record([trouble('open', 'end', 4)]);
  t.equal(
    (await notifications.countMessages(OPERATOR_RECIPIENT)).pending,
    MAX_NOTIFICATIONS,
    'the open trouble was not deleted: now it has a message about its end',
  );
  await notifications.record([trouble('last', 'open', 5)]);
  t.equal((await notifications.countMessages(OPERATOR_RECIPIENT)).pending, MAX_NOTIFICATIONS);
  const firstDue = await notifications.readDue(OPERATOR_RECIPIENT, 9);
  // Every message here is due at once, so they are in the order of their ids. The oldest is that of `open`.
  t.match(firstDue, { subject: '0' }, 'beyond the limit the oldest was deleted');
});

t.test('due messages, and the latest notification of a trouble, are found by an index', async (t) => {
  const folder = tempFolder(t);
  const store = await openStore(folder);
  await store.close();
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'));
  t.teardown(() => db.close());
  const statements = [
    'SELECT * FROM notification INDEXED BY notification_due WHERE recipient_id = 1 AND next_attempt_at_ms <= 9 ' +
      'ORDER BY next_attempt_at_ms, id LIMIT 1',
    "SELECT id FROM notification WHERE recipient_id = 1 AND kind = 'k' AND subject = 's' ORDER BY id DESC LIMIT 1",
    'SELECT * FROM notify_secret WHERE recipient_id = 1 ORDER BY id DESC',
  ];
  for (const statement of statements) {
    const plan = (db.prepare(`EXPLAIN QUERY PLAN ${statement}`).all() as { detail: string }[])
      .map(({ detail }) => detail)
      .join('; ');
    t.match(plan, /USING (COVERING )?INDEX (notification_due|notification_by_trouble|notify_secret_by_recipient)/);
    t.notMatch(plan, /SCAN|TEMP B-TREE/);
  }
});

t.test(
  'messages about one trouble are sent in its order, although one of them is on the way or is repeated',
  async (t) => {
    const store = await openStore(tempFolder(t));
    t.teardown(() => store.close());
    const { notifications } = store;
    await notifications.setUrl(OPERATOR_RECIPIENT, URL, SEALED);
    const sent: string[] = [];
    /** Sends the message that is due at this time. @param nextAttemptAtMs null if it is delivered */
    const send = async (nowMs: number, nextAttemptAtMs: number | null = null): Promise<void> => {
      const message = await notifications.readDue(OPERATOR_RECIPIENT, nowMs);
      if (message === null) throw new Error(`nothing is due at ${nowMs}`);
      const { id, part } = message;
      sent.push(`${id} ${part}`);
      const failure = nextAttemptAtMs === null ? null : { status: 500, error: 'no' };
      await notifications.conclude({
        id,
        part,
        recipientId: OPERATOR_RECIPIENT,
        atMs: nowMs,
        failure,
        nextAttemptAtMs,
      });
    };
    // The trouble opens, ends and opens again while the first message is on the way.
    await notifications.record([
      trouble('A', 'open', 1, false),
      trouble('A', 'end', 2),
      trouble('A', 'open', 3, false),
    ]);
    for (const nowMs of [10, 11, 12]) await send(nowMs);
    t.same(sent.splice(0), ['1 opened', '1 ended', '2 opened']);
    // The message about the end fails twice; the next opening comes before the first repetition.
    await notifications.record([trouble('A', 'end', 20)]);
    await send(20, 100);
    await notifications.record([trouble('A', 'open', 30, false)]);
    t.equal(await notifications.readDue(OPERATOR_RECIPIENT, 99), null);
    await send(100, 200);
    t.equal(await notifications.readDue(OPERATOR_RECIPIENT, 199), null);
    // Another trouble does not wait for this one.
    await notifications.record([trouble('B', 'open', 150, false)]);
    await send(150);
    await send(200);
    await send(200);
    t.same(sent, ['2 ended', '2 ended', '4 opened', '2 ended', '3 opened']);
  },
);

t.test('a wait is shortened after the clock was set back', async (t) => {
  const store = await openStore(tempFolder(t));
  t.teardown(() => store.close());
  const { notifications } = store;
  await notifications.setUrl(OPERATOR_RECIPIENT, URL, SEALED);
  await notifications.record([trouble('A', 'open', 1)]);
  const failed = { id: 1, recipientId: 0, part: 'opened', atMs: 1, failure: { status: 500, error: 'no' } } as const;
  await notifications.conclude({ ...failed, nextAttemptAtMs: 1_000_000 });
  // At the time 100, when the waits between attempts are 0 and 50 ms.
  await notifications.shortenWaits(100, [0, 50]);
  t.equal(await notifications.nextDueAtMs(OPERATOR_RECIPIENT), 150);
  t.match(await notifications.readRecipients(), [{ lastError: { status: 500, error: 'no' } }]);
});

t.test('a changed key seals the secrets again; with a lost key the merchants’ notify URLs are gone', async (t) => {
  const data = tempFolder(t);
  const first = await openGateway(t, data, {}, { notifyUrl: URL });
  await first.accounts.addMerchant('Amber');
  const merchantId = 1;
  await first.notifier.setMerchantUrl(merchantId, URL);
  await first.close();
  await rotateKey({ data, keyFile: null });
  const second = await openGateway(t, data, {}, { notifyUrl: URL });
  t.equal((await second.notifier.read()).length, 2, 'the gateway starts, with both recipients');
  await second.close();
  writeSecretFile(path.join(data, 'key'), Buffer.alloc(32, 7).toString('base64'));
  t.same((await forgetSecrets({ data, keyFile: null })).notified, [null, 'Amber'], 'the operators and the merchant');
  const third = await openGateway(t, data, {}, { notifyUrl: URL });
  t.match(await third.notifier.read(), [{ id: OPERATOR_RECIPIENT }]);
});
