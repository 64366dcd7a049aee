/**
 * The mutex of the store's writes: exclusive work and the log's work take turns, each in the order of its calls. The
 * log is the table of uplinks (locks' messages), which orders its own commits, so its work may overlap; exclusive work
 * is any other transaction.
 */
import t from 'tap';
import { WriteMutex } from '../../../gateway/store/sqlite/write-mutex.js';
import { afterThisTurn } from '../../../proto/clock.js';

/** Calls of a mutex whose work ends when the test says so. */
class Calls {
  /** What happened, in order: "NAME" when the work of this name started, and "NAME ended". */
  readonly seen: string[] = [];
  /** Each call of the mutex's `onHurry`. */
  readonly hurried: boolean[] = [];
  readonly mutex = new WriteMutex((isHurried) => this.hurried.push(isHurried));
  readonly #ends = new Map<string, (error?: Error) => void>();

  exclusive(name: string): Promise<void> {
    return this.mutex.runExclusive(() => this.#work(name));
  }

  log(name: string): Promise<void> {
    return this.mutex.runLog(() => this.#work(name));
  }

  /** Ends work that has started, and lets the mutex start what comes next. */
  async end(name: string, error?: Error): Promise<void> {
    const end = this.#ends.get(name);
    if (end === undefined) throw new Error(`${name} has not started`);
    end(error);
    this.seen.push(`${name} ended`);
    await settled();
  }

  #work(name: string): Promise<void> {
    this.seen.push(name);
    return new Promise((resolve, reject) => {
      this.#ends.set(name, (error) => (error === undefined ? resolve() : reject(error)));
    });
  }
}

/** Resolves when everything that waits for promises alone has gone on. */
function settled(): Promise<void> {
  return new Promise((resolve) => afterThisTurn(resolve));
}

t.test('the work of the log runs at once, beside earlier work of the log', async (t) => {
  const calls = new Calls();
  void calls.log('log 1');
  void calls.log('log 2');
  await settled();
  t.same(calls.seen, ['log 1', 'log 2']);
});

t.test('exclusive work waits for the work of the log, and runs alone', async (t) => {
  const calls = new Calls();
  void calls.log('log 1');
  void calls.exclusive('exclusive 1');
  void calls.log('log 2');
  await settled();
  t.same(calls.seen, ['log 1']);
  await calls.end('log 1');
  t.same(calls.seen.slice(2), ['exclusive 1']);
  await calls.end('exclusive 1');
  t.same(calls.seen.slice(4), ['log 2']);
});

t.test('the log waits for one exclusive transaction, not for all that are queued', async (t) => {
  const calls = new Calls();
  for (const name of ['exclusive 1', 'exclusive 2', 'exclusive 3']) void calls.exclusive(name);
  void calls.log('log 1');
  void calls.log('log 2');
  await settled();
  await calls.end('exclusive 1');
  t.same(calls.seen, ['exclusive 1', 'exclusive 1 ended', 'log 1', 'log 2']);
  // The log's new work waits for the next exclusive work, which would starve otherwise.
  void calls.log('log 3');
  await calls.end('log 1');
  await calls.end('log 2');
  t.same(calls.seen.slice(4), ['log 1 ended', 'log 2 ended', 'exclusive 2']);
  await calls.end('exclusive 2');
  t.same(calls.seen.slice(8), ['log 3']);
  await calls.end('log 3');
  t.same(calls.seen.slice(10), ['exclusive 3']);
});

t.test('the log is hurried while exclusive work waits for it, and only then', async (t) => {
  const calls = new Calls();
  void calls.exclusive('exclusive 1');
  void calls.log('log 1');
  await settled();
  t.same(calls.hurried, [], 'the log waits for exclusive work');
  await calls.end('exclusive 1');
  t.same(calls.hurried, []);
  void calls.exclusive('exclusive 2');
  void calls.exclusive('exclusive 3');
  void calls.log('log 2');
  t.same(calls.hurried, [true], 'at once, since the log may gather writes for long');
  await calls.end('log 1');
  t.same(calls.hurried, [true, false]);
  await calls.end('exclusive 2');
  t.same(calls.hurried, [true, false, true], 'exclusive work waits for what the log began meanwhile');
  await calls.end('log 2');
  await calls.end('exclusive 3');
  t.same(calls.hurried, [true, false, true, false]);
});

t.test('work that fails lets the next work run, and its caller gets the error', async (t) => {
  const calls = new Calls();
  const failed = calls.exclusive('exclusive 1');
  const failedToo = calls.log('log 1');
  void calls.exclusive('exclusive 2');
  const rejections = Promise.all([t.rejects(failed, new Error('full')), t.rejects(failedToo, new Error('gone'))]);
  await settled();
  await calls.end('exclusive 1', new Error('full'));
  await calls.end('log 1', new Error('gone'));
  await rejections;
  t.equal(calls.seen.at(-1), 'exclusive 2');
});

t.test('work that throws at once is a rejection', async (t) => {
  const mutex = new WriteMutex();
  const work = (): never => {
    throw new Error('full');
  };
  await t.rejects(mutex.runExclusive(work), new Error('full'));
  await t.rejects(mutex.runLog(work), new Error('full'));
  t.equal(await mutex.runExclusive(() => 7), 7);
});

t.test('the mutex is idle when no work runs or waits', async (t) => {
  const calls = new Calls();
  await calls.mutex.idle();
  void calls.exclusive('exclusive 1');
  void calls.log('log 1');
  void calls.exclusive('exclusive 2');
  let isIdle = false;
  void calls.mutex.idle().then(() => {
    isIdle = true;
  });
  await settled();
  for (const name of ['exclusive 1', 'log 1', 'exclusive 2']) {
    t.equal(isIdle, false);
    await calls.end(name);
  }
  t.equal(isIdle, true);
});
