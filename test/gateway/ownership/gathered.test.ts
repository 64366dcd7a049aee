/** What comes while a job runs is done together in the next jobs, each of which has a limited number of items. */
import t from 'tap';
import { Gathered } from '../../../gateway/ownership/gathered.js';
import { afterThisTurn } from '../../../proto/clock.js';

/** By then a job has started, if none ran. */
function nextTurn(): Promise<void> {
  return new Promise<void>((resolve) => afterThisTurn(resolve));
}

/** Jobs that end when the test says so, and the items of each. */
function manualJobs(limit?: number) {
  const jobs: (readonly number[])[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const gathered = new Gathered<number>((items) => {
    jobs.push(items);
    return new Promise((resolve, reject) => ends.push((error) => (error === undefined ? resolve() : reject(error))));
  }, limit);
  /** Ends the job that runs, and lets the next one start. */
  const endJob = async (error?: Error): Promise<void> => {
    ends.shift()?.(error);
    await nextTurn();
  };
  return { gathered, jobs, endJob };
}

t.test('what comes during a job is done in one job after it', async (t) => {
  const { gathered, jobs, endJob } = manualJobs();
  const first = gathered.add([1]);
  await nextTurn();
  const others = [gathered.add([2]), gathered.add([3, 4])];
  t.same(jobs, [[1]]);
  await endJob();
  t.same(jobs, [[1], [2, 3, 4]]);
  await endJob();
  await Promise.all([first, ...others]);
});

t.test('a job has at most so many items, so that those who came first wait for no others', async (t) => {
  const { gathered, jobs, endJob } = manualJobs(2);
  const calls = [[1], [2], [3], [4, 5, 6], [7]].map((items) => gathered.add(items));
  await nextTurn();
  t.same(jobs, [[1, 2]]);
  await endJob();
  await calls[0];
  for (let left = 2; left > 0; left -= 1) await endJob();
  t.same(jobs, [[1, 2], [3], [4, 5, 6], [7]], 'what one call added is not divided');
  await endJob();
  await Promise.all(calls);
});

t.test('a job that fails fails for the callers of its items alone', async (t) => {
  const { gathered, endJob } = manualJobs(1);
  const [one, other] = [gathered.add([1]), gathered.add([2])];
  const isTold = t.rejects(one, { message: 'no' });
  await nextTurn();
  await endJob(new Error('no'));
  await endJob();
  await isTold;
  await other;
});
