/**
 * Deadlines of very many connections, most of which are cancelled or moved before they are due. One timer serves all of
 * them, and setting, moving or cancelling a deadline costs the same however many there are.
 */
import type { Clock, Milliseconds, Timer } from '../../proto/clock.js';

/** The length of a slot. A deadline fires at most two slots late, and never early. */
const SLOT_LENGTH: Milliseconds = 250;

/** An item with a deadline. It records the slot that it is in, 0 for none. */
export interface WheelItem {
  slot: number;
}

export class TimerWheel<T extends WheelItem> {
  readonly #clock: Clock;
  readonly #onDue: (item: T) => void;
  readonly #onTurn: () => boolean;
  readonly #slots = new Map<number, Set<T>>();
  #timer: Timer | undefined;
  /** The last slot whose items have fired. */
  #lastSlot = 0;
  /** When the next step is due; it may run late. */
  #stepDueMs = 0;
  #hasDeferred = false;

  /**
   * `onDue` is called for each item whose deadline has passed. `onTurn` is called at each step, and returns whether the
   * wheel is to keep turning even if it is empty.
   */
  constructor(clock: Clock, onDue: (item: T) => void, onTurn: () => boolean) {
    this.#clock = clock;
    this.#onDue = onDue;
    this.#onTurn = onTurn;
  }

  /** Sets or moves an item's deadline, `delay` from now. */
  set(item: T, delay: Milliseconds): void {
    this.cancel(item);
    const slot = Math.max(Math.ceil((this.#clock.now() + delay) / SLOT_LENGTH), this.#lastSlot + 1);
    const items = this.#slots.get(slot);
    if (items === undefined) this.#slots.set(slot, new Set([item]));
    else items.add(item);
    item.slot = slot;
    this.keepTurning();
  }

  /** Cancels an item's deadline; does nothing where it has none. */
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
    this.#stepDueMs = this.#clock.now() + SLOT_LENGTH;
    this.#timer = this.#clock.after(SLOT_LENGTH, () => this.#step());
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
    // Where we are late ourselves, what a deadline waits for may have arrived unread. So that is read first.
    this.#hasDeferred = !this.#hasDeferred && nowMs - this.#stepDueMs > SLOT_LENGTH;
    if (this.#hasDeferred) return void this.keepTurning();
    const now = Math.floor(nowMs / SLOT_LENGTH);
    // After a long standstill there are more slots to walk through than there are non-empty ones.
    if (now - this.#lastSlot > this.#slots.size) {
      for (const slot of [...this.#slots.keys()].sort((a, b) => a - b)) if (slot <= now) this.#fireSlot(slot);
    } else for (let slot = this.#lastSlot + 1; slot <= now; slot++) this.#fireSlot(slot);
    this.#lastSlot = Math.max(this.#lastSlot, now);
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
