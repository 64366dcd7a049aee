/**
 * The contract suite of the store (gateway/store/contract): the behaviour that every database engine must have. Each
 * engine's test file calls it with a function that opens the engine. Uplinks are a lock's messages; those that are
 * pings are the merchant's events.
 */
import t from 'tap';
import type { CommandChange, NewCommand } from '../../../gateway/store/contract/command-record.js';
import {
  type Commit,
  type Incoming,
  type IncomingUplink,
  MAX_LOCK_EVENTS_PER_LOCK,
  MAX_QUARANTINED_PER_LOCK,
} from '../../../gateway/store/contract/log/commit.js';
import type { LockEvent } from '../../../gateway/store/contract/log/log-entry.js';
import { LOG_START, positionAfter } from '../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { AttemptRecord } from '../../../gateway/store/contract/webhooks/delivery.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import type { Finding } from '../../../proto/power/judge/event.js';
import { testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

/** Opens the engine on a folder, creating the store if it doesn't exist. */
export type OpenStore = (folder: string) => Promise<Store>;

/** Any hash of a secret. */
const HASH = Buffer.alloc(32, 7);
const MAC = testMac();
/** A slot of the log in which no engine that is tested here writes. */
const UNUSED_SLOT = 61;

function uplink(sequence: number, members: Partial<IncomingUplink> = {}): IncomingUplink {
  const bytes = members.bytes ?? testBytes(sequence);
  return {
    type: 'uplink',
    deviceId: 1,
    merchantId: 1,
    credentialId: 1,
    boot: 1,
    sequence,
    digest: uplinkDigest(bytes),
    kind: 1,
    bytes,
    receivedAtMs: 1000 + sequence,
    buffered: false,
    ...members,
  };
}

/** A commit (what one transaction stores) with these messages and events. */
function commit(...incoming: Incoming[]): Commit {
  return { incoming, judged: [], states: new Map() };
}

/** A new store with a merchant and its lock, both with id 1. */
async function withLock(test: Teardown, open: OpenStore): Promise<{ store: Store; folder: string }> {
  const folder = tempFolder(test);
  const store = await open(folder);
  test.teardown(() => store.close().catch(() => undefined));
  await store.addMerchant('Amber', 5);
  await store.addDevice({ mac: MAC, merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
  return { store, folder };
}

function attempt(uplinkId: number, number: number, outcome: AttemptRecord['outcome']): AttemptRecord {
  return { urlId: 1, uplinkId, number, atMs: 9, durationMs: 1, status: 500, error: 'no', answer: '', outcome };
}

/** Runs the suite. */
export function storeContract(engine: string, open: OpenStore): void {
  logContract(engine, open);
  judgedContract(engine, open);
  logOrderContract(engine, open);
  eventContract(engine, open);
  deliveryContract(engine, open);
  registryContract(engine, open);
  commandContract(engine, open);
  commandTargetContract(engine, open);
  powerChangeContract(engine, open);
  identityContract(engine, open);
  deletionContract(engine, open);
  explanationContract(engine, open);
}

function logContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: an uplink is stored once by its key and content`, async (t) => {
    const { store, folder } = await withLock(t, open);
    await store.append(commit(uplink(1), uplink(2), uplink(1)));
    const other = testBytes(2, { dropped: 9 });
    await store.append(commit(uplink(2), uplink(2, { bytes: other, digest: uplinkDigest(other) })));
    await store.append(commit(uplink(1, { credentialId: 2 }), uplink(1, { boot: 2 })));
    const digests = await store.readDigests(1, 1, 2);
    t.same(digests.sort(Buffer.compare), [uplinkDigest(testBytes(2)), uplinkDigest(other)].sort(Buffer.compare));
    t.same(await store.readDigests(1, 9, 2), []);
    t.equal(await store.readLastReceivedAtMs(), 1001);
    await store.close();
    const reopened = await open(folder);
    t.teardown(() => reopened.close());
    await reopened.append(commit(uplink(1), uplink(3)));
    t.same(
      (await reopened.readEvents(1, LOG_START, 10)).map(({ boot, sequence }) => [boot, sequence]),
      [
        [1, 1],
        [1, 2],
        [1, 2],
        [1, 1],
        [2, 1],
        [1, 3],
      ],
    );
  });
}

function judgedContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: uplinks after a lock's stored state are found among the newest uplinks`, async (t) => {
    const { store } = await withLock(t, open);
    const afterStates = async (limit: number): Promise<number[]> => {
      const periodFinding: number[] = [];
      for await (const chunk of store.readUplinksAfterStates(limit, 2))
        periodFinding.push(...chunk.map(({ sequence }) => sequence));
      return periodFinding;
    };
    const states = new Map([[1, '{"a":1}']]);
    await store.append(commit(uplink(1)));
    t.same(await afterStates(9), [], 'uplinks of a lock without a state are left out');
    await store.append({ ...commit(uplink(2)), states });
    t.same(await afterStates(9), [], 'a state includes the uplinks of its own commit');
    await store.append(commit(uplink(3), uplink(4), uplink(5)));
    t.same(await afterStates(9), [3, 4, 5], 'in the order of arrival');
    t.same(await afterStates(2), [4, 5]);
    await store.append({ ...commit(), states });
    t.same(await afterStates(9), []);
    await store.append(commit(uplink(6)));
    await store.changeDevice({ mac: MAC, state: '{"b":1}' });
    t.same(await afterStates(9), [], 'a state that an operator’s change replaces includes all earlier uplinks');
  });

  t.test(`${engine}: a lock's state and findings are stored in the same commit`, async (t) => {
    const { store } = await withLock(t, open);
    t.equal(await store.readDeviceState(1), null);
    const mac = 'A4:C1:38:00:00:01';
    const about = { credential: 1, boot: 1, sequence: 1 };
    const periodFinding: Finding = {
      rule: 'period-too-soon',
      severity: 'violation',
      message: 'm',
      mac,
      about,
      atMs: 7,
    };
    const overdueFinding: Finding = { ...periodFinding, rule: 'period-overdue', severity: 'warning', about: null };
    const states = new Map([[1, '{"a":1}']]);
    const judged = [{ deviceId: 1, withdrawn: [], findings: [periodFinding, overdueFinding] }];
    await store.append({ incoming: [uplink(1)], judged, states });
    t.equal(await store.readDeviceState(1), '{"a":1}');
    t.same(await store.readDeviceStates(), [{ deviceId: 1, mac: MAC, state: '{"a":1}' }]);
    t.same(
      (await store.readFindings(1, 9)).map(({ finding }) => finding),
      [overdueFinding, periodFinding],
    );
    const withdrawn = [{ rule: periodFinding.rule, mac, about }];
    await store.append({ incoming: [], judged: [{ deviceId: 1, withdrawn, findings: [] }], states: new Map() });
    t.same(
      (await store.readFindings(1, 9)).map(({ finding }) => finding),
      [overdueFinding],
    );
  });
}

function logOrderContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: the log of a lock has uplinks and connection events in their order`, async (t) => {
    const { store } = await withLock(t, open);
    const connect = { event: 'connect' } as const;
    const disconnect = { event: 'disconnect', cause: 'closed' } as const;
    const lockEvent = (event: LockEvent): Incoming => ({ type: 'lock-event', deviceId: 1, atMs: 5, event });
    await store.append(commit(lockEvent(connect), uplink(1), uplink(2)));
    await store.append(
      commit(uplink(3), lockEvent(disconnect), lockEvent(connect), uplink(4), uplink(9, { deviceId: 2 })),
    );
    const seen: unknown[] = [];
    for await (const chunk of store.readLog(1, 2)) {
      t.ok(chunk.length <= 2);
      seen.push(...chunk.map((entry) => (entry.type === 'uplink' ? entry.uplink.sequence : entry.event)));
    }
    t.same(seen, [connect, 1, 2, 3, disconnect, connect, 4]);
  });
}

function eventContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: events are the pings of a merchant, in the order of arrival`, async (t) => {
    const { store } = await withLock(t, open);
    await store.append(commit(uplink(3), uplink(1, { kind: 0 }), uplink(2), uplink(4, { merchantId: 2 })));
    t.equal((await store.readEvents(2, LOG_START, 10))[0]?.sequence, 4, 'each merchant gets its own events');
    const events = await store.readEvents(1, LOG_START, 10);
    t.same(
      events.map(({ sequence }) => sequence),
      [3, 2],
      'an acknowledgement is not an event',
    );
    t.same(events[0]?.bytes, testBytes(3));
    t.equal(events[0]?.mac, MAC);
    t.equal(events[0]?.simulated, true);
    t.same(
      (await store.readEvents(1, positionAfter(events[0]?.id ?? 0), 10)).length,
      1,
      'only events after the cursor',
    );
    const otherSlot = new Map([[UNUSED_SLOT, Number.MAX_SAFE_INTEGER]]);
    t.equal((await store.readEvents(1, otherSlot, 10)).length, events.length, 'another slot hides no event');
    t.same(
      (await store.readUplinks(1, 2)).map(({ sequence }) => sequence),
      [3, 2],
      'newest key first, only uplinks for the lock’s current merchant',
    );
  });

  t.test(`${engine}: a failed commit stores nothing`, async (t) => {
    const { store } = await withLock(t, open);
    const broken = { ...uplink(2), boot: Symbol('no number') as unknown as number };
    await t.rejects(store.append(commit(uplink(1), broken)), { name: 'StoreFailure' });
    t.same(await store.readEvents(1, LOG_START, 10), []);
    await store.append(commit(uplink(1)));
    t.equal((await store.readEvents(1, LOG_START, 10)).length, 1, 'the next commit is stored');
  });

  t.test(`${engine}: quarantine retains the newest messages of each lock`, async (t) => {
    const { store } = await withLock(t, open);
    const junkMessage = (deviceId: number, at: number): Incoming => {
      const bytes = Buffer.from(`junk ${at}`);
      return { type: 'quarantine', deviceId, credentialId: 1, receivedAtMs: at, code: 'no-body', message: 'm', bytes };
    };
    const junk = Array.from({ length: MAX_QUARANTINED_PER_LOCK + 3 }, (_, at) => junkMessage(1, at));
    await store.append(commit(junkMessage(2, 0), ...junk));
    const quarantined = await store.readQuarantine(1, MAX_QUARANTINED_PER_LOCK * 2);
    t.equal(quarantined.length, MAX_QUARANTINED_PER_LOCK);
    t.equal(quarantined.at(-1)?.receivedAtMs, 3, 'the oldest are deleted first');
    t.same(quarantined[0]?.bytes, Buffer.from(`junk ${MAX_QUARANTINED_PER_LOCK + 2}`));
  });
}

function deliveryContract(engine: string, open: OpenStore): void {
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
}

function registryContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: merchants, devices and their credentials`, async (t) => {
    const { store } = await withLock(t, open);
    await t.rejects(store.addMerchant('Amber', 1), { code: 'merchant-exists' });
    const device = { mac: MAC, merchant: 'Amber', simulated: false, secretHash: HASH, nowMs: 1 };
    await t.rejects(store.addDevice(device), { code: 'device-exists' });
    await t.rejects(store.addDevice({ ...device, merchant: 'Nobody' }), { code: 'no-such-merchant' });
    t.match(await store.findLock(MAC), { deviceId: 1, merchantId: 1, credentials: [{ id: 1, secretHash: HASH }] });
    t.equal(await store.findLock(testMac(2)), null);
    const newSecretHash = Buffer.alloc(32, 8);
    await store.replaceLockCredential(MAC, newSecretHash, 9);
    const credentials = (await store.findLock(MAC))?.credentials;
    const member = { expiresAtMs: null };
    t.same(
      credentials,
      [
        { id: 2, secretHash: newSecretHash, ...member, isRevoked: false },
        { id: 1, secretHash: HASH, ...member, isRevoked: true },
      ],
      'the old credential is revoked',
    );
    await t.rejects(store.replaceLockCredential(testMac(2), newSecretHash, 9), { code: 'no-such-device' });
    t.match(await store.listDevices(), [{ device: { mac: MAC, merchantName: 'Amber' }, state: null }]);
    t.equal(await store.countDevices(), 1);
    t.equal(await store.findDevice(testMac(2)), null);
  });

  t.test(`${engine}: metadata is stored by name`, async (t) => {
    const { store } = await withLock(t, open);
    t.equal(await store.readMetadata('a'), null);
    await store.writeMetadata('a', '1');
    await store.writeMetadata('a', '2');
    t.equal(await store.readMetadata('a'), '2');
  });
}

const newCommand = (members: Partial<NewCommand> = {}): NewCommand => {
  const [command, times] = [{ type: 'reset' } as const, { createdAtMs: 10, notBeforeMs: null, expiresAtMs: 99 }];
  return { deviceId: 1, merchantId: 1, command, ...times, askedBy: 'ann', ...members };
};
const commandCommit = (...commands: CommandChange[]): Commit => ({
  incoming: [],
  judged: [],
  states: new Map(),
  commands,
});
const doneAnswer = { type: 'acknowledged', deviceId: 1, state: 'done', detail: 'well', atMs: 30 } as const;

function commandContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a command's changes are part of the commit, and only its first answer counts`, async (t) => {
    const { store } = await withLock(t, open);
    const command = { type: 'set-power', mode: 'HIGH', recovery: false } as const;
    const [one, secondEvent] = await store.commands.add([newCommand({ command }), newCommand()]);
    t.match(
      [one, secondEvent],
      [{ id: 1, mac: MAC, command, state: 'queued', sentCount: 0, askedBy: 'ann' }, { id: 2 }],
    );
    await store.append(commandCommit({ ...doneAnswer, id: 2 }));
    t.match(await store.commands.find(2), { state: 'queued' }, 'an unsent command can’t be answered');
    await store.append(commandCommit({ type: 'sent', id: 1, atMs: 20 }, { type: 'sent', id: 1, atMs: 25 }));
    const sent = { sentCount: 2, firstSentAtMs: 20, lastSentAtMs: 25 };
    t.match(await store.commands.find(1), { state: 'sent', ...sent });
    await store.append(commandCommit({ ...doneAnswer, id: 1, deviceId: 2 }));
    t.match(await store.commands.find(1), { state: 'sent' }, 'another lock can’t answer it');
    await store.append(commandCommit({ ...doneAnswer, id: 1 }, { ...doneAnswer, id: 1, state: 'failed', atMs: 31 }));
    await store.append(commandCommit({ type: 'sent', id: 1, atMs: 40 }));
    t.match(await store.commands.find(1), { state: 'done', detail: 'well', finishedAtMs: 30, sentCount: 3 });
    const broken = { ...uplink(2), boot: Symbol('no number') as unknown as number };
    await t.rejects(store.append({ ...commandCommit({ type: 'sent', id: 2, atMs: 50 }), incoming: [broken] }));
    t.match(await store.commands.find(2), { state: 'queued' }, 'a commit that fails changes nothing');
  });

  t.test(`${engine}: commands are listed as unfinished, expire, and are cancelled`, async (t) => {
    const { store, folder } = await withLock(t, open);
    const commands = Array.from({ length: 2500 }, () => newCommand());
    const records = await store.commands.add(commands);
    t.same(
      records.map(({ id }) => id),
      commands.map((_, index) => index + 1),
      'ids grow in the order given',
    );
    await store.append(
      commandCommit({ type: 'sent', id: 2, atMs: 20 }, { type: 'sent', id: 3, atMs: 20 }, { ...doneAnswer, id: 3 }),
    );
    t.equal(await store.commands.cancel(1, 50), true);
    t.equal(await store.commands.cancel(2, 50), false, 'it was sent already');
    const expired = await store.commands.expire(
      commands.map((_, index) => index + 1).filter((id) => id <= 2000),
      60,
    );
    t.equal(expired.length, 1998);
    t.notOk(expired.includes(1) || expired.includes(3), 'a finished command does not expire');
    await store.append(commandCommit({ ...doneAnswer, id: 2, atMs: 70 }));
    t.match(await store.commands.find(2), { state: 'done', finishedAtMs: 70 }, 'an answer after the expiry counts');
    t.same(
      (await store.commands.list({ state: 'done', limit: 9 })).map(({ id }) => id),
      [3, 2],
    );
    t.same(await store.commands.list({ deviceId: 2, limit: 9 }), []);
    await store.close();
    const reopened = await open(folder);
    t.teardown(() => reopened.close());
    t.same(
      (await reopened.commands.readUnfinished()).map(({ id }) => id),
      records.map(({ id }) => id).slice(2000),
    );
    t.match(await reopened.commands.add([newCommand()]), [{ id: 2501 }], 'no id is reused');
    t.equal(await reopened.commands.find(9999), null);
  });
}

function commandTargetContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a moved or removed lock has no waiting command, and gets no new one`, async (t) => {
    const { store } = await withLock(t, open);
    await store.addMerchant('Basil', 1);
    await store.commands.add([newCommand()]);
    await store.changeDevice({ mac: MAC, merchant: 'Basil', cancelledAtMs: 40 });
    t.match(await store.commands.find(1), { state: 'cancelled', finishedAtMs: 40 });
    await t.rejects(
      store.commands.add([newCommand()]),
      { code: 'no-such-device' },
      'the lock belongs to another merchant now',
    );
    await store.commands.add([newCommand({ merchantId: 2 })]);
    await store.removeDevice(MAC, 9, 41);
    t.match(await store.commands.readUnfinished(), []);
    t.match((await store.commands.list({ state: 'cancelled', limit: 9 }))[0], { merchantId: 2, finishedAtMs: 41 });
    await t.rejects(store.commands.add([newCommand({ merchantId: 2 })]), { code: 'no-such-device' });
  });
}

function powerChangeContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: requested power settings of a lock are read newest first`, async (t) => {
    const { store } = await withLock(t, open);
    await store.addDevice({ mac: testMac(2), merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
    const power = (mode: 'MID' | 'HIGH', members: Partial<NewCommand> = {}) => {
      return newCommand({ command: { type: 'set-power', mode }, ...members });
    };
    const scheduled = power('MID', { notBeforeMs: 80 });
    await store.commands.add([scheduled, power('HIGH'), newCommand(), power('MID'), power('HIGH', { deviceId: 2 })]);
    t.same(await store.commands.readPowerChanges(1, 79, 9), [{ mode: 'MID' }, { mode: 'HIGH' }]);
    t.same(await store.commands.readPowerChanges(1, 80, 1), [{ mode: 'MID' }]);
    await store.commands.expire([4], 20);
    t.same(await store.commands.readPowerChanges(1, 79, 9), [{ mode: 'HIGH' }]);
    await store.addMerchant('Basil', 1);
    await store.changeDevice({ mac: MAC, merchant: 'Basil' });
    t.same(await store.commands.readPowerChanges(1, 79, 9), [], 'commands of another merchant don’t count');
  });
}

function identityContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: credentials of a lock and of its phones are separate`, async (t) => {
    const { store } = await withLock(t, open);
    const phone = { mac: MAC, name: 'Ada', secretHash: Buffer.alloc(32, 9), expiresAtMs: 99, nowMs: 7 };
    t.match(await store.addPhone(phone), { credentialId: 2, name: 'Ada', expiresAtMs: 99, revokedAtMs: null });
    await t.rejects(store.addPhone(phone), { code: 'phone-exists' });
    await t.rejects(store.addPhone({ ...phone, mac: testMac(2) }), { code: 'no-such-device' });
    const ids = async (kind?: 'lock' | 'phone') => (await store.findLock(MAC, kind))?.credentials.map(({ id }) => id);
    t.same([await ids(), await ids('lock'), await ids('phone')], [[1], [1], [2]]);
    await store.append(commit(uplink(1), uplink(2, { credentialId: 2 })));
    t.match(await store.readEvents(1, LOG_START, 9), [{ source: 'lock' }, { source: 'phone' }]);
    const sequences = async (source?: 'phone') =>
      (await store.readUplinks(1, 9, source)).map(({ sequence }) => sequence);
    t.same([await sequences(), await sequences('phone')], [[1], [2]]);
    t.same(await store.revokePhone(MAC, 'Ada', 8), { deviceId: 1, credentialIds: [2] });
    await t.rejects(store.revokePhone(MAC, 'Ada', 8), { code: 'no-such-phone' });
    t.match(await store.listPhones(MAC), [{ name: 'Ada', revokedAtMs: 8 }]);
    t.same(await store.replaceLockCredential(MAC, HASH, 10, 50), { deviceId: 1, credentialIds: [1] });
    const credentials = (await store.findLock(MAC))?.credentials.map(({ id, expiresAtMs, isRevoked }) => [
      id,
      expiresAtMs,
      isRevoked,
    ]);
    t.same(credentials, [
      [3, null, false],
      [1, 50, false],
    ]);
  });

  t.test(`${engine}: many locks are added together or not at all`, async (t) => {
    const { store } = await withLock(t, open);
    const newLocks = (numbers: readonly number[]) =>
      numbers.map((number) => ({
        mac: testMac(number),
        merchant: 'Amber',
        simulated: false,
        secretHash: HASH,
        nowMs: 1,
      }));
    const numbers = Array.from({ length: 2500 }, (_, index) => index + 10);
    await t.rejects(store.addDevices(newLocks([...numbers, 1])), { code: 'device-exists' });
    t.equal((await store.listDevices()).length, 1);
    await store.addDevices(newLocks(numbers));
    t.equal((await store.listDevices()).length, 2501);
    t.equal(await store.countDevices(), 2501);
    t.same(await store.findTakenMacs([testMac(5), testMac(10), testMac(2509)]), [testMac(10), testMac(2509)]);
  });
}

function deletionContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a removed lock keeps its history and its id when it is added again`, async (t) => {
    const { store } = await withLock(t, open);
    await store.append({ ...commit(uplink(1)), states: new Map([[1, '{}']]) });
    await store.removeDevice(MAC, 9);
    t.same([await store.findDevice(MAC), await store.findLock(MAC), await store.readDeviceStates()], [null, null, []]);
    t.equal(await store.findDeviceId(MAC), 1);
    t.equal((await store.readEvents(1, LOG_START, 9)).length, 1);
    await t.rejects(store.removeDevice(MAC, 9), { code: 'no-such-device' });
    await store.addDevice({ mac: MAC, merchant: 'Amber', simulated: false, secretHash: HASH, nowMs: 10 });
    t.match(await store.findDevice(MAC), { device: { id: 1, simulated: false }, state: null });
    t.same(
      (await store.findLock(MAC))?.credentials.map(({ id, isRevoked }) => [id, isRevoked]),
      [
        [2, false],
        [1, true],
      ],
    );
  });

  t.test(`${engine}: only the key of an erased uplink is left`, async (t) => {
    const { store } = await withLock(t, open);
    const other = testBytes(1, { kept: 3 });
    await store.append(commit(uplink(1), uplink(1, { bytes: other, digest: uplinkDigest(other) }), uplink(2)));
    t.match(await store.eraseDevice(1, '{"a":1}'), { uplinks: 3 });
    await store.scrub();
    t.same(await store.readDigests(1, 1, 1), [Buffer.alloc(0)]);
    t.same([await store.readEvents(1, LOG_START, 9), await store.readUplinks(1, 9)], [[], []]);
    for await (const chunk of store.readLog(1, 9)) t.same(chunk, []);
    t.equal(await store.readDeviceState(1), '{"a":1}');
    await store.append(commit(uplink(3)));
    t.same(
      (await store.readEvents(1, LOG_START, 9)).map(({ sequence }) => sequence),
      [3],
    );
  });

  t.test(`${engine}: old rows are deleted in chunks`, async (t) => {
    const { store } = await withLock(t, open);
    await store.append(commit(...[1, 2, 3, 4].map((sequence) => uplink(sequence))));
    const oldUplinks = { table: 'uplink', beforeMs: 1004, limit: 2 } as const;
    t.same(await store.deleteOld({ ...oldUplinks, afterId: 0 }), { deleted: 2, held: 0, nextId: 2 });
    t.same(await store.deleteOld({ ...oldUplinks, afterId: 2 }), { deleted: 1, held: 0, nextId: null });
    t.same(
      (await store.readEvents(1, LOG_START, 9)).map(({ sequence }) => sequence),
      [4],
    );
  });
}

function explanationContract(engine: string, open: OpenStore): void {
  t.test(
    `${engine}: explanations find rows by their public names, and read the last part of a lock’s log`,
    async (t) => {
      const { store } = await withLock(t, open);
      const connect: Incoming = { type: 'lock-event', deviceId: 1, atMs: 1000, event: { event: 'connect' } };
      const disconnect: Incoming = { ...connect, atMs: 1005, event: { event: 'disconnect', cause: 'closed' } };
      const other = testBytes(2, { dropped: 9 });
      const conflicting = uplink(2, { bytes: other, digest: uplinkDigest(other), receivedAtMs: 1006 });
      await store.append(commit(connect, uplink(1), uplink(2), uplink(3), uplink(4), disconnect, conflicting));
      const sequencesOf = async (...[boot, sequence]: [number, number]): Promise<number[]> =>
        (await store.why.findUplinks(1, boot, sequence)).map((each) => each.id);
      t.same([await sequencesOf(1, 2), await sequencesOf(1, 9)], [[2, 5], []]);
      const about = { credential: 1, boot: 1, sequence: 2 };
      const mac = 'A4:C1:38:00:00:01';
      const finding: Finding = { rule: 'clock-ahead', severity: 'warning', message: 'm', mac, about, atMs: 7 };
      await store.append({
        incoming: [],
        judged: [{ deviceId: 1, withdrawn: [], findings: [finding] }],
        states: new Map(),
      });
      t.same(await store.why.findFinding(1), { id: 1, finding, deviceId: 1, merchantId: 1, mac: MAC });
      const [newest, ...others] = await store.why.readNewestFindings(10);
      t.same([newest, others], [await store.why.findFinding(1), []]);
      t.same([await store.why.readNewestFindings(10, 1), await store.why.readNewestFindings(10, 2)], [[], [newest]]);
      t.same(await store.why.findFindingsAbout(1, about), [{ id: 1, finding }]);
      t.same(await store.why.findFindingsAbout(1, { ...about, sequence: 3 }), []);
      t.same([await store.why.findFinding(2), await store.why.findQuarantined(1)], [null, null]);
      t.equal(await store.why.findGap(1, 2), false);
      const completeLog = await store.why.findLogStart(1, 5, 1006, 100);
      t.same(completeLog, { afterUplinkId: 0, afterEventId: 0, isCut: false });
      const cut = await store.why.findLogStart(1, 5, 1006, 2);
      t.same(cut, { afterUplinkId: 3, afterEventId: 1, isCut: true }, 'events before the first uplink are left out');
      const read: unknown[] = [];
      for await (const chunk of store.why.readLogFrom(1, cut, 2)) {
        t.ok(chunk.length <= 2);
        read.push(...chunk.map((entry) => (entry.type === 'uplink' ? entry.uplink.sequence : entry.event.event)));
      }
      t.same(read, [4, 'disconnect', 2]);
    },
  );
}

/** Tests that one lock can't fill the disk. With 105,000 entries it is slow, so it runs once for each engine. */
export function floodContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a lock that connects in a loop neither fills the disk nor affects another lock`, async (t) => {
    const { store } = await withLock(t, open);
    await store.addDevice({ mac: testMac(2), merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
    const connect = (deviceId: number, atMs: number): Incoming => {
      return { type: 'lock-event', deviceId, atMs, event: { event: 'connect' } };
    };
    const flood = Array.from({ length: MAX_LOCK_EVENTS_PER_LOCK + 5000 }, (_, at) => connect(1, at));
    await store.append(commit(connect(2, 7), ...flood));
    let [retainedCount, oldestMs] = [0, Number.POSITIVE_INFINITY];
    for await (const chunk of store.readLog(1, 10_000)) {
      for (const entry of chunk) {
        retainedCount += 1;
        if (entry.type === 'lock-event') oldestMs = Math.min(oldestMs, entry.atMs);
      }
    }
    t.ok(
      retainedCount >= MAX_LOCK_EVENTS_PER_LOCK && retainedCount < MAX_LOCK_EVENTS_PER_LOCK + 4000,
      `${retainedCount} are retained`,
    );
    t.equal(oldestMs, MAX_LOCK_EVENTS_PER_LOCK + 5000 - retainedCount, 'the newest events are retained');
    let otherLocksEvents = 0;
    for await (const chunk of store.readLog(2, 10)) otherLocksEvents += chunk.length;
    t.equal(otherLocksEvents, 1);
  });
}
