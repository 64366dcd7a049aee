/** When the state of a claimed lock is put into memory. */
import t from 'tap';
import { LockOwner, type LockOwnerParts } from '../../../gateway/ownership/lock-owner.js';
import type { LockPart } from '../../../gateway/store/contract/slots/ownership.js';
import { afterThisTurn, systemClock } from '../../../proto/clock.js';

const DEVICE = 1;
const LOCK = { deviceId: DEVICE, source: 'lock' } as const;
const ALWAYS = (): boolean => true;

/**
 * An owner whose claims are all granted; `adopted`: the locks whose states were put into memory, one after another.
 *
 * @param answer resolves when the store answers a claim
 */
function setUp(answer: () => Promise<void> = async () => undefined) {
  const adopted: number[] = [];
  const here = new Set<number>();
  let wish: (part: LockPart) => void = () => undefined;
  let releases = 0;
  const parts = {
    store: { append: async () => undefined },
    ownership: {
      isSole: false,
      owns: ALWAYS,
      claim: async () => {
        await answer();
        return { isGranted: true, unheardSinceMs: null };
      },
      adopt: async () => [],
      release: async () => {
        releases += 1;
      },
      onWish: (listener: typeof wish) => {
        wish = listener;
      },
    },
    locks: {
      readStored: async () => ({ states: new Map(), marks: new Map() }),
      adopt: (deviceIds: Iterable<number>) => {
        for (const deviceId of deviceIds) {
          adopted.push(deviceId);
          here.add(deviceId);
        }
      },
      disown: (deviceId: number) => here.delete(deviceId),
      isHere: (deviceId: number) => here.has(deviceId),
      find: () => undefined,
      newerState: () => undefined,
    },
    ingest: { runExclusive: (_deviceId: number, run: () => Promise<void>) => run(), recordEvent: () => undefined },
    commands: { readStored: async () => [], adopt: () => undefined, disown: () => undefined },
    sessions: { end: () => undefined, whenNone: async () => undefined },
    notices: { lockTaken: () => undefined, lockGiven: () => undefined },
    events: { emit: () => undefined },
    clock: systemClock,
    timers: systemClock,
  };
  const owner = new LockOwner(parts as unknown as LockOwnerParts);
  owner.start();
  t.teardown(() => owner.stop());
  const claim = (): Promise<boolean> => owner.claim(LOCK as Parameters<LockOwner['claim']>[0], ALWAYS);
  return { adopted, claim, wish: (part: LockPart) => wish(part), releases: () => releases };
}

t.test('a claim of a lock that is in memory already leaves it there: its stored state may be older', async (t) => {
  const { adopted, claim } = setUp();
  t.equal(await claim(), true);
  t.equal(await claim(), true, 'as after an adoption during the claim');
  t.same(adopted, [DEVICE]);
});

t.test('after a release it is read again', async (t) => {
  const { adopted, claim, wish, releases } = setUp();
  await claim();
  wish(LOCK);
  t.equal(await claim(), true, 'it waits for the release');
  t.equal(releases(), 1);
  t.same(adopted, [DEVICE, DEVICE]);
});

t.test('a lock is not released while a claim waits for its answer; the wish is met when it comes again', async (t) => {
  let answer: () => void = () => undefined;
  const { claim, wish, releases } = setUp(() => new Promise((resolve) => (answer = resolve)));
  const claiming = claim();
  await Promise.resolve();
  // The lock is this gateway's already: its client had left before the state was read, and has come back.
  wish(LOCK);
  await new Promise<void>(afterThisTurn);
  t.equal(releases(), 0);
  answer();
  t.equal(await claiming, true);
  await new Promise<void>(afterThisTurn);
  wish(LOCK);
  await new Promise<void>(afterThisTurn);
  t.equal(releases(), 1);
});
