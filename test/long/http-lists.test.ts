/**
 * A list of users is added whole or not at all, also where the gateway is killed in the middle of it: while passwords
 * are hashed, while it is written, or just before the answer (interfaces.md §2). A list that was answered is there.
 */
import t, { type Test } from 'tap';
import { monotonicMs, systemClock } from '../../proto/clock.js';
import { ServeProgram } from '../helpers/cli/serve-program.js';
import { call } from '../helpers/http/merchant-call.js';
import { chooseSeed, SeededChance } from '../helpers/pair/seeded-chance.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const seed = chooseSeed();
const KILLS = Number(process.env.LOCKGATE_KILLS ?? 40);
/** Users of a list, and how many of them have a password in every other round: what takes the time is then hashing. */
const USERS = 1000;
const PASSWORDS = 10;

/** In the other rounds what takes the time is writing, so that a kill comes in the middle of that. */
const passwordsOf = (round: number): number => (round % 2 === 0 ? PASSWORDS : 0);

t.setTimeout(3_600_000);
t.comment(`seed ${seed}; repeat: LOCKGATE_SEED=${seed} npm test -- dist/test/long/http-lists.test.js`);

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
    ...(index < passwordsOf(round) && { password: 'x' }),
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
  const answered = new Set<number>();
  const took: number[] = [];
  for (let round = 0; round < 2; round += 1) {
    const before = monotonicMs();
    t.ok(await addList(life, key, round));
    answered.add(round);
    took.push(monotonicMs() - before);
  }
  for (let round = 2; round < 2 + KILLS; round += 1) {
    const adding = addList(life, key, round);
    const { serve } = life;
    const about = took[round % 2] ?? 0;
    systemClock.after(about * (0.6 + 0.6 * chance.next()), () => serve.program.kill('SIGKILL'));
    const isAnswered = await adding;
    if (isAnswered) answered.add(round);
    // The writing is at the end: so kills stay about there, however fast the machine is at the moment.
    took[round % 2] = about * (isAnswered ? 0.8 : 1.2);
    await serve.program.end();
    life = await begin(t, data);
  }
  const counts = await countRounds(life);
  for (const [round, count] of counts) t.equal(count, USERS, `round ${round} is whole`);
  for (const round of answered) t.ok(counts.has(round), `round ${round} was answered and is there`);
  t.comment(`${counts.size} lists are there, ${answered.size} were answered, ${KILLS} kills`);
  t.ok(answered.size < 2 + KILLS, 'some were cut off');
});
