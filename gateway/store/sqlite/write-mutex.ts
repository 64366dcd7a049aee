/**
 * Serialises writes to the store. SQLite allows one write transaction at a time, and a Kysely transaction spans several
 * turns of the event loop, so a write waits here until the writes before it have finished.
 *
 * There are two kinds of work:
 *
 * - Exclusive work is a transaction on the store's own writing connection. It runs alone, in the order of the calls.
 * - The log's work is handed to the log's writer, which does it in order. Any number of these calls may run at once, so
 *   that the log's writer has the next commit while it still waits for the disk.
 *
 * The two kinds take turns. While exclusive work runs or waits, the log's new work waits as well; whenever exclusive
 * work ends, all of the log's work that waits then starts, and the next exclusive work runs after it. So pings wait for
 * one exclusive transaction at most, however many are queued, and neither kind can starve the other.
 *
 * The log's writer gathers some writes for up to 20 ms, to share a commit of pings. While exclusive work waits for such
 * a write, no commit of pings can come: `onHurry` tells the writer to gather nothing.
 *
 * Work never overtakes earlier work of its own kind, and exclusive work never overtakes the log's. But the log's work
 * may overtake exclusive work that waits: a caller whose uplinks depend on an exclusive write must await it first.
 */
export class WriteMutex {
  /** Whether exclusive work runs. */
  #isExclusive = false;
  /** How many calls of the log's work run. It is 0 while exclusive work runs. */
  #logRunning = 0;
  /** Starts the exclusive work that waits, oldest first. */
  readonly #waitingExclusive: (() => void)[] = [];
  /** Starts the log's work that waits. It is empty unless exclusive work runs or waits. */
  readonly #waitingLog: (() => void)[] = [];
  /** Resolves the calls of `idle` that wait. */
  readonly #waitingIdle: (() => void)[] = [];
  readonly #onHurry: (isHurried: boolean) => void;
  #isHurried = false;

  /** @param onHurry called with true when exclusive work waits for the log's work, and with false once it does not */
  constructor(onHurry: (isHurried: boolean) => void = () => undefined) {
    this.#onHurry = onHurry;
  }

  /** Runs `work` alone, after the exclusive work and the log's work that was asked for before it. */
  async runExclusive<T>(work: () => T | Promise<T>): Promise<T> {
    await new Promise<void>((start) => {
      this.#waitingExclusive.push(start);
      this.#startExclusive();
      this.#hurry();
    });
    try {
      return await work();
    } finally {
      this.#isExclusive = false;
      this.#startLog();
      this.#startExclusive();
      this.#hurry();
    }
  }

  /** Runs work of the log's writer, after one exclusive transaction at most. */
  async runLog<T>(work: () => Promise<T>): Promise<T> {
    await new Promise<void>((start) => {
      this.#waitingLog.push(start);
      if (!this.#isExclusive && this.#waitingExclusive.length === 0) this.#startLog();
    });
    try {
      return await work();
    } finally {
      this.#logRunning--;
      this.#startExclusive();
      this.#hurry();
    }
  }

  /** Resolves when no work runs or waits. */
  async idle(): Promise<void> {
    while (this.#isExclusive || this.#logRunning > 0)
      await new Promise<void>((resolve) => this.#waitingIdle.push(resolve));
  }

  /** Says whether exclusive work waits for the log's work, if that has changed. */
  #hurry(): void {
    const isHurried = this.#waitingExclusive.length > 0 && this.#logRunning > 0;
    if (isHurried === this.#isHurried) return;
    this.#isHurried = isHurried;
    this.#onHurry(isHurried);
  }

  /** Starts all of the log's work that waits. Exclusive work must not run. */
  #startLog(): void {
    this.#logRunning += this.#waitingLog.length;
    for (const start of this.#waitingLog.splice(0)) start();
  }

  /** Starts the exclusive work that waited longest, if nothing runs. */
  #startExclusive(): void {
    if (this.#isExclusive || this.#logRunning > 0) return;
    const start = this.#waitingExclusive.shift();
    if (start === undefined) {
      for (const resolve of this.#waitingIdle.splice(0)) resolve();
      return;
    }
    this.#isExclusive = true;
    start();
  }
}
