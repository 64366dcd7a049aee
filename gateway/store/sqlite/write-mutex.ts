/**
 * One writer at a time. SQLite has one write transaction, and a Kysely transaction lasts over several turns of the
 * event loop, so whoever writes waits here for the one before.
 *
 * The log's writer does one thing after the other by itself, so what is meant for it need not wait for what it was
 * given before: it gets the next commit while it still waits for the disk.
 */
export class WriteMutex {
  /** The end of what is done alone. */
  #exclusive: Promise<unknown> = Promise.resolve();
  /** The end of everything. */
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` after everything that came before it has ended, well or badly. */
  runExclusive<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => undefined);
    this.#exclusive = this.#last;
    return result;
  }

  /** The same for work of the log's writer: it waits for none of its own. */
  runLog<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#exclusive.then(work);
    const before = this.#last;
    this.#last = result.then(
      () => before,
      () => before,
    );
    return result;
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
