/**
 * A list of users is added whole or not at all, also where the gateway is killed in the middle of it: while passwords
 * are hashed, while it is written, or just before the answer (interfaces.md §2). A list that was answered is there.
 */
import t, { type Test } from 'tap';
import { monotonicMs, systemClock } from '../../proto/clock.js';
import { call } from '../helpers/merchant-call.js';
import { chooseSeed, SeededChance } from '../helpers/seeded-chance.js';
import { ServeProgram } from '../helpers/serve-program.js';
import { tempFolder } from '../helpers/temp-folder.js';

const seed = chooseSeed();
const KILLS = Number(process.env.LOCKGATE_KILLS ?? 40);
/** Users of a list, and how many of them have a password. */
const USERS = 1000;
const PASSWORDS = 10;

t.setTimeout(3_600_000);
t.comment(`seed ${seed}; repeat: LOCKGATE_SEED=${seed} npx tap dist/test/long/http-lists.test.js`);

interface Life {
  readonly serve: ServeProgram;
  readonly httpPort: number;
}

async function begin(test: Test, data: string): Promise<Life> {
  const serve = await ServeProgram.start(test, data);
  const line = await serve.program.line(/merchants +http:/);
  return { serve, httpPort: Number(/:(\d+)$/.exec(line)?.[1]) };
}

/** Whether the list was answered before the connection ended. */
async function addList({ httpPort }: Life, key: string, round: number): Promise<boolean> {
  const body = Array.from({ length: USERS }, (_, index) => ({
    username: `r${round}u${index}`,
    ...(index < PASSWORDS && { password: 'x' }),
  }));
  try {
    return (await call({ httpPort }, '/v2/user/createWithList', { key, body })).status === 200;
  } catch {
    return false;
  }
}

/** How many users of each round there are. */
async function countRounds({ serve }: Life): Promise<Map<number, number>> {
  const { users } = await serve.json<{ users: readonly { readonly username: string }[] }>('user', 'list');
  const counts = new Map<number, number>();
  for (const { username } of users) {
    const round = Number(/^r(\d+)u/.exec(username)?.[1]);
    counts.set(round, (counts.get(round) ?? 0) + 1);
  }
  return counts;
}

t.test('kill -9 in the middle of a list leaves all of it or nothing', async (t) => {
  const chance = new SeededChance(seed);
  const data = tempFolder(t);
  let life = await begin(t, data);
  await life.serve.json('merchant', 'add', 'Amber');
  const { key } = await life.serve.json<{ key: string }>('key', 'create', 'test');
  const before = monotonicMs();
  t.ok(await addList(life, key, 0));
  const took = monotonicMs() - before;
  const answered = new Set([0]);
  for (let round = 1; round <= KILLS; round += 1) {
    const adding = addList(life, key, round);
    const { serve } = life;
    systemClock.after(chance.next() * took * 1.2, () => serve.program.kill('SIGKILL'));
    if (await adding) answered.add(round);
    await serve.program.end();
    life = await begin(t, data);
  }
  const counts = await countRounds(life);
  for (const [round, count] of counts) t.equal(count, USERS, `round ${round} is whole`);
  for (const round of answered) t.ok(counts.has(round), `round ${round} was answered and is there`);
  t.comment(`${counts.size} lists are there, ${answered.size} were answered, ${KILLS} kills`);
  t.ok(answered.size < KILLS, 'some were cut off');
});
