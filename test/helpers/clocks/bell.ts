/**
 * Waiting for real processes and sockets without sleeping: somebody who notes something rings, and who waits looks
 * again. Every wait has a deadline, and says what it waited for.
 */

interface Waiting {
  readonly holds: () => boolean;
  readonly done: () => void;
}

export class Bell {
  readonly #waiting = new Set<Waiting>();

  /** Something changed: those whose condition holds now go on. */
  ring(): void {
    for (const waiting of this.#waiting) {
      if (!waiting.holds()) continue;
      this.#waiting.delete(waiting);
      waiting.done();
    }
  }

  /** Resolves as soon as `holds`. @throws Error with `what` when it doesn't within `seconds` */
  async until(holds: () => boolean, seconds: number, what: () => string): Promise<void> {
    if (holds()) return;
    let waiting: Waiting | undefined;
    const happened = new Promise<void>((done) => {
      waiting = { holds, done };
      this.#waiting.add(waiting);
    });
    await within(seconds, what, happened).finally(() => waiting && this.#waiting.delete(waiting));
  }

  /** Resolves when `holds`, or when `progress` has stood still for `seconds`; says which. */
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

/** The promise's value. @throws Error with `what` when it isn't there within `seconds` */
export async function within<T>(seconds: number, what: () => string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${seconds} s: ${what()}`)), seconds * 1000);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Some milliseconds later, for faults at odd moments. Nothing may be concluded from the time that passed. */
export function oddMoment(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
