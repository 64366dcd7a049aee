/**
 * One writer at a time. SQLite has one write transaction, and a Kysely transaction lasts over several turns of the
 * event loop, so each write waits here for the one before.
 *
 * The log's writer handles its work in order by itself. So work for it does not wait for earlier work of its own, and
 * it gets the next commit while it still waits for the disk.
 */
export class WriteMutex {
  /** Settles with the last exclusive work. */
  #exclusive: Promise<unknown> = Promise.resolve();
  /** Settles with all work. */
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` after everything before it has finished or failed. */
  runExclusive<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => undefined);
    this.#exclusive = this.#last;
    return result;
  }

  /** The same for work of the log's writer, which waits only for exclusive work. */
  runLog<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#exclusive.then(work);
    const before = this.#last;
    this.#last = result.then(
      () => before,
      () => before,
    );
    return result;
  }

  /** Resolves when all work is done. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
