/**
 * Reports to operators when file descriptors run short, and when there are enough again. It checks once a second, since
 * webhooks and files take descriptors too; connections that find none are reported at once.
 */
import type { Socket } from 'node:net';
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import type { DescriptorsTurned, GatewayEvents } from '../events.js';
import { type Caller, type DescriptorRoom, type Descriptors, descriptorsFor } from './descriptors.js';

const CHECK_EVERY: Milliseconds = Seconds(1);
/** How long there must be no shortage for it to be over: at the limit, each place that is freed is taken at once. */
const CALM_AFTER: Milliseconds = Seconds(5);

/** Descriptors that are not connections of locks: files of the store, threads, listeners. */
const OTHERS = 64;
/** Descriptors that loading a package may take at once, generously. */
const LOADING = 512;

export interface DescriptorWatchParts {
  readonly descriptors: Descriptors;
  readonly events: GatewayEvents;
  /** Wall-clock time. */
  readonly clock: Clock;
  /** The time for events' timestamps. */
  readonly now: () => number;
}

export class DescriptorWatch {
  readonly descriptors: Descriptors;
  readonly #parts: DescriptorWatchParts;
  #timer: Timer | undefined;
  /** When they were last short; undefined while they are not. */
  #shortAtMs: number | undefined;

  /** Starts watching. */
  constructor(parts: DescriptorWatchParts) {
    this.#parts = parts;
    this.descriptors = parts.descriptors;
    if (this.descriptors.limit !== undefined) this.#arm();
  }

  /** How much room there is for a new connection. A shortage is reported. */
  roomFor(caller: Caller, socket: Socket): DescriptorRoom {
    const room = this.descriptors.roomFor(caller, socket);
    if (room !== 'enough') this.#noteShortage();
    return room;
  }

  /**
   * To be called at the start: warns where so many locks can't all be connected at once.
   *
   * @returns whether descriptors may run short once they are connected
   */
  expectLocks(locks: number): boolean {
    const { limit, forLocks } = this.descriptors;
    if (limit === undefined || locks + OTHERS <= forLocks) return locks + OTHERS + LOADING > forLocks;
    const needed = descriptorsFor(locks + OTHERS);
    this.#report(
      'few',
      `${locks} locks are registered, and this process may have ${limit} descriptors (open files and connections): ` +
        `raise the limit with "ulimit -n ${needed}", or not all of them can be connected at once`,
    );
    return true;
  }

  /** Stops watching. */
  stop(): void {
    this.#timer?.cancel();
  }

  #arm(): void {
    this.#timer = this.#parts.clock.after(CHECK_EVERY, () => {
      this.#check();
      this.#arm();
    });
  }

  #check(): void {
    if (this.descriptors.isShort) {
      this.#noteShortage();
      return;
    }
    if (this.#shortAtMs === undefined || this.#parts.clock.now() - this.#shortAtMs < CALM_AFTER) return;
    this.#shortAtMs = undefined;
    this.#report('enough', 'there are free descriptors again: locks are let in as before');
  }

  #noteShortage(): void {
    const isFirst = this.#shortAtMs === undefined;
    this.#shortAtMs = this.#parts.clock.now();
    if (!isFirst) return;
    const { limit = 0, reserve } = this.descriptors;
    this.#report(
      'short',
      `of the ${limit} descriptors (open files and connections) that this process may have, only the ${reserve} that ` +
        'are kept for operators and files are free: new locks are turned away for now; raise the limit (ulimit -n)',
    );
  }

  #report(state: DescriptorsTurned['state'], why: string): void {
    const { events, now, descriptors } = this.#parts;
    events.emit('descriptors', { atMs: now(), state, limit: descriptors.limit ?? 0, why });
  }
}
