/** Looks for a text in the chunks of a stream, which may be split anywhere. Does no I/O. */
export class MarkerSearch {
  readonly #marker: Buffer;
  /** The end of the chunks so far, shorter than the marker. */
  #end = Buffer.alloc(0);
  #isFound = false;

  /** @param marker at least one character */
  constructor(marker: string) {
    this.#marker = Buffer.from(marker);
  }

  /** Takes the next chunk. Returns whether the stream has had the marker by now. */
  take(chunk: Buffer): boolean {
    if (this.#isFound) return true;
    const text = Buffer.concat([this.#end, chunk]);
    this.#isFound = text.includes(this.#marker);
    this.#end = text.subarray(Math.max(0, text.length - this.#marker.length + 1));
    return this.#isFound;
  }
}
