/**
 * The newest items of a lock's list, such as its pings. The whole list is loaded once, and after that only its
 * beginning: reloading a thousand items for each new one would take the gateway's time from pings.
 */
import type { Page } from '../../api/http.js';

/** The maximum number of items. */
export const MAX_LOADED = 1000;
/** How many items are loaded again at least: an item may change a little while after it came. */
const MIN_RELOADED = 12;

interface ListTerms<Item> {
  /** Loads the first items of the list, newest first. */
  readonly load: (limit: number) => Promise<Page<Item>>;
  readonly idOf: (item: Item) => string | number;
  /** Whether an item may still change, such as a command that waits; by default none does. */
  readonly mayChange?: (item: Item) => boolean;
}

export class NewestItems<Item> {
  readonly #terms: ListTerms<Item>;
  #items: readonly Item[] = [];
  #hasMore = false;
  #isLoaded = false;
  /** How many items were new in the last load. */
  #came = 0;

  constructor(terms: ListTerms<Item>) {
    this.#terms = terms;
  }

  /** Newest first. */
  get items(): readonly Item[] {
    return this.#items;
  }

  /** Whether there are older items, which were not loaded. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** @throws ApiFailure */
  async loadAll(): Promise<void> {
    this.#take(await this.#terms.load(MAX_LOADED));
  }

  /** Loads what has come since; the whole list if that is the greater part of it. @throws ApiFailure */
  async loadNew(): Promise<void> {
    // Twice as many as came last, so that the newest known item is among them.
    const limit = MIN_RELOADED + 2 * this.#came;
    if (!this.#isLoaded || limit >= MAX_LOADED) return await this.loadAll();
    const page = await this.#terms.load(limit);
    if (page.next_cursor === null) this.#take(page);
    else if (!this.#join(page.data)) await this.loadAll();
  }

  #take({ data, next_cursor }: Page<Item>): void {
    this.#noteCame(data);
    this.#items = data;
    this.#hasMore = next_cursor !== null;
    this.#isLoaded = true;
  }

  /** Replaces the list's beginning. Returns false if that says too little of the items after it. */
  #join(beginning: readonly Item[]): boolean {
    const { idOf, mayChange = () => false } = this.#terms;
    const last = beginning.at(-1);
    const joint = last === undefined ? -1 : this.#items.findIndex((item) => idOf(item) === idOf(last));
    if (joint < 0) return false;
    const rest = this.#items.slice(joint + 1);
    if (rest.some(mayChange)) return false;
    this.#noteCame(beginning);
    const items = [...beginning, ...rest];
    this.#hasMore ||= items.length > MAX_LOADED;
    this.#items = items.slice(0, MAX_LOADED);
    return true;
  }

  #noteCame(beginning: readonly Item[]): void {
    const { idOf } = this.#terms;
    const [newest] = this.#items;
    const known = newest === undefined ? -1 : beginning.findIndex((item) => idOf(item) === idOf(newest));
    this.#came = known < 0 ? 0 : known;
  }
}
