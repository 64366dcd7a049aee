/**
 * Names (boot, sequence) of uplinks of one credential with their ids, in the order of names. Most come in that order.
 */
export class NameList {
  readonly #boots: number[] = [];
  readonly #sequences: number[] = [];
  readonly #ids: number[] = [];

  get length(): number {
    return this.#ids.length;
  }

  /** The highest name; undefined where there is none. */
  get last(): { boot: number; sequence: number } | undefined {
    const { length } = this.#ids;
    return length === 0 ? undefined : { boot: this.bootAt(length - 1), sequence: this.sequenceAt(length - 1) };
  }

  bootAt(index: number): number {
    return this.#boots[index] as number;
  }

  sequenceAt(index: number): number {
    return this.#sequences[index] as number;
  }

  idAt(index: number): number {
    return this.#ids[index] as number;
  }

  add(boot: number, sequence: number, id: number): void {
    const { length } = this.#ids;
    if (length === 0 || this.#compare(length - 1, boot, sequence) < 0) {
      this.#boots.push(boot);
      this.#sequences.push(sequence);
      this.#ids.push(id);
      return;
    }
    const at = this.#firstFrom(boot, sequence);
    this.#boots.splice(at, 0, boot);
    this.#sequences.splice(at, 0, sequence);
    this.#ids.splice(at, 0, id);
  }

  /** The ids under one name: more than one where contents contradict each other. */
  find(boot: number, sequence: number): number[] {
    const found: number[] = [];
    const { length } = this.#ids;
    if (length === 0 || this.#compare(length - 1, boot, sequence) < 0) return found;
    for (let at = this.#firstFrom(boot, sequence); at < length && this.#compare(at, boot, sequence) === 0; at++)
      found.push(this.idAt(at));
    return found;
  }

  /** Takes out those with this id or a later one. */
  forgetFrom(id: number): void {
    for (let at = this.#ids.length - 1; at >= 0; at--) {
      if (this.idAt(at) < id) continue;
      this.#boots.splice(at, 1);
      this.#sequences.splice(at, 1);
      this.#ids.splice(at, 1);
    }
  }

  #compare(at: number, boot: number, sequence: number): number {
    return this.bootAt(at) - boot || this.sequenceAt(at) - sequence;
  }

  /** The index of the first name that is this one or comes after it. */
  #firstFrom(boot: number, sequence: number): number {
    let [low, high] = [0, this.#ids.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(middle, boot, sequence) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
