/**
 * Manages the deadlines of very many connections with one timer. Time is divided into slots of equal length, numbered
 * from the epoch; an item is in the slot of its deadline, and the timer steps from slot to slot. Most deadlines are
 * cancelled or moved before they are due; the cost of setting, moving or cancelling one does not depend on their
 * number.
 */
import type { Clock, Milliseconds, Timer } from '../../proto/clock.js';

/** The length of a slot. A deadline fires at most two slots late unless the event loop is, and never early. */
const SLOT_DURATION: Milliseconds = 250;

/** An item with a deadline. `slot` is for the wheel: the slot that the item is in, 0 for none. */
export interface TimerWheelItem {
  slot: number;
}

export class TimerWheel<T extends TimerWheelItem> {
  readonly #clock: Clock;
  readonly #onDue: (item: T) => void;
  readonly #onTurn: () => boolean;
  readonly #slots = new Map<number, Set<T>>();
  #timer: Timer | undefined;
  /** The last slot whose items have fired. */
  #lastSlot = 0;
  /** When the next step is due. It may run late. */
  #stepDueMs = 0;
  /** The last step was late and fired nothing. */
  #hasDeferred = false;

  /**
   * `onDue` is called for each item whose deadline has passed. `onTurn` is called at each step, and returns whether the
   * wheel keeps turning even if it is empty.
   */
  constructor(clock: Clock, onDue: (item: T) => void, onTurn: () => boolean) {
    this.#clock = clock;
    this.#onDue = onDue;
    this.#onTurn = onTurn;
  }

  /** Sets or moves an item's deadline, `delay` from now. */
  set(item: T, delay: Milliseconds): void {
    this.cancel(item);
    // A slot that has fired is not visited again.
    const slot = Math.max(Math.ceil((this.#clock.now() + delay) / SLOT_DURATION), this.#lastSlot + 1);
    const items = this.#slots.get(slot);
    if (items === undefined) this.#slots.set(slot, new Set([item]));
    else items.add(item);
    item.slot = slot;
    this.keepTurning();
  }

  /** Cancels an item's deadline, if it has one. */
  cancel(item: T): void {
    if (item.slot === 0) return;
    const items = this.#slots.get(item.slot);
    items?.delete(item);
    if (items?.size === 0) this.#slots.delete(item.slot);
    item.slot = 0;
  }

  /** Makes sure that the wheel is turning. */
  keepTurning(): void {
    if (this.#timer !== undefined) return;
    this.#stepDueMs = this.#clock.now() + SLOT_DURATION;
    this.#timer = this.#clock.after(SLOT_DURATION, () => this.#step());
  }

  /** Stops the wheel and drops all deadlines. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#slots.clear();
  }

  #step(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.now();
    // If the step runs late, bytes that would meet a deadline may have arrived unread. They are read before the next
    // step. That one fires even if it is late too: a busy gateway must not put deadlines off for ever.
    this.#hasDeferred = !this.#hasDeferred && nowMs - this.#stepDueMs > SLOT_DURATION;
    if (this.#hasDeferred) return void this.keepTurning();
    const currentSlot = Math.floor(nowMs / SLOT_DURATION);
    // After a long pause, more slots have passed than there are non-empty ones, so only the non-empty ones are visited.
    if (currentSlot - this.#lastSlot > this.#slots.size) {
      for (const slot of [...this.#slots.keys()].sort((a, b) => a - b)) if (slot <= currentSlot) this.#fireSlot(slot);
    } else for (let slot = this.#lastSlot + 1; slot <= currentSlot; slot++) this.#fireSlot(slot);
    this.#lastSlot = Math.max(this.#lastSlot, currentSlot);
    if (this.#onTurn() || this.#slots.size > 0) this.keepTurning();
  }

  #fireSlot(slot: number): void {
    const items = this.#slots.get(slot);
    if (items === undefined) return;
    this.#slots.delete(slot);
    for (const item of items) {
      item.slot = 0;
      this.#onDue(item);
    }
  }
}
