/**
 * Deadlines of very many connections, most of which are called off or moved before they come: one timer turns for all,
 * and setting, moving or calling off one costs the same however many there are.
 */
import type { Clock, Milliseconds, Timer } from '../../proto/clock.js';

/** How far apart the turns are; a deadline is noticed at most two of them late, and never early. */
const WHEEL_GRAIN: Milliseconds = 250;

/** What has a deadline: it is noted in itself in which slot it stands, 0 for none. */
export interface WheelItem {
  slot: number;
}

export class TimerWheel<T extends WheelItem> {
  readonly #clock: Clock;
  readonly #onDue: (item: T) => void;
  readonly #onTurn: () => boolean;
  readonly #slots = new Map<number, Set<T>>();
  #timer: Timer | undefined;
  /** The last slot that was emptied. */
  #turned = 0;
  /** When the turn that waits is due; it may be late. */
  #turnDueMs = 0;
  #hasWaited = false;

  /**
   * `onDue` is told of each item whose time has come. `onTurn` is called at each turn, and says whether the wheel is to
   * go on turning where it holds nothing.
   */
  constructor(clock: Clock, onDue: (item: T) => void, onTurn: () => boolean) {
    this.#clock = clock;
    this.#onDue = onDue;
    this.#onTurn = onTurn;
  }

  /** Sets or moves an item's deadline, `delay` from now. */
  set(item: T, delay: Milliseconds): void {
    this.cancel(item);
    const slot = Math.max(Math.ceil((this.#clock.now() + delay) / WHEEL_GRAIN), this.#turned + 1);
    const items = this.#slots.get(slot);
    if (items === undefined) this.#slots.set(slot, new Set([item]));
    else items.add(item);
    item.slot = slot;
    this.turn();
  }

  /** Calls an item's deadline off; does nothing where it has none. */
  cancel(item: T): void {
    if (item.slot === 0) return;
    const items = this.#slots.get(item.slot);
    items?.delete(item);
    if (items?.size === 0) this.#slots.delete(item.slot);
    item.slot = 0;
  }

  /** Sees to it that the wheel turns. */
  turn(): void {
    if (this.#timer !== undefined) return;
    this.#turnDueMs = this.#clock.now() + WHEEL_GRAIN;
    this.#timer = this.#clock.after(WHEEL_GRAIN, () => this.#step());
  }

  /** Turns no more. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#slots.clear();
  }

  #step(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.now();
    // Where we were late ourselves, what is due may well have come and merely not been read yet: that is done first.
    this.#hasWaited = !this.#hasWaited && nowMs - this.#turnDueMs > WHEEL_GRAIN;
    if (this.#hasWaited) return void this.turn();
    const now = Math.floor(nowMs / WHEEL_GRAIN);
    // After it stood still there are more slots to go through than there are filled ones.
    if (now - this.#turned > this.#slots.size) {
      for (const slot of [...this.#slots.keys()].sort((a, b) => a - b)) if (slot <= now) this.#empty(slot);
    } else for (let slot = this.#turned + 1; slot <= now; slot++) this.#empty(slot);
    this.#turned = Math.max(this.#turned, now);
    if (this.#onTurn() || this.#slots.size > 0) this.turn();
  }

  #empty(slot: number): void {
    const items = this.#slots.get(slot);
    if (items === undefined) return;
    this.#slots.delete(slot);
    for (const item of items) {
      item.slot = 0;
      this.#onDue(item);
    }
  }
}
