/**
 * Sorts a long list in slices, so that other work runs in between: sorted slices ("runs") are merged in pairs. Stable.
 */
import type { ReadTurns } from './read-turns.js';

/** Number of items that are sorted or merged in one turn, which takes some 2 ms. */
const ITEMS_PER_TURN = 2_000;

/** Returns the items in order. Rejects with the signal's reason if the signal is aborted. */
export async function sortInTurns<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
  turns: ReadTurns,
  signal?: AbortSignal,
): Promise<T[]> {
  let runs: T[][] = [];
  for (let start = 0; start < items.length; start += ITEMS_PER_TURN) {
    await turns.next(signal);
    runs.push(items.slice(start, start + ITEMS_PER_TURN).sort(compare));
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let index = 0; index < runs.length; index += 2) {
      const [left = [], right] = [runs[index], runs[index + 1]];
      merged.push(right === undefined ? left : await mergeRuns(left, right, compare, () => turns.next(signal)));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

async function mergeRuns<T>(
  left: readonly T[],
  right: readonly T[],
  compare: (a: T, b: T) => number,
  nextTurn: () => Promise<void>,
): Promise<T[]> {
  const merged: T[] = [];
  let [leftIndex, rightIndex] = [0, 0];
  while (leftIndex < left.length || rightIndex < right.length) {
    if (merged.length % ITEMS_PER_TURN === 0) await nextTurn();
    const isRightNext =
      leftIndex >= left.length ||
      (rightIndex < right.length && compare(right[rightIndex] as T, left[leftIndex] as T) < 0);
    merged.push((isRightNext ? right[rightIndex++] : left[leftIndex++]) as T);
  }
  return merged;
}
