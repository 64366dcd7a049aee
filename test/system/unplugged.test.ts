/**
 * Unplugging the gateway in the middle of a run loses nothing: afterwards each lock's own diary and the receiver's
 * agree, within the buffer's stated limit (protocol.md §2). Politely or by kill -9; with a buffer that overflows, too.
 */
import t, { type Test } from 'tap';
import { ScriptedWorld, type World, type WorldChange } from '../../firmware-sim/world/world.js';
import { Minutes } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { summarize } from '../helpers/durability/delivery-check.js';
import { UnplugRun, type UnplugRunOptions, type UnplugRunResult } from '../helpers/durability/unplug-run.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';
import { livelyLife } from '../helpers/sim/lively-life.js';
import { PARKED, PARKED_AT } from '../helpers/sim/parked-bicycle.js';

const seed = chooseSeed();
const repeat = `LOCKGATE_SEED=${seed} npm test -- dist/test/system/unplugged.test.js`;

/**
 * What the judge may say of such a run, none of it a violation: the run's clock stands still while there is no gateway,
 * so locks seem to be ahead of it by as long; connections were lost; who keeps one was offline; and its patience with a
 * hole is 100 uplinks, where a theft's ping overtakes up to 255 that are kept, and how many of them are gone is told by
 * the last.
 */
const EXPECTED_WARNINGS = ['clock-ahead', 'not-closed', 'recovery-offline', 'window-offline', 'sequence-gap'];

/** Stolen for an hour after its lock was moved now and then: more pings than it can keep, and not of theft alone. */
function stolenLife(_index: number, startMs: number): World {
  const at = (minutes: number, change: WorldChange) => ({ atMs: startMs + Minutes(minutes), change });
  const changes = Array.from({ length: 8 }, (_, index) => {
    return at(3 + index / 2, { type: 'lock-state', lockState: index % 2 === 0 ? 'unlocked' : 'locked' });
  });
  const fix = { position: PARKED_AT, speedMetersPerSecond: 2, directionDegrees: 90 };
  return new ScriptedWorld(PARKED, [...changes, at(8, { type: 'motion', moving: true })], fix);
}

function holds(t: Test, result: UnplugRunResult): void {
  t.same(result.findings, [], `${summarize(result.findings)}\nrepeat: ${repeat}`);
  t.same(result.diary.wrongs, [], 'what locks discarded, their buffer had no room for');
  t.same(result.disagreements, [], 'presence is what the locks are');
  t.same(result.complaints, [], 'the gateway has nothing to complain about');
  const unexpected = [...result.rules].filter(([rule]) => !EXPECTED_WARNINGS.includes(rule));
  t.same(unexpected, [], `the judge found what it may. repeat: ${repeat}`);
}

const unplugged: UnplugRunOptions = {
  seed,
  locks: 12,
  speed: 150,
  outages: [
    { afterMs: Minutes(4), lasts: Minutes(10), signal: 'SIGTERM' },
    { afterMs: Minutes(17), lasts: Minutes(10), signal: 'SIGKILL' },
  ],
  calmAfterMs: Minutes(30),
  worldOf: livelyLife,
};

t.setTimeout(170_000);
t.jobs = 3;
t.comment(`seed ${seed}; repeat: ${repeat}`);

t.test('ten minutes without a gateway, twice, lose nothing', { buffered: true }, async (t) => {
  t.setTimeout(170_000);
  const result = await UnplugRun.run(t, unplugged);
  t.ok(
    result.keptAtReturn.every((kept) => kept >= 20),
    `enough was kept: ${result.keptAtReturn.join(', ')}`,
  );
  t.equal(result.diary.discarded, 0, 'ten minutes fit into the buffer');
  holds(t, result);
});

t.test(
  'an hour without one overflows the buffer of a stolen lock: its limit is all that is lost',
  { buffered: true },
  async (t) => {
    t.setTimeout(170_000);
    const result = await UnplugRun.run(t, {
      seed,
      locks: 2,
      speed: 600,
      outages: [{ afterMs: Minutes(2), lasts: Minutes(60), signal: 'SIGKILL' }],
      calmAfterMs: Minutes(66),
      worldOf: stolenLife,
    });
    t.equal(result.diary.mostKept, POWER_MODEL.bufferUplinks, 'the buffers were full');
    t.ok(result.diary.discarded > 100, `${result.diary.discarded} were discarded`);
    holds(t, result);
  },
);

t.test('a gateway that skips some events is found out', { buffered: true }, async (t) => {
  t.setTimeout(170_000);
  const { findings } = await UnplugRun.run(t, {
    ...unplugged,
    speed: 300,
    outages: [],
    calmAfterMs: Minutes(8),
    sabotage: 'skip-event',
  });
  t.ok(findings.length > 0 && findings.every(({ broken }) => broken === 'missing'), summarize(findings));
});
