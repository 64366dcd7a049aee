/** The store remembers which uplink is the first one from a time on. That stays right when more uplinks come. */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import type { IncomingUplink } from '../../../gateway/store/contract/log/commit.js';
import { FirstUplinks } from '../../../gateway/store/sqlite/tables/webhooks/first-uplinks.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { chooseSeed, SeededChance } from '../../helpers/pair/seeded-chance.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

function uplink(sequence: number, receivedAtMs: number): IncomingUplink {
  const bytes = testBytes(sequence);
  const key = { deviceId: 1, merchantId: 1, credentialId: 1, boot: 1, sequence };
  return { type: 'uplink', ...key, digest: uplinkDigest(bytes), kind: 1, bytes, receivedAtMs, buffered: false };
}

t.test('what is remembered stays right while uplinks come', async (t) => {
  const seed = chooseSeed();
  t.comment(`seed ${seed}`);
  const random = new SeededChance(seed);
  const folder = tempFolder(t);
  const store = await openStore(folder);
  t.teardown(() => store.close());
  await store.addMerchant('Amber', 1);
  const account = { merchant: 'Amber', simulated: true, secretHash: Buffer.alloc(32), nowMs: 1 };
  await store.addDevice({ ...account, mac: testMac(1) });
  const reader = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  t.teardown(() => reader.close());
  const firsts = new FirstUplinks(reader);
  t.equal(firsts.find(5), 1, 'in an empty log, the id that the first uplink will get');
  const receivedAtMs: number[] = [];
  for (let commit = 0; commit < 20; commit += 1) {
    const incoming = Array.from({ length: random.between(1, 6) }, () => {
      receivedAtMs.push((receivedAtMs.at(-1) ?? 0) + random.between(0, 4));
      return uplink(receivedAtMs.length, receivedAtMs.at(-1) ?? 0);
    });
    await store.append({ incoming, judged: [], states: new Map() });
    for (let atMs = 0; atMs <= (receivedAtMs.at(-1) ?? 0) + 2; atMs += 1) {
      const index = receivedAtMs.findIndex((each) => each >= atMs);
      const expected = (index === -1 ? receivedAtMs.length : index) + 1;
      if (firsts.find(atMs) !== expected) t.equal(firsts.find(atMs), expected, `from ${atMs} on`);
    }
  }
  t.ok(receivedAtMs.length > 20);
});

t.test('the answers for at most 1,000 moments are remembered', async (t) => {
  const db = new SqliteDatabase(':memory:');
  t.teardown(() => db.close());
  db.exec('CREATE TABLE uplink (id integer PRIMARY KEY, received_at_ms integer); INSERT INTO uplink VALUES (7, 9000)');
  const firsts = new FirstUplinks(db);
  for (let atMs = 0; atMs < 1_001; atMs += 1) firsts.find(atMs);
  db.exec('DELETE FROM uplink');
  t.same([firsts.find(1_000), firsts.find(1), firsts.find(0)], [7, 7, 1], 'the one that was found first is forgotten');
});
