// The part of the store contract about commands. The lock has the id 1, and its merchant too.
import t from 'tap';
import type { CommandChange, NewCommand } from '../../../../gateway/store/contract/command-record.js';
import type { Commit } from '../../../../gateway/store/contract/log/commit.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { HASH, MAC, type OpenStore, uplink, withLock } from './contract-store.js';

/** A command for the lock, with some other members. Times are small numbers: only their order matters. */
const newCommand = (members: Partial<NewCommand> = {}): NewCommand => {
  const [command, times] = [{ type: 'reset' } as const, { createdAtMs: 10, notBeforeMs: null, expiresAtMs: 99 }];
  return { deviceId: 1, merchantId: 1, command, ...times, askedBy: 'ann', ...members };
};
/** A commit that only changes commands. */
const commandCommit = (...commands: CommandChange[]): Commit => ({
  incoming: [],
  judged: [],
  states: new Map(),
  commands,
});
/** The lock's answer that a command is done; an `id` must be added. */
const doneAnswer = { type: 'acknowledged', deviceId: 1, state: 'done', detail: 'well', atMs: 30 } as const;

export function commandContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a command's changes are part of the commit, and only its first answer counts`, async (t) => {
    const { store } = await withLock(t, open);
    const command = { type: 'set-power', mode: 'HIGH', recovery: false } as const;
    const [first, second] = await store.commands.add([newCommand({ command }), newCommand()]);
    t.match([first, second], [{ id: 1, mac: MAC, command, state: 'queued', sentCount: 0, askedBy: 'ann' }, { id: 2 }]);
    await store.append(commandCommit({ ...doneAnswer, id: 2 }));
    t.match(await store.commands.find(2), { state: 'queued' }, 'an unsent command can’t be answered');
    await store.append(commandCommit({ type: 'sent', id: 1, atMs: 20 }, { type: 'sent', id: 1, atMs: 25 }));
    const sent = { sentCount: 2, firstSentAtMs: 20, lastSentAtMs: 25 };
    t.match(await store.commands.find(1), { state: 'sent', ...sent });
    await store.append(commandCommit({ ...doneAnswer, id: 1, deviceId: 2 }));
    t.match(await store.commands.find(1), { state: 'sent' }, 'another lock can’t answer it');
    await store.append(commandCommit({ ...doneAnswer, id: 1 }, { ...doneAnswer, id: 1, state: 'failed', atMs: 31 }));
    await store.append(commandCommit({ type: 'sent', id: 1, atMs: 40 }));
    t.match(await store.commands.find(1), { state: 'done', detail: 'well', finishedAtMs: 30, sentCount: 2 });
    // A value that no engine can store.
    const broken = { ...uplink(2), boot: Symbol('no number') as unknown as number };
    await t.rejects(store.append({ ...commandCommit({ type: 'sent', id: 2, atMs: 50 }), incoming: [broken] }));
    t.match(await store.commands.find(2), { state: 'queued' }, 'a commit that fails changes nothing');
  });

  t.test(`${engine}: only unfinished commands expire, and only queued ones are cancelled`, async (t) => {
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
    t.equal(expired.length, 1998, 'all but the cancelled and the finished one');
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

export function commandTargetContract(engine: string, open: OpenStore): void {
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
    // Removed at 9 ms; its commands are cancelled at 41 ms.
    await store.removeDevice(MAC, 9, 41);
    t.match(await store.commands.readUnfinished(), []);
    t.match((await store.commands.list({ state: 'cancelled', limit: 9 }))[0], { merchantId: 2, finishedAtMs: 41 });
    await t.rejects(store.commands.add([newCommand({ merchantId: 2 })]), { code: 'no-such-device' });
  });
}

export function powerChangeContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: requested power settings of a lock are read newest first`, async (t) => {
    const { store } = await withLock(t, open);
    await store.addDevice({ mac: testMac(2), merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
    const power = (mode: 'MID' | 'HIGH', members: Partial<NewCommand> = {}) => {
      return newCommand({ command: { type: 'set-power', mode }, ...members });
    };
    const scheduled = power('MID', { notBeforeMs: 80 });
    await store.commands.add([scheduled, power('HIGH'), newCommand(), power('MID'), power('HIGH', { deviceId: 2 })]);
    // Of lock 1, at a time (ms) before or after that of the scheduled command, and at most so many.
    t.same(await store.commands.readPowerChanges(1, 79, 9), [{ mode: 'MID' }, { mode: 'HIGH' }]);
    t.same(await store.commands.readPowerChanges(1, 80, 1), [{ mode: 'MID' }]);
    await store.commands.expire([4], 20);
    t.same(await store.commands.readPowerChanges(1, 79, 9), [{ mode: 'HIGH' }]);
    await store.addMerchant('Basil', 1);
    await store.changeDevice({ mac: MAC, merchant: 'Basil' });
    t.same(await store.commands.readPowerChanges(1, 79, 9), [], 'commands of another merchant don’t count');
  });
}
