/**
 * Waits for real processes and sockets without sleeping: code that changes something rings the bell, and waiting code
 * then checks its condition again. Every wait has a deadline, and its error names what it waited for.
 */

interface Waiting {
  readonly holds: () => boolean;
  readonly done: () => void;
}

export class Bell {
  readonly #waiting = new Set<Waiting>();

  /** Must be called when something changed: resolves the waits whose condition is now true. */
  ring(): void {
    for (const waiting of this.#waiting) {
      if (!waiting.holds()) continue;
      this.#waiting.delete(waiting);
      waiting.done();
    }
  }

  /** Resolves when `holds` returns true. @throws Error with `what` if it does not within `seconds` */
  async until(holds: () => boolean, seconds: number, what: () => string): Promise<void> {
    if (holds()) return;
    let waiting: Waiting | undefined;
    const happened = new Promise<void>((done) => {
      waiting = { holds, done };
      this.#waiting.add(waiting);
    });
    await within(seconds, what, happened).finally(() => waiting && this.#waiting.delete(waiting));
  }

  /** Resolves with true when `holds` returns true, or with false when `progress` has not changed for `seconds`. */
  async untilOrStill(holds: () => boolean, progress: () => number, seconds: number): Promise<boolean> {
    for (;;) {
      const before = progress();
      const more = await this.until(
        () => holds() || progress() !== before,
        seconds,
        () => '',
      ).then(
        () => true,
        () => false,
      );
      if (holds()) return true;
      if (!more) return false;
    }
  }
}

/** The promise's value. @throws Error with `what` if it is not settled within `seconds` */
export async function within<T>(seconds: number, what: () => string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${seconds} s: ${what()}`)), seconds * 1000);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Resolves some milliseconds later, for faults at arbitrary moments. Tests must not rely on the elapsed time. */
export function oddMoment(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
