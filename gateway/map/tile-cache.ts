/** Tiles in memory, the least recently used of which make room for new ones. */
import type { Clock } from '../../proto/clock.js';
import type { AgingTile } from './tile.js';

/** Some 1,500 tiles of 20 KB: several cities at the zooms that people look at. */
export const MAX_CACHE_BYTES = 32 * 1024 * 1024;
/** What an entry takes besides its tile, so that empty ones are limited too. */
const BYTES_PER_ENTRY = 512;

interface Entry {
  readonly answer: AgingTile;
  readonly endMs: number;
  readonly bytes: number;
}

export class TileCache {
  readonly #clock: Clock;
  readonly #maxBytes: number;
  /** The least recently used entry first. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(clock: Clock, maxBytes = MAX_CACHE_BYTES) {
    this.#clock = clock;
    this.#maxBytes = maxBytes;
  }

  /** A tile that is not too old, with the age that it has left; undefined if there is none. */
  find(name: string): AgingTile | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) return undefined;
    this.#remove(name, entry);
    const maxAge = entry.endMs - this.#clock.now();
    // A clock that was set back must not make a tile older than its server allowed.
    if (maxAge <= 0 || maxAge > entry.answer.maxAge) return undefined;
    this.#add(name, entry);
    return { ...entry.answer, maxAge };
  }

  /** Keeps a tile, and forgets others if there is no room. */
  keep(name: string, answer: AgingTile): void {
    const known = this.#entries.get(name);
    if (known !== undefined) this.#remove(name, known);
    const bytes = BYTES_PER_ENTRY + (answer.tile?.bytes.length ?? 0);
    if (bytes > this.#maxBytes) return;
    this.#add(name, { answer, endMs: this.#clock.now() + answer.maxAge, bytes });
    for (const [oldest, entry] of this.#entries) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#remove(oldest, entry);
    }
  }

  /** The bytes that the entries take. */
  get bytes(): number {
    return this.#bytes;
  }

  #add(name: string, entry: Entry): void {
    this.#entries.set(name, entry);
    this.#bytes += entry.bytes;
  }

  #remove(name: string, entry: Entry): void {
    this.#entries.delete(name);
    this.#bytes -= entry.bytes;
  }
}
