// The part of the store contract (how every database engine must behave) about the log: uplinks, states, events,
// quarantine, and what `why` finds in it. store-contract.ts calls it. What the judge says of a lock is stored with a
// commit: its findings (objections), and which earlier ones are withdrawn because later uplinks explain them.
import t from 'tap';
import { type Incoming, MAX_QUARANTINED_PER_LOCK } from '../../../../gateway/store/contract/log/commit.js';
import type { LockEvent } from '../../../../gateway/store/contract/log/log-entry.js';
import { LOG_START, positionAfter } from '../../../../gateway/store/contract/log/log-position.js';
import { uplinkDigest } from '../../../../gateway/webhooks/event-id.js';
import type { Finding } from '../../../../proto/power/judge/event.js';
import { testBytes } from '../../../helpers/gateway/test-gateway.js';
import { commit, MAC, type OpenStore, uplink, withLock } from './contract-store.js';

/** The number of a gateway (slot) of which the log has no entry: the engines that are tested here have one gateway. */
const UNUSED_SLOT = 61;

export function logContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: an uplink is stored once by its key and content`, async (t) => {
    const { store, folder } = await withLock(t, open);
    await store.append(commit(uplink(1), uplink(2), uplink(1)));
    const other = testBytes(2, { dropped: 9 });
    await store.append(commit(uplink(2), uplink(2, { bytes: other, digest: uplinkDigest(other) })));
    await store.append(commit(uplink(1, { credentialId: 2 }), uplink(1, { boot: 2 })));
    const digests = await store.readDigests(1, 1, 2);
    t.same(digests.sort(Buffer.compare), [uplinkDigest(testBytes(2)), uplinkDigest(other)].sort(Buffer.compare));
    t.same(await store.readDigests(1, 9, 2), []);
    // The uplink with sequence 1 was received at 1001 ms, and is the last one.
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

export function judgingContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: uplinks after a lock's stored state are found among the newest uplinks`, async (t) => {
    const { store } = await withLock(t, open);
    /** The sequences of the uplinks, of the newest `limit`, that the lock's stored state lacks. */
    const afterStates = async (limit: number): Promise<number[]> => {
      const sequences: number[] = [];
      for await (const chunk of store.readUplinksAfterStates(limit, 2))
        sequences.push(...chunk.map(({ sequence }) => sequence));
      return sequences;
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

export function logOrderContract(engine: string, open: OpenStore): void {
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

export function eventContract(engine: string, open: OpenStore): void {
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
    const fromStart = await store.readEvents(1, otherSlot, 10);
    t.equal(fromStart.length, events.length, 'a position in another slot leaves out no event');
    t.same(
      (await store.readUplinks(1, 2)).map(({ sequence }) => sequence),
      [3, 2],
      'newest key first, only uplinks for the lock’s current merchant',
    );
  });

  t.test(`${engine}: a failed commit stores nothing`, async (t) => {
    const { store } = await withLock(t, open);
    // A value that no engine can store.
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

export function whyContract(engine: string, open: OpenStore): void {
  t.test(
    `${engine}: explanations find rows by their public names, and read the last part of a lock’s log`,
    async (t) => {
      const { store } = await withLock(t, open);
      const connect: Incoming = { type: 'lock-event', deviceId: 1, atMs: 1000, event: { event: 'connect' } };
      const disconnect: Incoming = { ...connect, atMs: 1005, event: { event: 'disconnect', cause: 'closed' } };
      const other = testBytes(2, { dropped: 9 });
      const conflicting = uplink(2, { bytes: other, digest: uplinkDigest(other), receivedAtMs: 1006 });
      await store.append(commit(connect, uplink(1), uplink(2), uplink(3), uplink(4), disconnect, conflicting));
      const idsOf = async (boot: number, sequence: number): Promise<number[]> =>
        (await store.why.findUplinks(1, boot, sequence)).map(({ id }) => id);
      const [, second = 0, third = 0, , last = 0] = (await store.readEvents(1, LOG_START, 9)).map(({ id }) => id);
      t.same([await idsOf(1, 2), await idsOf(1, 9)], [[second, last], []]);
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
      // The last argument: only findings with a lower id.
      t.same([await store.why.readNewestFindings(10, 1), await store.why.readNewestFindings(10, 2)], [[], [newest]]);
      const ofMerchant = { id: 1, finding, isLockTheirs: true };
      t.same(await store.why.readFindingsOfMerchant(1, 10), [ofMerchant]);
      t.same(await store.why.readFindingsOfMerchant(1, 10, 2), [ofMerchant]);
      t.same(
        [await store.why.readFindingsOfMerchant(1, 10, 1), await store.why.readFindingsOfMerchant(2, 10)],
        [[], []],
      );
      t.same(await store.why.findFindingsAbout(1, about), [{ id: 1, finding }]);
      t.same(await store.why.findFindingsAbout(1, { ...about, sequence: 3 }), []);
      t.same([await store.why.findFinding(2), await store.why.findQuarantined(1)], [null, null]);
      t.equal(await store.why.isInGap(1, second), false, 'there is no URL, and so no gap in what it got');
      // Where to begin with lock 1's log up to the uplink `last` and 1006 ms, to read at most 100, or 2, of each kind.
      const completeLog = await store.why.findLogStart(1, last, 1006, 100);
      t.same(completeLog, { afterUplinkId: 0, afterEventId: 0, isCut: false });
      const cut = await store.why.findLogStart(1, last, 1006, 2);
      t.same(
        cut,
        { afterUplinkId: third, afterEventId: 1, isCut: true },
        'events before the first uplink are left out',
      );
      const read: unknown[] = [];
      for await (const chunk of store.why.readLogFrom(1, cut, 2)) {
        t.ok(chunk.length <= 2);
        read.push(...chunk.map((entry) => (entry.type === 'uplink' ? entry.uplink.sequence : entry.event.event)));
      }
      t.same(read, [4, 'disconnect', 2]);
      let examined = 0;
      for await (const part of store.why.readStateChangesFrom(1, cut)) examined += part.examined;
      t.equal(examined, 3, 'what is left out is counted');
    },
  );
}
