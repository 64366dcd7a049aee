// Four shortcuts of virtual runs change no byte of a trace: locks are simulated one after another and their lines
// merged by time; locks are divided into shares, for several threads; steps in which no trigger can act are shortened;
// lines are written as bytes. Each is compared with the same run without it.
import t from 'tap';
import type { Bug } from '../../firmware-sim/faults/bug.js';
import { parseFaults } from '../../firmware-sim/faults/faults.js';
import { parseMix } from '../../firmware-sim/fleet/mix.js';
import { lockRanges, SharedTrace, TraceShare } from '../../firmware-sim/fleet/trace-share.js';
import { type VirtualOptions, VirtualRun } from '../../firmware-sim/fleet/virtual-run.js';
import { VirtualTrace } from '../../firmware-sim/fleet/virtual-trace.js';
import { headerLockOf, TraceRecorder } from '../../firmware-sim/trace/trace-recorder.js';
import { Days, Hours, Minutes } from '../../proto/clock.js';
import { eachLine } from '../helpers/sim/each-line.js';
import { RUN_STARTS_MS, traceOf } from '../helpers/sim/judged-run.js';

type Options = Omit<VirtualOptions, 'sink' | 'diary' | 'anyOrder' | 'onFiring' | 'range'>;

/**
 * The lines of a run whose locks share one clock, written by `TraceRecorder`, which makes a string for each line. They
 * include `world` events, which record what truly happened: they are made from each lock's own log, its diary.
 */
function traceOfOneClock(options: Options): string[] {
  const lines: string[] = [];
  const recorder = new TraceRecorder((line) => lines.push(line));
  const run = new VirtualRun({
    ...options,
    sink: recorder,
    diary: (mac, atMs, entry) => recorder.world(mac, atMs, entry),
  });
  recorder.start('', run.nowMs, new Map(run.locks.map(({ mac, state }) => [mac, headerLockOf(state)])));
  run.advance(run.endMs);
  recorder.tick(run.endMs);
  return lines;
}

/**
 * Turns shortened steps off, and changes nothing else: its step function only calls the healthy one. Steps are
 * shortened only for locks without a bug.
 */
const FULL_STEPS: Bug = {
  name: 'full-steps',
  rule: null,
  sentence: '',
  shows: '',
  wrapStep: (healthy) => (model, state, input, nowMs, effects) => healthy(model, state, input, nowMs, effects),
};

/** The settings of the fleets, with the share of the locks that start with each; undefined: drawn from the seed. */
const MIXES = [undefined, 'high=3,recovery=1', 'mid+ride=2,low-battery=1,airplane=1,recovery=1'];

/** The options of a run; `pace` says how eventful the locks' days are. */
function optionsOf(seed: number, mix: string | undefined, pace: 'everyday' | 'lively'): Options {
  // An everyday run lasts from midnight until after 07:00, when many locks in mode HIGH connect at once. A lively run
  // can be short, since much happens within minutes.
  const size = pace === 'lively' ? { locks: 6, days: 0.2 } : { locks: 30, days: 0.4 };
  return { seed, pace, ...size, startMs: RUN_STARTS_MS, ...(mix !== undefined && { mix: parseMix(mix) }) };
}

for (const pace of ['everyday', 'lively'] as const) {
  t.test(`locks that are simulated one after another write the same trace as with one clock, ${pace}`, async (t) => {
    for (const [seed, mix] of MIXES.entries()) {
      const options = optionsOf(seed, mix, pace);
      const expected = traceOfOneClock(options);
      t.ok(expected.length > 300, 'the run has lines');
      t.strictSame(traceOf({ ...options, hasWorldEvents: true }), expected, `mix ${mix}`);
    }
  });

  t.test(`shortened steps write the same trace as full steps, ${pace}`, async (t) => {
    for (const [seed, mix] of MIXES.entries()) {
      const faults = seed === 0 ? [] : parseFaults('all');
      const options = { ...optionsOf(100 + seed, mix, pace), faults, hasWorldEvents: true };
      t.strictSame(traceOf(options), traceOf({ ...options, bugs: [{ bug: FULL_STEPS, locks: null }] }), `mix ${mix}`);
    }
  });
}

t.test('no step is skipped while an uplink is in flight', async (t) => {
  // With this seed a network ping is due while faults delay the acknowledgement of another uplink.
  const size = { seed: 5, locks: 4, days: 0.4, startMs: RUN_STARTS_MS };
  const options = { ...size, pace: 'lively', faults: parseFaults('all'), hasWorldEvents: true } as const;
  t.strictSame(traceOf(options), traceOf({ ...options, bugs: [{ bug: FULL_STEPS, locks: null }] }));
});

t.test('the length of the steps in which a run advances changes no byte', async (t) => {
  const options = { ...optionsOf(7, undefined, 'lively'), hasWorldEvents: true };
  const lines: string[] = [];
  const trace = new VirtualTrace(
    { ...options, note: '' },
    eachLine((line) => lines.push(line)),
  );
  for (let step = 1; trace.nowMs < trace.endMs; step++) trace.advance(trace.nowMs + Minutes(step % 7) + (step % 3));
  t.strictSame(lines, traceOf(options));
});

/** The lines of a run whose locks are divided into this number of shares, as for several threads. */
function traceOfShares(options: Options, shares: number): string[] {
  const lines: string[] = [];
  const traced = { ...options, hasWorldEvents: true, note: '' };
  const trace = new SharedTrace(
    options.locks,
    eachLine((line) => lines.push(line)),
  );
  const parts = lockRanges(options.locks, shares).map((range) => new TraceShare(traced, range));
  trace.start('', options.startMs, new Map(parts.flatMap((part) => [...part.headerLocks()])));
  const endMs = options.startMs + Math.round(Days(options.days));
  for (let nowMs = options.startMs, chunk = 1; nowMs < endMs; chunk++) {
    nowMs = Math.min(endMs, nowMs + Minutes(7 * chunk));
    trace.write(parts.map((part) => part.advance(nowMs)));
  }
  trace.end(endMs);
  return lines;
}

for (const pace of ['everyday', 'lively'] as const) {
  t.test(`a run divided into shares of the locks writes the same trace as an undivided one, ${pace}`, async (t) => {
    for (const [seed, mix] of MIXES.entries()) {
      const options = optionsOf(200 + seed, mix, pace);
      const expected = traceOf({ ...options, hasWorldEvents: true });
      t.ok(expected.length > 300, 'the run has lines');
      for (const shares of [1, 2, 3, 99])
        t.strictSame(traceOfShares(options, shares), expected, `${shares}, mix ${mix}`);
    }
  });
}

t.test('timers that are due together run in the order in which they were set', async (t) => {
  // Locks in recovery stay connected, and send network pings all the time: here all at the same moments.
  const options = {
    seed: 3,
    locks: 40,
    days: Hours(3) / Hours(24),
    startMs: RUN_STARTS_MS,
    mix: parseMix('recovery=1'),
  };
  const expected = traceOfOneClock(options);
  // Without the header. A line starts with `{"at":"2026-01-05T00:00:00.000Z"`.
  const times = expected.slice(1).map((line) => line.slice(0, '{"at":"2026-01-05T00:00:00.000Z"'.length));
  t.ok(times.filter((time, index) => time === times[index - 1]).length > 100, 'many lines have the same time');
  t.strictSame(traceOf({ ...options, hasWorldEvents: true }), expected);
  t.strictSame(traceOfShares(options, 3), expected);
});
