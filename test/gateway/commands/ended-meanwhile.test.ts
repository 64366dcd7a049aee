/**
 * Commands that end while this gateway, one of several, reads them from the store: it has read them as unfinished, but
 * by the time it takes them into its queues they are cancelled or answered. Each end is reported once. And commands
 * that can't be cancelled, whose lock has changed its gateway meanwhile.
 */
import t from 'tap';
import type { Store } from '../../../gateway/store/contract/store.js';
import { CommandSetup, type PlayedLock } from '../../helpers/commands/command-setup.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { ScriptedOwnership } from '../../helpers/store/scripted-ownership.js';
import type { Teardown } from '../../helpers/store/temp-folder.js';

/**
 * A gateway that serves no lock yet. After `hold`, what it reads of commands comes only when `pass` is called. What is
 * set as `then.cancelling` runs before a cancellation is stored, and may fail; `then.cancelled` runs when it is stored,
 * before the gateway knows of it.
 */
async function setUp(test: Teardown) {
  const others = new ScriptedOwnership();
  let held: Promise<void> | undefined;
  let pass: () => void = () => undefined;
  const then = { cancelling: async (): Promise<void> => undefined, cancelled: async (): Promise<void> => undefined };
  const wrap = (store: Store): Store => {
    const commands = withOverrides(store.commands, {
      readUnfinished: async (...which) => {
        const records = await store.commands.readUnfinished(...which);
        await held;
        return records;
      },
      cancel: async (id, atMs) => {
        await then.cancelling();
        const isCancelled = await store.commands.cancel(id, atMs);
        await then.cancelled();
        return isCancelled;
      },
    });
    return withOverrides(others.wrap(store), { commands });
  };
  const setup = await CommandSetup.open(test, undefined, wrap);
  const hold = (): void => {
    held = new Promise((resolve) => {
      pass = resolve;
    });
  };
  return { setup, others, lock: await setup.lock(), hold, pass: () => pass(), then };
}

/** The gateway serves the lock from now on, with the commands that it reads. */
async function serve({ locks, commands }: CommandSetup, others: ScriptedOwnership, lock: PlayedLock): Promise<void> {
  const { deviceId } = lock.sender;
  others.owned.add(`${deviceId}/lock`);
  locks.adopt([deviceId], await locks.readStored([deviceId]));
  commands.adopt(await commands.readStored([deviceId]));
}

t.test('a command that is cancelled while its lock’s commands are read ends once, and is not sent', async (t) => {
  const { setup, others, lock, hold, pass } = await setUp(t);
  const { id } = await setup.command(lock, 'locate-gps');
  hold();
  const serving = serve(setup, others, lock);
  await setup.settle();
  await setup.commands.cancel(id);
  pass();
  await serving;
  await setup.connectAndPing(lock);
  t.same(setup.takeSent(), []);
  t.same(setup.takeReported(), [`${id} queued`, `${id} cancelled`]);
});

t.test('a command that the store refuses to send before the gateway knows that it is cancelled', async (t) => {
  const { setup, others, lock, hold, pass, then } = await setUp(t);
  const { id } = await setup.command(lock, 'locate-gps');
  hold();
  const serving = serve(setup, others, lock);
  await setup.settle();
  then.cancelled = async () => {
    pass();
    await serving;
    await setup.connectAndPing(lock);
  };
  await setup.commands.cancel(id);
  t.same(setup.takeSent(), []);
  t.same(setup.takeReported(), [`${id} queued`, `${id} cancelled`]);
});

t.test('a command that is answered or cancelled while new commands are looked for ends once', async (t) => {
  const { setup, others, lock, hold, pass } = await setUp(t);
  await serve(setup, others, lock);
  const { id: answered } = await setup.command(lock, 'locate-cell');
  await setup.connectAndPing(lock);
  const waiting = await setup.command(lock, 'locate-gps');
  t.same(setup.takeSent(), [answered], 'the lock gets one at a time');
  hold();
  const looking = setup.commands.takeNew({ sinceMs: 0 });
  await setup.settle();
  await setup.commands.cancel(waiting.id);
  await setup.ack(lock, answered);
  pass();
  await looking;
  await setup.settle();
  await setup.loseConnection(lock);
  await setup.connectAndPing(lock);
  t.same(setup.takeSent(), []);
  t.same(setup.takeReported(), [
    `${answered} queued`,
    `${answered} sent`,
    `${waiting.id} queued`,
    `${waiting.id} cancelled`,
    `${answered} done`,
  ]);
});

t.test('a command whose cancellation fails is left to the gateway that serves its lock by then', async (t) => {
  const { setup, others, lock, then } = await setUp(t);
  await serve(setup, others, lock);
  const { deviceId } = lock.sender;
  const { id, expiresAtMs } = await setup.command(lock, 'locate-gps');
  then.cancelling = async () => {
    others.owned.delete(`${deviceId}/lock`);
    setup.commands.disown(deviceId);
    throw new Error('the connection is lost');
  };
  await t.rejects(setup.commands.cancel(id));
  await setup.advance(expiresAtMs - setup.clock.now() + 1);
  t.same(setup.takeReported(), [`${id} queued`], 'that one lets it expire');
});
