/**
 * The hints (../../../log/uplink-hint.ts) of consecutive uplinks by id, until they are written into the index by lock.
 * A hint is made when its uplink is appended, whose bytes are at hand then: later the row of each would have to be read
 * from a page of its own. Compact, like number-rows.ts.
 */

/** The initial capacity, in uplinks. */
const INITIAL_LENGTH = 1024;
/** In the list, since no hint is negative: an uplink without a hint, and one whose hint was not noted. */
const [NO_HINT, NOT_NOTED] = [-1, -2];

export class HintList {
  #hints = new Int32Array(0);
  #firstId = 0;

  /** Notes the hint of an uplink; null if it has none. The first call must be for the lowest id. */
  set(id: number, hint: number | null): void {
    if (this.#hints.length === 0) {
      this.#firstId = id;
      this.#hints = new Int32Array(INITIAL_LENGTH).fill(NOT_NOTED);
    }
    const index = id - this.#firstId;
    while (index >= this.#hints.length) {
      const larger = new Int32Array(2 * this.#hints.length).fill(NOT_NOTED);
      larger.set(this.#hints);
      this.#hints = larger;
    }
    this.#hints[index] = hint ?? NO_HINT;
  }

  /** The noted hint; null if the uplink has none, and undefined if it was not noted. */
  get(id: number): number | null | undefined {
    const hint = this.#hints[id - this.#firstId] ?? NOT_NOTED;
    if (hint === NOT_NOTED) return undefined;
    return hint === NO_HINT ? null : hint;
  }
}
