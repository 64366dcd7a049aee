/**
 * One writer at a time. SQLite has one write transaction, and a Kysely transaction lasts over several turns of the
 * event loop, so whoever writes waits here for the one before.
 */
export class Lane {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` after everything that came before it has ended, well or badly. */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
