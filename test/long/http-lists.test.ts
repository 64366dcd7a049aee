/**
 * A list of users is added completely or not at all, even if the gateway is killed meanwhile: while it hashes
 * passwords, while it writes the list, or just before the answer (interfaces.md §2). A list with a successful answer is
 * stored.
 */
import t, { type Test } from 'tap';
import { monotonicMs, systemClock } from '../../proto/clock.js';
import { ServeProgram } from '../helpers/cli/serve-program.js';
import { callMerchantApi } from '../helpers/http/merchant-call.js';
import { chooseSeed, SeededChance } from '../helpers/pair/seeded-chance.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const seed = chooseSeed();
const KILLS = Number(process.env.LOCKGATE_KILLS ?? 40);
/** Users of a list, and how many of them have a password in even rounds. */
const USERS = 1000;
const PASSWORDS = 10;
/** In even rounds hashing takes most of the time, in odd rounds writing, so that kills interrupt both. */
const passwordsOf = (round: number): number => (round % 2 === 0 ? PASSWORDS : 0);

t.setTimeout(3_600_000);
t.comment(`seed ${seed}; repeat: LOCKGATE_SEED=${seed} npm test -- dist/test/long/http-lists.test.js`);

interface RunningServe {
  readonly serve: ServeProgram;
  readonly httpPort: number;
}

/** Starts `serve` on a folder, on free ports. */
async function startServe(test: Test, data: string): Promise<RunningServe> {
  const serve = await ServeProgram.start(test, data);
  const line = await serve.program.waitForLine(/merchants +http:/);
  return { serve, httpPort: Number(/:(\d+)$/.exec(line)?.[1]) };
}

/** Adds the list of this round. Returns whether the answer 200 came before the connection ended. */
async function addList({ httpPort }: RunningServe, key: string, round: number): Promise<boolean> {
  const body = Array.from({ length: USERS }, (_, index) => ({
    username: `r${round}u${index}`,
    ...(index < passwordsOf(round) && { password: 'x' }),
  }));
  try {
    return (await callMerchantApi({ httpPort }, '/v2/user/createWithList', { key, body })).status === 200;
  } catch {
    return false;
  }
}

/** The number of stored users, by round. */
async function countRounds({ serve }: RunningServe): Promise<Map<number, number>> {
  const { users } = await serve.json<{ users: readonly { readonly username: string }[] }>('user', 'list');
  const counts = new Map<number, number>();
  for (const { username } of users) {
    const round = Number(/^r(\d+)u/.exec(username)?.[1]);
    counts.set(round, (counts.get(round) ?? 0) + 1);
  }
  return counts;
}

t.test('kill -9 in the middle of a list leaves all of its users or none', async (t) => {
  const chance = new SeededChance(seed);
  const data = tempFolder(t);
  let running = await startServe(t, data);
  await running.serve.json('merchant', 'add', 'Amber');
  const { key } = await running.serve.json<{ key: string }>('key', 'create', 'test');
  const answered = new Set<number>();
  const durationsMs: number[] = [];
  for (let round = 0; round < 2; round += 1) {
    const before = monotonicMs();
    t.ok(await addList(running, key, round));
    answered.add(round);
    durationsMs.push(monotonicMs() - before);
  }
  for (let round = 2; round < 2 + KILLS; round += 1) {
    const adding = addList(running, key, round);
    const { serve } = running;
    const expectedMs = durationsMs[round % 2] ?? 0;
    // After 60 to 120 % of the expected time.
    systemClock.after(expectedMs * (0.6 + 0.6 * chance.next()), () => serve.program.kill('SIGKILL'));
    const isAnswered = await adding;
    if (isAnswered) answered.add(round);
    // Adapts to the machine's speed, so that kills stay near the end of the request, where the list is written.
    durationsMs[round % 2] = expectedMs * (isAnswered ? 0.8 : 1.2);
    await serve.program.waitForExit();
    running = await startServe(t, data);
  }
  const counts = await countRounds(running);
  for (const [round, count] of counts) t.equal(count, USERS, `round ${round} is complete`);
  for (const round of answered) t.ok(counts.has(round), `round ${round} was answered and is stored`);
  t.comment(`${counts.size} lists are stored, ${answered.size} were answered, ${KILLS} kills`);
  t.ok(answered.size < 2 + KILLS, 'some requests were interrupted');
});
