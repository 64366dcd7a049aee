/**
 * Runs *traced locks*, simulated locks that are made from a trace, without a gateway and without waiting. The run sends
 * the trace's commands at the same times. The random intervals of retries (protocol.md §2: every 5 min ± 20 %) are
 * chosen so that the locks connect at the times of the trace.
 */
import { POWER_MODEL, type PowerModel } from '../../proto/power/model.js';
import { NEVER } from '../../proto/power/step/reading.js';
import { stepInPlace } from '../../proto/power/step/step.js';
import type { TraceLock } from '../../proto/trace/trace.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Uplink } from '../../proto/wire/ping.js';
import { commandLifetime } from '../link/command-queue.js';
import { type DisconnectReason, MemoryGateway } from '../link/memory-link.js';
import { MemoryFlash } from '../lock/flash.js';
import { Lock, type LockOptions, type StepFunction } from '../lock/lock.js';
import { TraceRecorder } from '../trace/trace-recorder.js';
import { VirtualClock } from '../virtual-clock.js';
import type { TracedLock } from './from-trace.js';

/** The locks to run, and what to write of the run. */
export interface TracedRunOptions {
  readonly locks: readonly TracedLock[];
  /** When the trace starts and ends, ms since the epoch. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** A note for readers of the run's trace. */
  readonly note: string;
  /** Whether to write `world` events too: what happened to the locks, by inference from the trace. */
  readonly hasWorldEvents: boolean;
  /** Called with each uplink that a lock makes, sent or not. */
  readonly made: (mac: Mac, uplink: Uplink) => void;
}

/** The options of a lock that is made from a trace; the caller adds a clock and a link. */
export function tracedLockOptions(traced: TracedLock): Omit<LockOptions, 'clock' | 'openLink'> {
  const { mac, firmwareVersion, world, periodMinute, connectTimesMs } = traced;
  const flash = new MemoryFlash();
  flash.save(mac, traced.flash);
  return {
    mac,
    firmwareVersion,
    world,
    periodMinute,
    flash,
    // Any seed: the step function below replaces the random retries.
    jitterSeed: 1,
    stepFunction: stepWithRetriesAt(connectTimesMs),
  };
}

/** A run of traced locks that the caller advances in steps. It writes a trace of what the simulated locks do. */
export class TracedRun {
  readonly endMs: number;
  readonly #clock: VirtualClock;
  readonly #recorder: TraceRecorder;

  /** @param write takes a line of the trace without its line break; null if no trace is wanted */
  constructor(options: TracedRunOptions, write: ((line: string) => void) | null) {
    const { locks, fromMs, untilMs, note } = options;
    const clock = new VirtualClock(fromMs);
    const recorder = new TraceRecorder(write);
    const gateway = new MemoryGateway(
      {
        connected: (mac: Mac) => recorder.connect(mac, clock.now()),
        uplink: (mac: Mac, uplink: Uplink) => recorder.uplink(mac, clock.now(), uplink),
        disconnected: (mac: Mac, cause: DisconnectReason) => recorder.disconnect(mac, clock.now(), cause),
      },
      clock,
    );
    this.endMs = untilMs;
    this.#clock = clock;
    this.#recorder = recorder;
    const simulatedLocks = locks.map((traced): [Lock, TracedLock] => {
      const lock = new Lock({
        ...tracedLockOptions(traced),
        clock,
        openLink: gateway.open,
        // The diary, the lock's own log, receives everything that happens to the lock and that it does.
        diary: (mac, atMs, entry) => {
          if (entry.type === 'did' && entry.effect.type === 'made') options.made(mac, entry.effect.uplink);
          if (options.hasWorldEvents) recorder.world(mac, atMs, entry);
        },
      });
      return [lock, traced];
    });
    recorder.start(note, fromMs, new Map(locks.map((traced) => [traced.mac, headerLockOf(traced)])));
    for (const [lock, { startMs, commands, mac }] of simulatedLocks) {
      clock.after(startMs - fromMs, () => lock.start());
      for (const { atMs, id, command } of commands) {
        const downlink = { id, command, expiresMs: atMs + commandLifetime(command) };
        const send = (): boolean => {
          if (!gateway.isConnected(mac)) return false;
          recorder.command(mac, clock.now(), downlink);
          return gateway.send(mac, downlink);
        };
        // In the millisecond in which the lock connects, this timer may run before the lock's: then send 1 ms later.
        clock.after(atMs - fromMs, () => send() || clock.after(1, send));
      }
    }
  }

  get nowMs(): number {
    return this.#clock.now();
  }

  get connections(): number {
    return this.#recorder.connections;
  }

  get uplinks(): number {
    return this.#recorder.uplinks;
  }

  /** Advances to `untilMs`; at the end of the trace it writes the last line. */
  advance(untilMs: number): void {
    this.#clock.run(Math.min(untilMs, this.endMs));
    if (this.nowMs >= this.endMs) this.#recorder.tick(this.endMs);
  }
}

/** The lock's entry in the header of the run's own trace. */
function headerLockOf({ flash }: TracedLock): TraceLock {
  const { power, highWindow, lockState, lastPeriodMs } = flash;
  // A lock without a daily ping has `NEVER` in its flash, and null in a header.
  const lastPeriodOrNull = lastPeriodMs === NEVER ? null : lastPeriodMs;
  return { power, highWindow, lockState, connected: false, lastPeriodMs: lastPeriodOrNull };
}

/**
 * The power model's step function with chosen instead of random retry intervals. A lock that waits about 5 min for its
 * next attempt waits so long that an attempt falls on the next of the given times (ms since the epoch), if the model's
 * jitter allows that. Attempts before that come as early as possible.
 */
function stepWithRetriesAt(connectsMs: readonly number[]): StepFunction {
  const timings = { ...POWER_MODEL.timings };
  const model: PowerModel = { ...POWER_MODEL, timings };
  const { retryThenEvery, retryJitter } = POWER_MODEL.timings;
  const [shortestMs, longestMs] = [retryThenEvery * (1 - retryJitter), retryThenEvery * (1 + retryJitter)];
  let next = 0;
  return (_model, state, input, nowMs, effects) => {
    while (next < connectsMs.length && (connectsMs[next] as number) <= nowMs) next += 1;
    const untilConnectMs = (connectsMs[next] ?? nowMs) - nowMs;
    const attempts = Math.max(1, Math.round(untilConnectMs / retryThenEvery));
    const isAllowed = untilConnectMs >= attempts * shortestMs && untilConnectMs <= attempts * longestMs;
    const waitMs = Math.max(shortestMs, untilConnectMs - (attempts - 1) * longestMs);
    timings.retryThenEvery = isAllowed ? waitMs : retryThenEvery;
    timings.retryJitter = isAllowed ? 0 : retryJitter;
    return stepInPlace(model, state, input, nowMs, effects);
  };
}
