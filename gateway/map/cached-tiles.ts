/**
 * Tiles of a source through a cache. Equal requests share one fetch; few fetches run at a time, and further ones wait
 * in a bounded queue. A fetch that nobody waits for any more, because the reader has moved on, is not begun.
 *
 * A fetch is *waiting* from the first request for its tile until a place is free, then *running* until the source has
 * answered. Requests join it in both states. When the last of them hangs up, a waiting fetch ends; a running one goes
 * on, since its tile will most likely be asked for again.
 */
import { LockgateError } from '../../proto/errors.js';
import { type AgingTile, type TileSource, tileUnavailable } from './tile.js';
import type { TileCache } from './tile-cache.js';
import { type TilePlace, tileName } from './tile-place.js';

/** Fetches that run at a time. Public tile servers ask for few. */
export const MAX_RUNNING_FETCHES = 6;
/** Tiles of some ten large screens. */
export const MAX_WAITING_FETCHES = 512;

interface Fetch {
  readonly place: TilePlace;
  readonly answer: Promise<AgingTile>;
  readonly settle: (answer: Promise<AgingTile>) => void;
  /** How many requests wait for the answer. */
  requests: number;
}

export class CachedTiles {
  readonly #source: TileSource;
  readonly #cache: TileCache;
  /** By the tile's name. */
  readonly #running = new Map<string, Fetch>();
  /** By the tile's name, in the order in which they begin. */
  readonly #waiting = new Map<string, Fetch>();
  readonly #stop = new AbortController();
  readonly #onFailure: (why: string) => void;

  /** @param onFailure called with a sentence for each tile that the source could not give */
  constructor(source: TileSource, cache: TileCache, onFailure: (why: string) => void) {
    this.#source = source;
    this.#cache = cache;
    this.#onFailure = onFailure;
  }

  /**
   * A tile from the cache, or else from the source.
   *
   * @param signal aborted when the client has hung up; then the answer does not matter
   * @throws LockgateError `tile-unavailable`, `busy`
   */
  async get(place: TilePlace, signal: AbortSignal): Promise<AgingTile> {
    const name = tileName(place);
    const cached = this.#cache.find(name);
    if (cached !== undefined) return cached;
    const fetch = this.#running.get(name) ?? this.#waiting.get(name) ?? this.#begin(name, place);
    fetch.requests += 1;
    const leave = (): void => this.#leave(name, fetch);
    signal.addEventListener('abort', leave, { once: true });
    return await fetch.answer.finally(() => signal.removeEventListener('abort', leave));
  }

  /** Ends what is running, and refuses what waits. */
  async close(): Promise<void> {
    this.#stop.abort();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { settle } of waiting) settle(Promise.reject(stopped()));
    await this.#source.close();
  }

  /** @throws LockgateError `busy` */
  #begin(name: string, place: TilePlace): Fetch {
    if (this.#stop.signal.aborted) throw stopped();
    const isFull = this.#running.size >= MAX_RUNNING_FETCHES;
    if (isFull && this.#waiting.size >= MAX_WAITING_FETCHES)
      throw new LockgateError('busy', 'too many tiles are being fetched: try again in a moment');
    let settle: Fetch['settle'] = () => undefined;
    const answer = new Promise<AgingTile>((resolve) => {
      settle = resolve;
    });
    // Whoever still waits gets the failure; if nobody does, it is nobody's.
    answer.catch(() => undefined);
    const fetch: Fetch = { place, answer, settle, requests: 0 };
    if (isFull) this.#waiting.set(name, fetch);
    else this.#run(name, fetch);
    return fetch;
  }

  #run(name: string, fetch: Fetch): void {
    this.#running.set(name, fetch);
    const answer = this.#source.get(fetch.place, this.#stop.signal).then(
      (found) => {
        this.#cache.keep(name, found);
        return found;
      },
      (error: Error) => {
        if (!this.#stop.signal.aborted) this.#onFailure(error.message);
        throw error;
      },
    );
    fetch.settle(
      answer.finally(() => {
        this.#running.delete(name);
        this.#runNext();
      }),
    );
  }

  #runNext(): void {
    const [next] = this.#waiting;
    if (next === undefined || this.#running.size >= MAX_RUNNING_FETCHES) return;
    this.#waiting.delete(next[0]);
    this.#run(...next);
  }

  #leave(name: string, fetch: Fetch): void {
    fetch.requests -= 1;
    if (fetch.requests > 0 || this.#waiting.get(name) !== fetch) return;
    this.#waiting.delete(name);
    fetch.settle(Promise.reject(tileUnavailable('nobody waits for this tile any more')));
  }
}

function stopped(): LockgateError {
  return new LockgateError('stopping', 'the gateway is stopping');
}
