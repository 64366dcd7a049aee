/** Gathers what is to be done while something is being done, so that it is done together next. */

/** Items that are done in the same job. */
interface Waiting<Item> {
  readonly items: readonly Item[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Runs jobs over items one at a time: the items that come during a job are those of the next jobs. */
export class Gathered<Item> {
  readonly #run: (items: readonly Item[]) => Promise<void>;
  readonly #limit: number;
  readonly #waiting: Waiting<Item>[] = [];
  #isRunning = false;

  /**
   * @param run does one job; if it rejects, so does every call of {@link add} whose items the job had
   * @param limit how many items one job has, unless a single call added more: those who came first needn't wait for all
   */
  constructor(run: (items: readonly Item[]) => Promise<void>, limit = Number.POSITIVE_INFINITY) {
    this.#run = run;
    this.#limit = limit;
  }

  /** Resolves when the items' job has ended. @throws what the job throws */
  add(items: readonly Item[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ items, resolve, reject });
      void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    // What the same turn of the event loop adds is done together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const job = this.#takeNext();
      try {
        await this.#run(job.flatMap(({ items }) => items));
        for (const { resolve } of job) resolve();
      } catch (error) {
        for (const { reject } of job) reject(error);
      }
    }
    this.#isRunning = false;
  }

  #takeNext(): Waiting<Item>[] {
    let [calls, count] = [0, 0];
    for (const { items } of this.#waiting) {
      count += items.length;
      if (calls > 0 && count > this.#limit) break;
      calls += 1;
    }
    return this.#waiting.splice(0, calls);
  }
}
