/**
 * The locks of a virtual run in which no lock affects another: each has a clock and a link of its own, and is simulated
 * by itself as far as the run advances, before the next one.
 *
 * A lock is made when it is its turn, and forgotten at the end of the run. So in a run that advances to its end at once
 * only one lock is in memory at a time. It stays in the processor's cache, and the garbage collector need not copy it:
 * with 5,000 locks, a lock's day takes a fifth less time than if all are made first.
 */
import { MemoryGateway } from '../link/memory-link.js';
import type { Lock } from '../lock/lock.js';
import { OwnClock } from '../own-clock.js';
import type { OwnSurroundings } from './fleet.js';
import { SinkListener, type VirtualSink } from './virtual-sink.js';

/** Which locks, how they are made, and where their events go. Times are ms since the epoch. */
export interface LoneLocksOptions {
  /** The indexes of the locks in their fleet: from `first` up to `end`, exclusive. */
  readonly first: number;
  readonly end: number;
  readonly make: (index: number, own: OwnSurroundings) => Lock;
  readonly startMs: number;
  readonly endMs: number;
  readonly sink: VirtualSink | undefined;
  /** Called before each timer that runs. */
  readonly onFiring: ((lock: number, dueMs: number) => void) | undefined;
}

/** A lock and its clock. */
interface LoneLock {
  readonly lock: Lock;
  readonly clock: OwnClock;
}

/** See the top of this file. */
export class LoneLocks {
  readonly #options: LoneLocksOptions;
  readonly #gateway = new MemoryGateway();
  /** The locks that have been made and are still needed, by index from `first` on. */
  readonly #made: (LoneLock | undefined)[];
  /** Whether the caller has asked for the locks, so that they are kept. */
  #areKept = false;
  #hasForgotten = false;
  #hasStarted = false;
  /** How many locks `finishNext` has simulated. */
  #finished = 0;

  constructor(options: LoneLocksOptions) {
    this.#options = options;
    this.#made = new Array<LoneLock | undefined>(options.end - options.first).fill(undefined);
  }

  /** All locks. Once they have been asked for they are kept, so a caller that needs them must ask before the end. */
  get all(): readonly Lock[] {
    if (this.#hasForgotten) throw new Error('the locks of this run were not kept: ask for them before its end');
    this.#areKept = true;
    return this.#made.map((_, place) => this.#lockAt(place).lock);
  }

  /** Advances one lock after another to `untilMs`, which must not be after the end. The first call starts the locks. */
  run(untilMs: number): void {
    if (this.#hasForgotten) return;
    const isStart = !this.#hasStarted;
    this.#hasStarted = true;
    const isForgotten = untilMs >= this.#options.endMs && !this.#areKept;
    for (let place = 0; place < this.#made.length; place++) {
      const { lock, clock } = this.#lockAt(place);
      if (isStart) this.#start(place, lock, clock);
      clock.run(untilMs);
      if (isForgotten) this.#made[place] = undefined;
    }
    this.#hasForgotten = isForgotten;
  }

  /** Simulates the next locks, each to the end. Instead of `run`. Returns how many have been simulated so far. */
  finishNext(count: number): number {
    const end = Math.min(this.#finished + count, this.#made.length);
    this.#hasForgotten = true;
    for (; this.#finished < end; this.#finished++) {
      const { lock, clock } = this.#make(this.#options.first + this.#finished);
      this.#start(this.#finished, lock, clock);
      clock.run(this.#options.endMs);
    }
    return this.#finished;
  }

  /** Starts a lock as a fleet with one clock does: the first at once, the others by a timer that is due at once. */
  #start(place: number, lock: Lock, clock: OwnClock): void {
    if (this.#options.first + place === 0) lock.start();
    else clock.after(0, () => lock.start());
  }

  #lockAt(place: number): LoneLock {
    const made = this.#made[place] ?? this.#make(this.#options.first + place);
    this.#made[place] = made;
    return made;
  }

  #make(index: number): LoneLock {
    const { make, startMs, sink, onFiring } = this.#options;
    const clock = new OwnClock(startMs, onFiring && ((dueMs) => onFiring(index, dueMs)));
    const listener = new SinkListener(sink, clock);
    const openLink: OwnSurroundings['openLink'] = (mac, events) =>
      this.#gateway.openApart(mac, events, listener, clock);
    return { lock: make(index, { clock, openLink }), clock };
  }
}
