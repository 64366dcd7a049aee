/**
 * Serialises writes to the store. SQLite allows one write transaction at a time, and a Kysely transaction spans several
 * turns of the event loop, so each write waits here for the write before it.
 *
 * The log's writer already does its work in order. So work for the log's writer does not wait here for earlier work of
 * the same kind: the log's writer gets the next commit while it still waits for the disk.
 */
export class WriteMutex {
  /** Settles when the last exclusive work is done. */
  #exclusive: Promise<unknown> = Promise.resolve();
  /** Settles when all work is done. */
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` after all earlier work has finished or failed. */
  runExclusive<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => undefined);
    this.#exclusive = this.#last;
    return result;
  }

  /** Runs work of the log's writer, which waits only for earlier exclusive work. */
  runLog<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#exclusive.then(work);
    // The work may end before earlier work of the log's writer, so `#last` waits for both.
    const earlier = this.#last;
    this.#last = result.then(
      () => earlier,
      () => earlier,
    );
    return result;
  }

  /** Resolves when all work is done. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
