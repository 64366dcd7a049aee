/**
 * Commands that this gateway, one of several, finds in the store while it is still storing them itself: it takes over
 * their lock, or looks for new commands of other gateways. Each is reported as queued once.
 */
import t from 'tap';
import type { Store } from '../../../gateway/store/contract/store.js';
import { CommandSetup } from '../../helpers/commands/command-setup.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { ScriptedOwnership } from '../../helpers/store/scripted-ownership.js';
import type { Teardown } from '../../helpers/store/temp-folder.js';

/** The id of the first command in a new store. */
const FIRST_ID = 1;
/** A lock that does not exist. */
const OTHER_LOCK = 99;

/**
 * A gateway that serves no lock yet, with a command that is on disk, but whose storing ends only when `pass` is called.
 * `serve`: the gateway takes over the command's lock, with the commands that are stored.
 */
async function setUp(test: Teardown) {
  const others = new ScriptedOwnership();
  let pass: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => {
    pass = resolve;
  });
  const wrap = (store: Store): Store => {
    const commands = withOverrides(store.commands, {
      add: async (added) => {
        const records = await store.commands.add(added);
        await passed;
        return records;
      },
    });
    return withOverrides(others.wrap(store), { commands });
  };
  const setup = await CommandSetup.open(test, undefined, wrap);
  const lock = await setup.lock();
  const { deviceId } = lock.sender;
  const serve = async (): Promise<void> => {
    others.owned.add(`${deviceId}/lock`);
    setup.locks.adopt([deviceId], await setup.locks.readStored([deviceId]));
    setup.commands.adopt(await setup.commands.readStored([deviceId]));
  };
  const begin = async () => {
    const storing = setup.command(lock, 'locate-gps');
    await setup.settle();
    return { storing };
  };
  return { setup, lock, serve, begin, pass };
}

t.test('a command whose lock is taken over while it is stored is reported as queued once, and sent', async (t) => {
  const { setup, lock, serve, begin, pass } = await setUp(t);
  const { storing } = await begin();
  await serve();
  pass();
  t.match(await storing, { id: FIRST_ID, state: 'queued' });
  await setup.connectAndPing(lock);
  t.same(setup.takeSent(), [FIRST_ID]);
  t.same(setup.takeReported(), [`${FIRST_ID} queued`, `${FIRST_ID} sent`]);
});

t.test('a command that is found among new ones while it is stored is reported as queued once', async (t) => {
  const { setup, serve, begin, pass } = await setUp(t);
  await serve();
  const { storing } = await begin();
  await setup.commands.takeNew({ sinceMs: 0 });
  pass();
  await storing;
  await setup.settle();
  t.same(setup.takeReported(), [`${FIRST_ID} queued`]);
});

t.test('a command that is answered while it is stored is not sent again', async (t) => {
  const { setup, lock, serve, begin, pass } = await setUp(t);
  const { storing } = await begin();
  await serve();
  await setup.connectAndPing(lock);
  await setup.ack(lock, FIRST_ID);
  t.same(setup.takeSent(), [FIRST_ID]);
  pass();
  await storing;
  await setup.loseConnection(lock);
  await setup.connectAndPing(lock);
  t.same(setup.takeSent(), []);
  t.same(setup.takeReported().sort(), [`${FIRST_ID} done`, `${FIRST_ID} queued`, `${FIRST_ID} sent`]);
});

t.test('a command that is sent while it is stored, and read again after another lock’s removal', async (t) => {
  const { setup, lock, serve, begin, pass } = await setUp(t);
  const { storing } = await begin();
  await serve();
  await setup.connectAndPing(lock);
  setup.commands.cancelled(OTHER_LOCK, setup.clock.now());
  pass();
  await storing;
  await setup.settle();
  t.same(setup.takeSent(), [FIRST_ID]);
  t.same(setup.takeReported().sort(), [`${FIRST_ID} queued`, `${FIRST_ID} sent`]);
});
