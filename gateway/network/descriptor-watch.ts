/**
 * Emits a `descriptors` event when file descriptors run short, and when there are enough again. The watch checks once a
 * second, since webhooks and files take descriptors too; a connection without a free descriptor is reported at once.
 */
import type { Socket } from 'node:net';
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';
import type { DescriptorsChanged } from '../operation-events.js';
import { type Caller, type DescriptorRoom, type Descriptors, descriptorsFor } from './descriptors.js';

const CHECK_INTERVAL: Milliseconds = Seconds(1);
/** A shortage is over after this time without one: at the limit, each freed descriptor is taken again at once. */
const SHORTAGE_END_DELAY: Milliseconds = Seconds(5);

/** Descriptors for other uses than locks' connections: files of the store, threads, listeners. */
const OTHER_DESCRIPTORS = 64;
/** Descriptors that loading a package may take at once, as a generous estimate. */
const LOADING_DESCRIPTORS = 512;

export interface DescriptorWatchParts {
  readonly descriptors: Descriptors;
  readonly events: GatewayEvents;
  /** Wall-clock time. */
  readonly clock: Clock;
  /** Returns the time for the timestamps of events. */
  readonly now: () => number;
}

export class DescriptorWatch {
  readonly descriptors: Descriptors;
  readonly #parts: DescriptorWatchParts;
  #timer: Timer | undefined;
  /** When descriptors were last short; undefined while there is no shortage. */
  #shortAtMs: number | undefined;

  /** Starts watching. */
  constructor(parts: DescriptorWatchParts) {
    this.#parts = parts;
    this.descriptors = parts.descriptors;
    if (this.descriptors.limit !== undefined) this.#scheduleCheck();
  }

  /** Whether a new connection may have its descriptor. Reports a shortage. */
  roomFor(caller: Caller, socket: Socket): DescriptorRoom {
    const room = this.descriptors.roomFor(caller, socket);
    if (room !== 'enough') this.#noteShortage();
    return room;
  }

  /**
   * Must be called at the start with the number of registered locks: warns if they can't all be connected at once.
   *
   * @returns whether descriptors may run short once all locks are connected
   */
  expectLocks(locks: number): boolean {
    const { limit, forLocks } = this.descriptors;
    const wanted = locks + OTHER_DESCRIPTORS;
    if (limit === undefined || wanted <= forLocks) return wanted + LOADING_DESCRIPTORS > forLocks;
    const needed = descriptorsFor(wanted);
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

  #scheduleCheck(): void {
    this.#timer = this.#parts.clock.after(CHECK_INTERVAL, () => {
      this.#check();
      this.#scheduleCheck();
    });
  }

  #check(): void {
    if (this.descriptors.isShort) {
      this.#noteShortage();
      return;
    }
    if (this.#shortAtMs === undefined || this.#parts.clock.now() - this.#shortAtMs < SHORTAGE_END_DELAY) return;
    this.#shortAtMs = undefined;
    this.#report('enough', 'there are free descriptors again: locks can connect again');
  }

  #noteShortage(): void {
    const isFirst = this.#shortAtMs === undefined;
    this.#shortAtMs = this.#parts.clock.now();
    if (!isFirst) return;
    const { limit = 0, reserve } = this.descriptors;
    this.#report(
      'short',
      `of the ${limit} descriptors (open files and connections) that this process may have, only the ${reserve} that ` +
        'are reserved for operators and files are free: new locks are refused for now; raise the limit (ulimit -n)',
    );
  }

  #report(state: DescriptorsChanged['state'], why: string): void {
    const { events, now, descriptors } = this.#parts;
    events.emit('descriptors', { atMs: now(), state, limit: descriptors.limit ?? 0, why });
  }
}
