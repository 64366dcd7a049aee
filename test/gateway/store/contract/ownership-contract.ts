/**
 * The contract suite of the store's parts for several gateways (gateway/store/contract/slots and log/commit-result.ts):
 * what a commit refuses, and ownership. Each engine's test file calls it. A commit's result names refused parts by
 * their indexes: of `commands` in `refusedCommands`, of `incoming` in `repeatedUplinks`. A duty is work that one
 * gateway does for all, such as the deletion of old data.
 */
import t from 'tap';
import type { CommandChange, NewCommand } from '../../../../gateway/store/contract/command-record.js';
import type { Commit, Incoming } from '../../../../gateway/store/contract/log/commit.js';
import { ALL_STORED } from '../../../../gateway/store/contract/log/commit-result.js';
import { DUTIES } from '../../../../gateway/store/contract/slots/ownership.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import { uplinkDigest } from '../../../../gateway/webhooks/event-id.js';
import { testBytes, testMac } from '../../../helpers/gateway/test-gateway.js';
import { type Teardown, tempFolder } from '../../../helpers/store/temp-folder.js';
import type { OpenStore } from './contract-store.js';

const MAC = testMac();
const RESET: NewCommand = {
  ...{ deviceId: 1, merchantId: 1, command: { type: 'reset' }, askedBy: 'ann' },
  ...{ createdAtMs: 10, notBeforeMs: null, expiresAtMs: 99 },
};

/** A store with a merchant and its lock, both with id 1. */
async function withLock(test: Teardown, open: OpenStore): Promise<Store> {
  const store = await open(tempFolder(test));
  test.teardown(() => store.close());
  await store.addMerchant('Amber', 5);
  await store.addDevice({ mac: MAC, merchant: 'Amber', simulated: true, secretHash: Buffer.alloc(32), nowMs: 6 });
  return store;
}

/** A ping of the lock. */
function uplink(sequence: number): Incoming {
  const bytes = testBytes(sequence);
  const key = { deviceId: 1, merchantId: 1, credentialId: 1, boot: 1, sequence, digest: uplinkDigest(bytes) };
  return { type: 'uplink', ...key, kind: 1, bytes, receivedAtMs: 1000 + sequence, buffered: false };
}

/** What ingest commits when commands leave: that each was sent, and the lock event about it. */
function sending(...ids: number[]): Commit {
  return {
    incoming: ids.map((id) => {
      return { type: 'lock-event', deviceId: 1, atMs: 20, event: { event: 'command', id, command: { type: 'reset' } } };
    }),
    judged: [],
    states: new Map(),
    commands: ids.map((id): CommandChange => ({ type: 'sent', id, atMs: 20 })),
  };
}

/** The ids of the commands whose sending is in the lock's log. */
async function loggedCommands(store: Store): Promise<unknown[]> {
  const ids: unknown[] = [];
  for await (const chunk of store.readLog(1, 10))
    for (const entry of chunk)
      if (entry.type === 'lock-event' && entry.event.event === 'command') ids.push(entry.event.id);
  return ids;
}

/** Runs the suite. */
export function ownershipContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a command that was cancelled, has expired or was answered is not sent`, async (t) => {
    const store = await withLock(t, open);
    await store.commands.add([RESET, RESET, RESET, RESET]);
    await store.commands.cancel(1, 15);
    t.same(await store.append(sending(1, 2)), { refusedCommands: [0], repeatedUplinks: [] });
    t.match(await store.commands.find(1), { state: 'cancelled', sentCount: 0, firstSentAtMs: null });
    t.match(await store.commands.find(2), { state: 'sent', sentCount: 1 });
    t.same(await loggedCommands(store), [2], 'nor is it in the log of the lock');
    await store.commands.expire([3], 16);
    const answer = { type: 'acknowledged', id: 2, deviceId: 1, state: 'done', detail: '', atMs: 21 } as const;
    t.same(await store.append({ ...sending(), commands: [answer] }), ALL_STORED);
    t.match(await store.append(sending(4, 3, 2)), { refusedCommands: [1, 2] });
    t.match(await store.commands.find(2), { state: 'done', sentCount: 1 }, 'nothing of it changed');
    t.same(await loggedCommands(store), [2, 4]);
  });

  t.test(`${engine}: an answer that does not count is refused, and stored as an uplink`, async (t) => {
    const store = await withLock(t, open);
    await store.commands.add([RESET, RESET]);
    await store.append(sending(1));
    const answer = { type: 'acknowledged', id: 1, deviceId: 1, state: 'done', detail: '', atMs: 30 } as const;
    const commands = [
      { ...answer, deviceId: 2 },
      answer,
      { ...answer, state: 'failed' },
      { ...answer, id: 2 },
    ] as const;
    t.match(await store.append({ ...sending(), incoming: [uplink(1)], commands }), { refusedCommands: [0, 2, 3] });
    t.match(await store.commands.find(1), { state: 'done', finishedAtMs: 30 });
    t.equal((await store.readUplinks(1, 9)).length, 1, 'the uplink is stored');
  });

  t.test(`${engine}: a commit says which uplinks the log had already`, async (t) => {
    const store = await withLock(t, open);
    const connect = { type: 'lock-event', deviceId: 1, atMs: 5, event: { event: 'connect' } } as const;
    const commit = (...incoming: Incoming[]): Commit => ({ incoming, judged: [], states: new Map() });
    t.same(await store.append(commit(uplink(1), connect, uplink(2))), ALL_STORED);
    const mixed = commit(connect, uplink(2), connect, uplink(3), uplink(1), uplink(3));
    t.same(await store.append(mixed), { refusedCommands: [], repeatedUplinks: [1, 4, 5] });
    t.same(await store.append(commit(uplink(4))), ALL_STORED);
  });

  t.test(`${engine}: unfinished commands are read for some locks`, async (t) => {
    const store = await withLock(t, open);
    await store.addDevice({
      mac: testMac(2),
      merchant: 'Amber',
      simulated: true,
      secretHash: Buffer.alloc(32),
      nowMs: 6,
    });
    await store.commands.add([RESET, { ...RESET, deviceId: 2 }]);
    t.match(await store.commands.readUnfinished([2]), [{ id: 2 }]);
    t.same(await store.commands.readUnfinished([]), []);
    t.equal((await store.commands.readUnfinished()).length, 2, 'without a list, those of all locks');
  });

  t.test(`${engine}: a gateway alone owns what it claims, and has all duties`, async (t) => {
    const { ownership } = await withLock(t, open);
    for (const source of ['lock', 'phone'] as const) {
      t.match(await ownership.locks.claim({ deviceId: 1, source }), { isGranted: true });
      t.equal(ownership.locks.owns(1, source), true);
    }
    t.same(await ownership.locks.adopt(10, 0), [], 'nothing has lost its owner');
    t.same(await ownership.urls.claim([]), []);
    for (const duty of DUTIES) t.equal(ownership.duties.holds(duty), true, duty);
  });
}
