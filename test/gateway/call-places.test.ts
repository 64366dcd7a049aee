/**
 * A limited number of calls runs at a time, and merchants take turns (docs/http.md, "How much"). Each test reads the
 * order in which calls started from a list that the calls write.
 */
import t from 'tap';
import { type CallPlace, CallPlaces } from '../../gateway/fairness/call-places.js';
import { afterThisTurn } from '../../proto/clock.js';

/** Lets every promise that is settled run its continuations. */
const afterPromises = (): Promise<void> => new Promise((resolve) => afterThisTurn(resolve));

/** Calls that note when they start, under their names. */
function callers(places: CallPlaces) {
  const started: string[] = [];
  const running = new Map<string, CallPlace>();
  const call = (merchantId: number, name: string, signal = new AbortController().signal): Promise<void> =>
    places.enter(merchantId, signal).then((place) => {
      started.push(name);
      running.set(name, place);
    });
  const end = async (name: string): Promise<void> => {
    running.get(name)?.leave();
    await afterPromises();
  };
  return { started, running, call, end };
}

t.test('a merchant has two calls at a time; the next one starts when one ends, in the order of arrival', async (t) => {
  const { started, call, end } = callers(new CallPlaces({ perMerchant: 2, total: 6 }));
  for (const name of ['first', 'second', 'third', 'fourth']) void call(1, name);
  await afterPromises();
  t.same(started, ['first', 'second']);
  await end('second');
  t.same(started, ['first', 'second', 'third']);
  await end('first');
  t.equal(started.at(-1), 'fourth');
});

t.test('a call of a second merchant does not wait behind the many calls of the first', async (t) => {
  const { started, call, end } = callers(new CallPlaces({ perMerchant: 2, total: 2 }));
  for (let each = 1; each <= 20; each++) void call(1, `hostile ${each}`);
  void call(2, 'honest');
  await afterPromises();
  t.same(started, ['hostile 1', 'hostile 2', 'honest'], 'at once, although the hostile calls have not ended');
  await end('hostile 1');
  t.equal(started.length, 3, 'the honest call has taken the place of the next hostile one');
  await end('honest');
  t.equal(started.at(-1), 'hostile 3');
});

t.test('when many calls run, each merchant has one, and none waits for the slow calls of others', async (t) => {
  const places = new CallPlaces({ perMerchant: 2, total: 3 });
  const { started, call } = callers(places);
  for (const merchantId of [1, 2, 3, 4]) for (const name of ['a', 'b']) void call(merchantId, `${merchantId}${name}`);
  await afterPromises();
  t.same(started, ['1a', '1b', '2a', '3a', '4a']);
  t.equal(places.running, 5, 'more than the total, which limits only further calls of a merchant');
});

t.test(
  'a merchant whose only call ends starts its next one, also if another merchant waits for a second one',
  async (t) => {
    const { started, call, end } = callers(new CallPlaces({ perMerchant: 2, total: 2 }));
    for (const name of ['1a', '1b']) void call(1, name);
    for (const name of ['2a', '2b']) void call(2, name);
    await afterPromises();
    t.same(started, ['1a', '1b', '2a']);
    await end('2a');
    t.equal(started.at(-1), '2b');
  },
);

t.test('a call that waits for an event lends its place, and gets one again afterwards', async (t) => {
  const places = new CallPlaces({ perMerchant: 1, total: 1 });
  const { started, running, call, end } = callers(places);
  await call(1, 'waiting');
  let onEvent = (): void => undefined;
  const event = new Promise<void>((resolve) => {
    onEvent = resolve;
  });
  const resumed = running
    .get('waiting')
    ?.waitWithoutPlace(async () => await event)
    .then(() => started.push('back'));
  await call(1, 'other');
  onEvent();
  await afterPromises();
  t.same(started, ['waiting', 'other'], 'the place is taken');
  await end('other');
  await resumed;
  t.same(started, ['waiting', 'other', 'back']);
  await end('waiting');
  t.equal(places.running, 0);
});

t.test('a caller who hangs up while the call waits is forgotten; no place is lost', async (t) => {
  const places = new CallPlaces({ perMerchant: 1, total: 1 });
  const { started, running, call, end } = callers(places);
  const hangUp = new AbortController();
  await call(1, 'first');
  const gone = call(1, 'gone', hangUp.signal);
  void call(1, 'third');
  hangUp.abort();
  await t.rejects(gone, { name: 'AbortError' });
  await end('first');
  t.same(started, ['first', 'third']);
  const failed = running.get('third')?.waitWithoutPlace(() => Promise.reject(new Error('no event')));
  await t.rejects(failed ?? Promise.resolve(), { message: 'no event' });
  await end('third');
  t.equal(places.running, 0, 'a failed wait does not give the place up twice');
  await t.rejects(call(1, 'too late', hangUp.signal), { name: 'AbortError' });
  t.equal(places.running, 0);
});
