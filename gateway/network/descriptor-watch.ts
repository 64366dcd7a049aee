/**
 * Tells operators while file descriptors run short, and when that is over. It looks once a second, since webhooks and
 * files take descriptors too, and hears at once of connections that were refused for want of one.
 */
import type { Socket } from 'node:net';
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import type { DescriptorsTurned, GatewayEvents } from '../events.js';
import { type Caller, type DescriptorRoom, type Descriptors, descriptorsFor } from './descriptors.js';

const LOOK_EVERY: Milliseconds = Seconds(1);
/** So long without a shortage, and it is over: at the limit, who leaves makes room for who waits. */
const CALM_AFTER: Milliseconds = Seconds(5);

/** What the gateway has open beside its locks: files of the store, threads, listeners. */
const OTHERS = 64;
/** What loading a package may take at once, generously. */
const LOADING = 512;

export interface DescriptorWatchParts {
  readonly descriptors: Descriptors;
  readonly events: GatewayEvents;
  /** Goes as the wall's does. */
  readonly clock: Clock;
  /** Stamps the events. */
  readonly now: () => number;
}

export class DescriptorWatch {
  readonly descriptors: Descriptors;
  readonly #parts: DescriptorWatchParts;
  #timer: Timer | undefined;
  /** When they were short last; undefined while they are not. */
  #shortAtMs: number | undefined;

  /** Looks from now on. */
  constructor(parts: DescriptorWatchParts) {
    this.#parts = parts;
    this.descriptors = parts.descriptors;
    if (this.descriptors.limit !== undefined) this.#arm();
  }

  /** What there is for a connection that has just come. A shortage is noted. */
  roomFor(caller: Caller, socket: Socket): DescriptorRoom {
    const room = this.descriptors.roomFor(caller, socket);
    if (room !== 'enough') this.#short();
    return room;
  }

  /**
   * To be called at the start: warns where so many locks can't all be connected at once.
   *
   * @returns whether descriptors may run short when they come
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

  /** Looks no more. */
  stop(): void {
    this.#timer?.cancel();
  }

  #arm(): void {
    this.#timer = this.#parts.clock.after(LOOK_EVERY, () => {
      this.#look();
      this.#arm();
    });
  }

  #look(): void {
    if (this.descriptors.isShort) {
      this.#short();
      return;
    }
    if (this.#shortAtMs === undefined || this.#parts.clock.now() - this.#shortAtMs < CALM_AFTER) return;
    this.#shortAtMs = undefined;
    this.#report('enough', 'there are free descriptors again: locks are let in as before');
  }

  #short(): void {
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
