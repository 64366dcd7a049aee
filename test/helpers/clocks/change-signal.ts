/**
 * Waits for real processes and sockets without sleeping: code that changes something calls `notify`, and each waiting
 * test then checks its condition again. Every wait has a deadline, and its error names what the test waited for.
 */

/** A wait: its condition, and what ends it. */
interface Waiter {
  readonly holds: () => boolean;
  readonly resolve: () => void;
}

/** A signal that something has changed. */
export class ChangeSignal {
  readonly #waiters = new Set<Waiter>();

  /** Must be called when something changed: resolves the waits whose condition is now true. */
  notify(): void {
    for (const waiter of this.#waiters) {
      if (!waiter.holds()) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }

  /** Resolves when `holds` returns true. @throws Error with `what` if it does not within `seconds` */
  async waitUntil(holds: () => boolean, seconds: number, what: () => string): Promise<void> {
    if (holds()) return;
    let waiter: Waiter | undefined;
    const conditionMet = new Promise<void>((resolve) => {
      waiter = { holds, resolve };
      this.#waiters.add(waiter);
    });
    await within(seconds, what, conditionMet).finally(() => waiter && this.#waiters.delete(waiter));
  }

  /** Resolves with true when `holds` returns true, or with false when `progress` has not changed for `seconds`. */
  async waitUntilOrStalled(holds: () => boolean, progress: () => number, seconds: number): Promise<boolean> {
    for (;;) {
      const progressBefore = progress();
      const hasProgressed = await this.waitUntil(
        () => holds() || progress() !== progressBefore,
        seconds,
        () => '',
      ).then(
        () => true,
        () => false,
      );
      if (holds()) return true;
      if (!hasProgressed) return false;
    }
  }
}

/** The promise's value. @throws Error with `what` if it is not settled within `seconds` */
export async function within<T>(seconds: number, what: () => string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${seconds} s: ${what()}`)), seconds * 1000);
  });
  return await Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}

/** Waits in real time, for faults at arbitrary moments. What a test asserts must not depend on the elapsed time. */
export function realDelay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
