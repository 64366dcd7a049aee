/**
 * Delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002): removes as many
 * parts of a list as possible while a property holds. Pure: the caller says what the property is.
 */

/** Whether a list of parts still has the property. It must hold for the list that the search starts with. */
export type Property<Part> = (parts: readonly Part[]) => boolean;

/** Lists up to this length are also tested without each pair of parts, such as a connect and its disconnect. */
const MAX_PARTS_FOR_PAIRS = 40;

/**
 * Removes chunks of half the list, then of a quarter, down to single parts, until no single part can be removed. Yields
 * after each test of the property, so that the caller can show progress.
 */
export function* removeChunks<Part>(
  parts: readonly Part[],
  holds: Property<Part>,
): Generator<void, readonly Part[], void> {
  let remaining = parts;
  for (let size = Math.ceil(remaining.length / 2); size >= 1; ) {
    const before = remaining.length;
    for (let start = 0; start < remaining.length && remaining.length > 1; ) {
      const without = [...remaining.slice(0, start), ...remaining.slice(start + size)];
      yield;
      if (without.length > 0 && holds(without)) remaining = without;
      else start += size;
    }
    // Removing a part may make others removable, so the pass with single parts is repeated.
    if (size > 1) size = Math.ceil(size / 2);
    else if (remaining.length === before) break;
  }
  return remaining;
}

/** Removes pairs of parts that can be removed only together. Does nothing to a list of over 40 parts. */
export function* removePairs<Part>(
  parts: readonly Part[],
  holds: Property<Part>,
): Generator<void, readonly Part[], void> {
  let remaining = parts;
  if (remaining.length > MAX_PARTS_FOR_PAIRS) return remaining;
  for (let first = 0; first < remaining.length; first++) {
    for (let second = first + 1; second < remaining.length && remaining.length > 2; ) {
      const without = remaining.toSpliced(second, 1).toSpliced(first, 1);
      yield;
      if (holds(without)) {
        remaining = without;
        second = first + 1;
      } else second += 1;
    }
  }
  return remaining;
}

/** Splits a list into groups of neighbours with the same key, as larger parts to remove first. */
export function groupNeighbours<Part>(parts: readonly Part[], keyOf: (part: Part) => number): Part[][] {
  const groups: Part[][] = [];
  let lastKey = Number.NaN;
  for (const part of parts) {
    const key = keyOf(part);
    if (key === lastKey) groups.at(-1)?.push(part);
    else groups.push([part]);
    lastKey = key;
  }
  return groups;
}
