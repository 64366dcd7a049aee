/** Gathers what is to be done while something is being done, so that it is done together next. */

/** Runs jobs over items one at a time: the items that come during a job are those of the next job. */
export class Gathered<Item> {
  readonly #run: (items: readonly Item[]) => Promise<void>;
  #waiting: Item[] = [];
  /** The job of the items that wait; undefined if none do. */
  #next: Promise<void> | undefined;
  #running: Promise<unknown> = Promise.resolve();

  /** @param run does a job; if it fails, the callers of all its items are told */
  constructor(run: (items: readonly Item[]) => Promise<void>) {
    this.#run = run;
  }

  /** Resolves when the items' job has ended. @throws what the job throws */
  add(items: readonly Item[]): Promise<void> {
    this.#waiting.push(...items);
    if (this.#next !== undefined) return this.#next;
    const next = this.#running.then(() => {
      this.#next = undefined;
      return this.#run(this.#waiting.splice(0));
    });
    this.#next = next;
    this.#running = next.catch(() => undefined);
    return next;
  }
}
