/**
 * An ingest whose judge, the code that checks a lock’s events against the power model, throws at one lock: only that
 * lock is not judged, commands are still answered, and the gateway can start. After a failed commit, only the states of
 * its locks are read again. unjudged.test.ts tests the same in a complete gateway.
 */
import t from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import { type DeviceEvent, Ingest, type Sender } from '../../../gateway/ingest/ingest.js';
import { CURRENT_JUDGE, type VersionedJudge } from '../../../gateway/ingest/judging.js';
import { parseDeviceState, resetState } from '../../../gateway/locks/device-state.js';
import { Locks } from '../../../gateway/locks/locks.js';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import type { Commit } from '../../../gateway/store/contract/log/commit.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { ChangeSignal } from '../../helpers/clocks/change-signal.js';
import { NO_COMMANDS } from '../../helpers/commands/no-commands.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { BAD_MAC, ERROR_MESSAGE, FailingJudge } from '../../helpers/gateway/failing-judge.js';
import { MERCHANT, testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { lockSender } from '../../helpers/mqtt/lock-sender.js';
import { RIDE_PING, RIDE_POWER } from '../../helpers/sim/ride-ping.js';
import { openStore } from '../../helpers/store/new-store.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const START_MS = Date.UTC(2025, 10, 20, 6);
/** A wait that takes longer fails the test. */
const MAX_WAIT_SECONDS = 20;

t.setTimeout(Minutes(2));

/** An ingest on a store with 20 locks, without a gateway. `wrap` replaces methods of the store. */
async function ingestOn(test: Teardown, judging: VersionedJudge, wrap: (store: Store) => Store = (store) => store) {
  const opened = await openStore(tempFolder(test));
  test.teardown(() => opened.close());
  const store = wrap(opened);
  await opened.addMerchant(MERCHANT, 1);
  const senders: Sender[] = [];
  for (let number = 1; number <= 20; number++) {
    const mac = testMac(number);
    await opened.addDevice({ mac, merchant: MERCHANT, simulated: false, secretHash: Buffer.from(mac), nowMs: 1 });
    senders.push(await lockSender(opened, mac));
  }
  const clock = new ManualClock(START_MS);
  return { opened, store, senders, clock, ...startOn(test, store, clock, judging) };
}

/** The locks and the ingest of a gateway on this store. The stored states are not loaded. */
function startOn(test: Teardown, store: Store, clock: ManualClock, judging: VersionedJudge) {
  const events = new GatewayEvents();
  const locks = new Locks(store, clock, () => undefined, judging);
  test.teardown(() => locks.stop());
  const ingest = new Ingest({ commands: NO_COMMANDS, store, locks, clock, events, onStored: () => undefined });
  const send = (sender: Sender, sequence: number): Promise<string> =>
    new Promise((resolve) => {
      const bytes = testBytes(sequence, { timeMs: START_MS, power: RIDE_POWER, body: RIDE_PING });
      ingest.take(sender, bytes, (error) => resolve(error === undefined ? 'acked' : error.message));
    });
  return { locks, ingest, events, send };
}

/** When the events happen. */
const AT_MS = START_MS + Seconds(1);
/** Events about a lock that are no uplinks. A tick makes the judge notice that time has passed. */
const DEVICE_EVENTS: readonly DeviceEvent[] = [
  { type: 'tick', atMs: AT_MS },
  { type: 'connect', source: 'lock', atMs: AT_MS },
  { type: 'disconnect', source: 'lock', cause: 'dropped', atMs: AT_MS },
  { type: 'command', id: 1, command: { type: 'locate-gps' }, atMs: AT_MS } as DeviceEvent,
  { type: 'gateway', state: 'start', atMs: AT_MS },
];

for (const event of DEVICE_EVENTS)
  t.test(`when the judge fails at a ${event.type}, only that lock is not judged`, async (t) => {
    const judging = new FailingJudge(({ type }) => type === event.type);
    const { ingest, locks, senders, send, opened } = await ingestOn(t, judging);
    const [bad, good] = senders as [Sender, Sender];
    t.equal(await send(bad, 1), 'acked');
    for (const { deviceId, mac } of [bad, good]) ingest.recordEvent(deviceId, mac, event);
    t.equal(await send(good, 1), 'acked');
    t.equal(await send(bad, 2), 'acked');
    await ingest.idle();
    t.same(
      [...locks.unjudged()].map(({ lock }) => lock.mac),
      [BAD_MAC],
    );
    t.equal(locks.find(bad.deviceId)?.dueMs, Number.POSITIVE_INFINITY, 'the lock gets no more ticks');
    const state = JSON.parse((await opened.readDeviceState(bad.deviceId)) ?? '');
    t.match(
      state,
      { unjudged: { why: ERROR_MESSAGE }, ping: { sequence: 1 }, belief: { uplinks: 1 } },
      'the state before the failure',
    );
  });

t.test('an acknowledgement of a command is stored with the command’s state even if the judge fails', async (t) => {
  const judging = new FailingJudge((event) => event.type === 'uplink' && event.uplink.body.kind === 'ack');
  const changes: unknown[] = [];
  const { ingest, senders, send, locks } = await ingestOn(t, judging, (store) =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        changes.push(...(commit.commands ?? []));
        return await store.append({ ...commit, commands: [] });
      },
    }),
  );
  const [bad, good] = senders as [Sender, Sender];
  const body = { kind: 'ack', commandId: 7, result: 'ok', detail: '', highWindow: null } as const;
  await new Promise<void>((resolve, reject) => {
    ingest.take(bad, testBytes(1, { body }), (error) => (error === undefined ? resolve() : reject(error)));
  });
  t.equal(await send(good, 1), 'acked');
  t.match(changes, [{ type: 'acknowledged', id: 7, state: 'done' }]);
  t.equal([...locks.unjudged()].length, 1, 'the lock of the answer is unjudged');
});

t.test('a gateway starts even if the judge fails at a lock’s log', async (t) => {
  let commits = 0;
  const { ingest, senders, clock, opened, send } = await ingestOn(t, CURRENT_JUDGE, (store) =>
    withOverrides(store, {
      // The stored states are those after the first pings; only the log has the later pings.
      append: async (commit: Commit) => {
        commits += 1;
        return await store.append(commits > 2 ? { ...commit, states: new Map() } : commit);
      },
    }),
  );
  const [bad, good] = senders as [Sender, Sender];
  for (let sequence = 1; sequence <= 5; sequence++) for (const sender of [bad, good]) await send(sender, sequence);
  await ingest.idle();
  const judging = new FailingJudge((event) => event.type === 'uplink' && event.uplink.sequence === 4);
  const locks = new Locks(opened, clock, () => undefined, judging);
  await locks.load();
  locks.stop();
  const [badLock, goodLock] = [locks.find(bad.deviceId)?.state, locks.find(good.deviceId)?.state];
  t.match(
    badLock,
    { ping: { sequence: 3 }, belief: { uplinks: 3 }, unjudged: { why: ERROR_MESSAGE } },
    'judged up to where it fails',
  );
  t.match(goodLock, { ping: { sequence: 5 }, belief: { uplinks: 5 } });
  t.equal(goodLock?.unjudged, undefined);
});

/**
 * The states of a lock after 59 and after 109 uplinks, and its findings. Number 2 is missing, and becomes a finding
 * with the 100th uplink after the hole.
 *
 * @param isStopped whether the judge fails at the third uplink, and the gateway is killed after the 59th and followed
 *   by one of another version; otherwise one gateway judges all uplinks
 */
async function historyWithGap(test: Teardown, isStopped: boolean) {
  const judging = new FailingJudge((event) => isStopped && event.type === 'uplink' && event.uplink.sequence === 4);
  const { opened, senders, clock, ...first } = await ingestOn(test, judging);
  const [bad] = senders as [Sender];
  const sendAll = async (
    { ingest, send }: Pick<typeof first, 'ingest' | 'send'>,
    from: number,
    to: number,
  ): Promise<void> => {
    clock.advance(Seconds(1));
    const answers = Array.from({ length: to - from + 1 }, (_, index) => send(bad, from + index));
    await Promise.all(answers);
    await ingest.idle();
  };
  first.ingest.recordEvent(bad.deviceId, bad.mac, { type: 'connect', source: 'lock', atMs: START_MS });
  await sendAll(first, 1, 1);
  await sendAll(first, 3, 4);
  // After a stop, the state is stored by now, and these come after it.
  await sendAll(first, 5, 60);
  const stored = parseDeviceState((await opened.readDeviceState(bad.deviceId)) ?? '');
  const second = isStopped ? startOn(test, opened, clock, { ...CURRENT_JUDGE, version: '1.0.1' }) : first;
  if (isStopped) await second.locks.load();
  const early = structuredClone(second.locks.find(bad.deviceId)?.state);
  await sendAll(second, 61, 110);
  const findings = (await opened.readFindings(bad.deviceId, 100)).map(({ finding }) => finding);
  return { unjudged: stored.unjudged, early, late: second.locks.find(bad.deviceId)?.state, findings };
}

t.test('another version judges each uplink of a lock that was not judged once', async (t) => {
  const stopped = await historyWithGap(t, true);
  const judged = await historyWithGap(t, false);
  t.match(stopped.unjudged, { why: ERROR_MESSAGE, version: '1.0.0' }, 'the lock was not judged');
  t.equal(judged.unjudged, undefined, 'the lock to compare with was');
  t.same(stopped.early, judged.early, 'the same state after the start');
  t.same(stopped.late, judged.late, 'and later');
  t.match(judged.findings, [{ rule: 'sequence-gap', about: { sequence: 102 } }], 'there is a finding to compare');
  t.same(stopped.findings, judged.findings);
});

t.test('after a failed commit, only the states of its locks are read again', async (t) => {
  let fails = false;
  /** The device ids of each read of states. */
  const reads: (readonly number[])[] = [];
  const { clock, senders, send } = await ingestOn(t, CURRENT_JUDGE, (store) =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        if (fails) throw new StoreFailure('append', new Error('no room'));
        return await store.append(commit);
      },
      readDeviceStates: async (deviceIds?: readonly number[]) => {
        const states = await store.readDeviceStates(deviceIds);
        reads.push(states.map(({ deviceId }) => deviceId));
        return states;
      },
    }),
  );
  for (const sender of senders) t.equal(await send(sender, 1), 'acked');
  fails = true;
  const [first] = senders as [Sender];
  t.match(await send(first, 2), /no room/);
  fails = false;
  clock.advance(Seconds(1));
  const answer = send(first, 2);
  t.equal(await answer, 'acked');
  t.same(reads, [[first.deviceId]]);
});

t.test('locks whose states can’t be read wait to be judged, and their uplinks are acknowledged', async (t) => {
  let [failsToWrite, failsToRead] = [false, false];
  const setup = await ingestOn(t, CURRENT_JUDGE, (store) =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        if (failsToWrite) throw new StoreFailure('append', new Error('no room'));
        return await store.append(commit);
      },
      readDeviceStates: async (deviceIds?: readonly number[]) => {
        if (failsToRead) throw new StoreFailure('read the devices', new Error('a bad sector'));
        return await store.readDeviceStates(deviceIds);
      },
    }),
  );
  const { clock, senders, send, locks, events, ingest } = setup;
  const [bad, good] = senders as [Sender, Sender];
  const judgingChanges: string[] = [];
  const changeSignal = new ChangeSignal();
  events.on('judging', ({ mac, state, why }) => {
    judgingChanges.push(`${mac} ${state} ${why}`);
    changeSignal.notify();
  });
  for (const sender of [bad, good]) t.equal(await send(sender, 1), 'acked');
  [failsToWrite, failsToRead] = [true, true];
  t.match(await send(bad, 2), /no room/);
  failsToWrite = false;
  clock.advance(Seconds(1));
  t.equal(await send(good, 2), 'acked');
  t.equal(await send(bad, 2), 'acked', 'the uplink is stored, and is not judged with a state that was never stored');
  t.equal(await send(bad, 3), 'acked');
  t.equal(await send(good, 3), 'acked');
  t.match(judgingChanges, [/^A4C138000001 stopped its stored state could not be read: .*a bad sector/]);
  failsToRead = false;
  await changeSignal.waitUntil(
    () => judgingChanges.length === 2,
    MAX_WAIT_SECONDS,
    () => judgingChanges.join(),
  );
  t.equal(judgingChanges[1], `${BAD_MAC} resumed `);
  t.equal(await send(bad, 4), 'acked');
  await ingest.idle();
  t.match(locks.find(bad.deviceId)?.state, { ping: { sequence: 4 }, belief: { uplinks: 4 } }, 'nothing is missing');
  t.match(locks.find(good.deviceId)?.state, { ping: { sequence: 3 }, belief: { uplinks: 3 } });
  t.same([...locks.unjudged()], []);
});

t.test('a state that could not be read, and was replaced, is read again after the next failed commit', async (t) => {
  let failsToRead = false;
  const { locks, senders, send, clock } = await ingestOn(t, CURRENT_JUDGE, (store) =>
    withOverrides(store, {
      readDeviceStates: async (deviceIds?: readonly number[]) => {
        if (failsToRead) throw new StoreFailure('read the devices', new Error('a bad sector'));
        return await store.readDeviceStates(deviceIds);
      },
    }),
  );
  const [sender] = senders as [Sender];
  t.equal(await send(sender, 1), 'acked');
  const lock = locks.find(sender.deviceId);
  if (lock === undefined) throw new Error('the lock has no state');
  failsToRead = true;
  await t.rejects(locks.reload(new Set([lock])), /a bad sector/);
  failsToRead = false;
  const replacement = resetState(lock.state, sender.mac, clock.now());
  locks.replace(sender.deviceId, replacement);
  t.equal(lock.state, replacement);
  await locks.reload(new Set([lock]));
  t.match(lock.state.belief, { uplinks: 1 }, 'the stored state replaces the one in memory');
});
