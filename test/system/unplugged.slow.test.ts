/**
 * Stopping the gateway in the middle of a run, with SIGTERM or kill -9, loses nothing: afterwards each lock's diary and
 * the receiver's agree (protocol.md §2). Only pings beyond the lock's buffer limit may be missing.
 */
import t, { type Test } from 'tap';
import { ScriptedWorld, type World, type WorldChange } from '../../firmware-sim/world/world.js';
import { Minutes } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { summarize } from '../helpers/durability/delivery-check.js';
import {
  type Outage,
  OutageRun,
  type OutageRunOptions,
  type OutageRunResult,
} from '../helpers/durability/unplug-run.js';
import { quickOrLong } from '../helpers/house/test-length.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';
import { livelyWorld } from '../helpers/sim/lively-world.js';
import { PARKED, PARKED_AT } from '../helpers/sim/parked-bicycle.js';

const seed = chooseSeed();
const repeat = `LOCKGATE_SEED=${seed} npm test -- dist/test/system/unplugged.slow.test.js`;

/**
 * The warnings that the judge may give, none of them a violation. The run's clock stops while the gateway is down, so
 * locks seem to be ahead of it. Connections were lost, and locks that keep a connection were offline. The judge reports
 * a gap after 100 uplinks, but a theft's ping may overtake up to 255 buffered uplinks, and only the last of them tells
 * how many were dropped.
 */
const EXPECTED_WARNINGS = [
  ...['clock-ahead', 'not-closed', 'recovery-offline', 'window-offline', 'sequence-gap'],
  // The stolen lock moves at one position.
  'motion-unlikely',
];

/** Locked and unlocked several times, then stolen for an hour: more pings than the buffer holds, not only thefts. */
function stolenLife(_index: number, startMs: number): World {
  const at = (minutes: number, change: WorldChange) => ({ atMs: startMs + Minutes(minutes), change });
  const changes = Array.from({ length: 8 }, (_, index) => {
    return at(3 + index / 2, { type: 'lock-state', lockState: index % 2 === 0 ? 'unlocked' : 'locked' });
  });
  const fix = { position: PARKED_AT, speedMetersPerSecond: 2, directionDegrees: 90 };
  return new ScriptedWorld(PARKED, [...changes, at(8, { type: 'motion', moving: true })], fix);
}

/** Asserts that the diaries of the locks, of the receiver and the gateway's presence agree. */
function assertNothingLost(t: Test, result: OutageRunResult): void {
  t.same(result.findings, [], `${summarize(result.findings)}\nrepeat: ${repeat}`);
  t.same(result.diary.violations, [], 'locks discarded uplinks only when their buffer was full');
  t.same(result.disagreements, [], 'the gateway’s presence agrees with the locks');
  t.same(result.errorLines, [], 'the gateway logged no complaint');
  const unexpected = [...result.rules].filter(([rule]) => !EXPECTED_WARNINGS.includes(rule));
  t.same(unexpected, [], `the judge gave only expected warnings. repeat: ${repeat}`);
}

const AFTER_SIGTERM: Outage = { afterMs: Minutes(4), durationMs: Minutes(10), signal: 'SIGTERM' };
const AFTER_KILL: Outage = { afterMs: Minutes(17), durationMs: Minutes(10), signal: 'SIGKILL' };

const unplugged: OutageRunOptions = {
  seed,
  locks: 12,
  // A machine that stands still for seconds delays uplinks by minutes of this clock. After the outage the locks' clocks
  // are ten minutes ahead; an uplink that is delayed by five of them looks punctual, and its connection too long.
  speed: 100,
  // In the quick form only the next test has a kill -9.
  outages: quickOrLong<readonly Outage[]>([AFTER_SIGTERM], [AFTER_SIGTERM, AFTER_KILL]),
  calmAfterMs: quickOrLong(Minutes(17), Minutes(30)),
  worldOf: livelyWorld,
};

t.setTimeout(170_000);
// The three runs wait most of the time, so they run at once.
t.jobs = 3;
t.comment(`seed ${seed}; repeat: ${repeat}`);

t.test('ten minutes without a gateway lose nothing', { buffered: true }, async (t) => {
  t.setTimeout(170_000);
  const result = await OutageRun.run(t, unplugged);
  t.ok(
    result.unackedAtRestart.every((buffered) => buffered >= 20),
    `each lock buffered enough: ${result.unackedAtRestart.join(', ')}`,
  );
  t.equal(result.diary.discarded, 0, 'ten minutes fit into the buffer');
  assertNothingLost(t, result);
});

t.test(
  'an hour without a gateway overflows the buffer of a stolen lock, and only the overflow is lost',
  { buffered: true },
  async (t) => {
    t.setTimeout(170_000);
    const result = await OutageRun.run(t, {
      seed,
      locks: 2,
      speed: 600,
      outages: [{ afterMs: Minutes(2), durationMs: Minutes(60), signal: 'SIGKILL' }],
      calmAfterMs: Minutes(66),
      worldOf: stolenLife,
    });
    t.equal(result.diary.maxUnackedOfLock, POWER_MODEL.bufferUplinks, 'the buffers were full');
    t.ok(result.diary.discarded > 100, `${result.diary.discarded} were discarded`);
    assertNothingLost(t, result);
  },
);

t.test('the check detects a gateway that skips some events', { buffered: true }, async (t) => {
  t.setTimeout(170_000);
  const { findings } = await OutageRun.run(t, {
    ...unplugged,
    speed: 300,
    outages: [],
    calmAfterMs: Minutes(8),
    sabotage: 'skip-event',
  });
  t.ok(findings.length > 0 && findings.every(({ broken }) => broken === 'missing'), summarize(findings));
});
