/**
 * `lockgate sim run --from-trace`: simulates the locks of a trace, with or without a gateway. What happened to each
 * lock is inferred from the trace; the simulated pings are compared with the recorded ones.
 */

import { TracedRun, tracedLockOptions } from '../../../firmware-sim/inference/traced-run.js';
import { mqttLinks } from '../../../firmware-sim/link/mqtt-link.js';
import { Lock } from '../../../firmware-sim/lock/lock.js';
import { Minutes, monotonicMs, RunClock, Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { Interruption } from '../../terminal/interrupt.js';
import { LineSink } from '../../terminal/line-sink.js';
import { print, printJson, printNote } from '../../terminal/output.js';
import { advanceInSlices } from '../../terminal/run-slices.js';
import type { SimFlags } from './flags.js';
import { findGateway } from './gateway.js';
import { showProgress } from './live.js';
import { plural, repeatCommand } from './summary.js';
import { SimTally } from './tally.js';
import { comparisonToJson, printComparison, readLockTraces, TracedLocks } from './traced-locks.js';

type TraceFlags = SimFlags & { readonly fromTrace: string };

/** Runs the locks of a trace without a gateway, at full speed, and prints a comparison with the trace. */
export async function runTracedVirtually(flags: TraceFlags, interrupted: Interruption): Promise<void> {
  const traces = await readLockTraces(flags.fromTrace);
  const { fromMs, untilMs } = traces;
  // 'sent': the simulated locks receive the recorded commands again.
  const traced = new TracedLocks(traces, 'sent');
  const sink = flags.out === undefined ? undefined : new LineSink(flags.out === '-' ? undefined : flags.out);
  const startedAtMs = monotonicMs();
  const includeOut = false;
  const note = repeatCommand(flags, includeOut);
  const options = { locks: traced.locks, fromMs, untilMs, note, hasWorldEvents: flags.world ?? false };
  const write = sink === undefined ? null : (line: string): void => sink.write(line);
  const run = new TracedRun({ ...options, made: traced.addSimulated }, write);
  const progress = (): string => {
    const percentDone = Math.floor((100 * (run.nowMs - fromMs)) / Math.max(1, untilMs - fromMs));
    return `${percentDone} % of the trace, ${plural(run.uplinks, 'uplink')}`;
  };
  await advanceInSlices(run, progress, interrupted.signal);
  sink?.end();
  const seconds = (monotonicMs() - startedAtMs) / Seconds(1);
  if (flags.out === '-') printNote(`${plural(run.uplinks, 'uplink')} of ${plural(traced.locks.length, 'lock')}.`);
  else report(flags, traced, { out: flags.out ?? null, connections: run.connections, uplinks: run.uplinks, seconds });
  if (!interrupted.signal.aborted) return;
  printNote('Interrupted: the trace was not simulated to its end.');
  process.exitCode = interrupted.exitCode;
}

/**
 * Runs the locks of a trace against a gateway, with all times shifted to now. The effects of recorded commands are
 * applied to the simulated world, because only the gateway may send commands.
 */
export async function runTracedLive(flags: TraceFlags, interrupted: Interruption): Promise<void> {
  const traces = await readLockTraces(flags.fromTrace);
  const macs = traces.locks.map(({ mac }) => mac);
  // The MACs are those of the trace: none need be chosen for the time of the start (undefined).
  const gateway = await findGateway(flags, interrupted.signal, undefined, macs);
  if (interrupted.signal.aborted) {
    process.exitCode = interrupted.exitCode;
    return;
  }
  const { fromMs, untilMs } = traces;
  const clock = new RunClock(gateway.startMs, flags.speed);
  // 'done-by-hand': the simulated locks don't receive the recorded commands; their effects happen at the lock.
  const traced = new TracedLocks(traces, 'done-by-hand', gateway.startMs - fromMs);
  const span = untilMs - fromMs;
  const endMs = gateway.startMs + span;
  const durationText = `${(span / Minutes(1) / flags.speed).toFixed(1)} min`;
  if (!flags.json)
    printNote(
      `${plural(traced.locks.length, 'lock')} of ${flags.fromTrace}, for ${durationText}. Press Ctrl-C to stop.`,
    );
  const tally = new SimTally(new Set(gateway.macs.map(formatMac)));
  const openLink = mqttLinks(gateway.address, (mac) => gateway.secrets.get(mac) ?? '');
  // The boot number is the current second, which never repeats: an uplink's key (boot and sequence) must be unique.
  const boot = Math.floor(systemClock.now() / Seconds(1));
  const timers: Timer[] = [];
  const locks = traced.locks.map((tracedLock) => {
    const lock = new Lock({
      ...tracedLockOptions({ ...tracedLock, flash: { ...tracedLock.flash, boot } }),
      clock,
      openLink,
      diary: (mac, _atMs, entry) => {
        tally.note(entry);
        // Only the entries about an uplink (a message of the lock) that the lock has made.
        if (entry.type !== 'did' || entry.effect.type !== 'made') return;
        // The timer that ends the run fires a little late. Uplinks made after the end don't count.
        if (entry.effect.uplink.timeMs <= endMs) traced.addSimulated(mac, entry.effect.uplink);
      },
    });
    timers.push(clock.after(tracedLock.startMs - clock.now(), () => lock.start()));
    return lock;
  });
  tally.locks = locks;
  const listening = new AbortController();
  if (gateway.client !== null) await tally.listen(gateway.client, listening.signal);
  const progressDisplay = showProgress(tally);
  const endReached = new Promise<void>((resolve) => {
    timers.push(clock.after(endMs - clock.now(), resolve));
  });
  await Promise.race([interrupted.happened, endReached]);
  for (const timer of timers) timer.cancel();
  // Makes the locks process everything that is due by now, even if a timer is late.
  for (const lock of locks) lock.checkWorld();
  progressDisplay.end();
  await Promise.all(locks.map((lock) => lock.stop()));
  listening.abort();
  report(flags, traced, { gateway: gateway.url, ...tally.toJson() });
  if (interrupted.signal.aborted) process.exitCode = interrupted.exitCode;
}

/** Prints the comparison of the simulated with the recorded pings. */
function report(flags: TraceFlags, traced: TracedLocks, counts: object): void {
  const comparison = traced.compare();
  const repeat = repeatCommand(flags);
  if (flags.json) {
    const run = { from_trace: flags.fromTrace, virtual: flags.virtual ?? false, locks: traced.locks.length, ...counts };
    printJson({ ...run, comparison: comparisonToJson(comparison), repeat });
    return;
  }
  printComparison(comparison);
  print(`Repeat with: ${repeat}`);
}
