/** Sorts a long list in slices, so that other work runs in between. Stable. */
import type { ReadTurns } from './read-turns.js';

/** Items that are sorted or merged in one turn: some 2 ms. */
const ITEMS_PER_TURN = 2_000;

/** Returns the items in order. */
export async function sortInTurns<T>(
  items: readonly T[],
  compare: (one: T, other: T) => number,
  turns: ReadTurns,
  signal?: AbortSignal,
): Promise<T[]> {
  let runs: T[][] = [];
  for (let from = 0; from < items.length; from += ITEMS_PER_TURN) {
    await turns.next(signal);
    runs.push(items.slice(from, from + ITEMS_PER_TURN).sort(compare));
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let at = 0; at < runs.length; at += 2) {
      const [one = [], other] = [runs[at], runs[at + 1]];
      merged.push(other === undefined ? one : await mergeRuns(one, other, compare, () => turns.next(signal)));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

async function mergeRuns<T>(
  one: readonly T[],
  other: readonly T[],
  compare: (one: T, other: T) => number,
  nextTurn: () => Promise<void>,
): Promise<T[]> {
  const merged: T[] = [];
  let [at, otherAt] = [0, 0];
  while (at < one.length || otherAt < other.length) {
    if (merged.length % ITEMS_PER_TURN === 0) await nextTurn();
    const takesOther = at >= one.length || (otherAt < other.length && compare(other[otherAt] as T, one[at] as T) < 0);
    merged.push((takesOther ? other[otherAt++] : one[at++]) as T);
  }
  return merged;
}
