/**
 * Locks that are made from a trace, run without a gateway and without waiting: the same commands come at the same time,
 * and where a lock tries to connect by chance (protocol.md §2: every 5 min ± 20 %), the dice fall as they did.
 */
import { Hours, Minutes } from '../../proto/clock.js';
import { POWER_MODEL, type PowerModel } from '../../proto/power/model.js';
import { NEVER } from '../../proto/power/step/reading.js';
import { stepInPlace } from '../../proto/power/step/step.js';
import type { TraceLock } from '../../proto/trace/trace.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, Uplink } from '../../proto/wire/ping.js';
import { TraceRecorder } from '../fleet/trace-recorder.js';
import { type LinkEnd, MemoryGateway } from '../link/memory-link.js';
import { MemoryFlash } from '../lock/flash.js';
import { type Act, Lock, type LockOptions } from '../lock/lock.js';
import { QueueClock } from '../lock/queue-clock.js';
import type { TracedLock } from './from-trace.js';

export interface TracedRunOptions {
  readonly locks: readonly TracedLock[];
  /** When the trace begins and ends, ms since the epoch. */
  readonly fromMs: number;
  readonly untilMs: number;
  readonly note: string;
  /** Whether to tell what was made out to have happened, in `world` events. */
  readonly world: boolean;
  /** Told of each uplink that is made: sent, or still kept at the end. */
  readonly made: (mac: Mac, uplink: Uplink) => void;
}

/** The options of a lock that is made from a trace; who runs it adds a clock and a link. */
export function tracedLockOptions(traced: TracedLock): Omit<LockOptions, 'clock' | 'openLink'> {
  const { mac, firmwareVersion, world, periodMinute, connectsMs } = traced;
  const flash = new MemoryFlash();
  flash.save(mac, traced.flash);
  return { mac, firmwareVersion, world, periodMinute, flash, chance: 1, act: retriesAt(connectsMs) };
}

/** See the head of this file. Its trace is written as it goes. */
export class TracedRun {
  readonly endMs: number;
  readonly #clock: QueueClock;
  readonly #scribe: TraceRecorder;

  /** @param write takes a line of the trace; null where nobody wants them */
  constructor(options: TracedRunOptions, write: ((line: string) => void) | null) {
    const { locks, fromMs, untilMs, note } = options;
    const clock = new QueueClock(fromMs);
    const scribe = new TraceRecorder(write);
    const gateway = new MemoryGateway(
      {
        connected: (mac: Mac) => scribe.connect(mac, clock.now()),
        uplink: (mac: Mac, uplink: Uplink) => scribe.uplink(mac, clock.now(), uplink),
        ended: (mac: Mac, cause: LinkEnd) => scribe.disconnect(mac, clock.now(), cause),
      },
      clock,
    );
    this.endMs = untilMs;
    this.#clock = clock;
    this.#scribe = scribe;
    const made = locks.map((traced): [Lock, TracedLock] => {
      const lock = new Lock({
        ...tracedLockOptions(traced),
        clock,
        openLink: gateway.open,
        diary: (mac, atMs, entry) => {
          if (entry.type === 'did' && entry.effect.type === 'made') options.made(mac, entry.effect.uplink);
          if (options.world) scribe.world(mac, atMs, entry);
        },
      });
      return [lock, traced];
    });
    scribe.begin(note, fromMs, new Map(locks.map((traced) => [traced.mac, beginningOf(traced)])));
    for (const [lock, { startMs, commands, mac }] of made) {
      clock.after(startMs - fromMs, () => lock.start());
      for (const { atMs, id, command } of commands) {
        clock.after(atMs - fromMs, () => {
          const downlink = { id, command, expiresMs: atMs + expiresAfter(command) };
          if (!gateway.isConnected(mac)) return;
          scribe.command(mac, atMs, downlink);
          gateway.send(mac, downlink);
        });
      }
    }
  }

  get nowMs(): number {
    return this.#clock.now();
  }

  get connections(): number {
    return this.#scribe.connections;
  }

  get uplinks(): number {
    return this.#scribe.uplinks;
  }

  /** Goes on to `untilMs`; at the end of the trace it writes the last line. */
  advance(untilMs: number): void {
    this.#clock.run(Math.min(untilMs, this.endMs));
    if (this.nowMs >= this.endMs) this.#scribe.tick(this.endMs);
  }
}

function beginningOf({ flash }: TracedLock): TraceLock {
  const { power, highWindow, lockState, lastPeriodMs } = flash;
  const period = lastPeriodMs === NEVER ? null : lastPeriodMs;
  return { power, highWindow, lockState, connected: false, lastPeriodMs: period };
}

/** Protocol.md §1: a trace does not tell it. */
function expiresAfter({ type }: Command): number {
  return type === 'unlock' || type === 'lock' || type === 'siren' ? Minutes(2) : Hours(24);
}

/**
 * Acts as the model says, with loaded dice: a lock that waits for about 5 min waits so that a later try falls on the
 * next of these moments, where the spread allows it. Those in between come as soon as they may: they failed, and so the
 * network was not there yet.
 */
function retriesAt(connectsMs: readonly number[]): Act {
  const timings = { ...POWER_MODEL.timings };
  const model: PowerModel = { ...POWER_MODEL, timings };
  const { retryThenEvery, retryJitter } = POWER_MODEL.timings;
  const [shortest, longest] = [retryThenEvery * (1 - retryJitter), retryThenEvery * (1 + retryJitter)];
  let next = 0;
  return (_model, state, input, nowMs, effects) => {
    while (next < connectsMs.length && (connectsMs[next] as number) <= nowMs) next += 1;
    const left = (connectsMs[next] ?? nowMs) - nowMs;
    const tries = Math.max(1, Math.round(left / retryThenEvery));
    const isAllowed = left >= tries * shortest && left <= tries * longest;
    const wait = Math.max(shortest, left - (tries - 1) * longest);
    timings.retryThenEvery = isAllowed ? wait : retryThenEvery;
    timings.retryJitter = isAllowed ? 0 : retryJitter;
    return stepInPlace(model, state, input, nowMs, effects);
  };
}
