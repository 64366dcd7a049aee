/** The heights of a bar's parts, of which even the smallest must be seen. Pure. */

/** Sizes in pixels. */
export interface BarSizes {
  /** No bar is higher. */
  readonly height: number;
  /** A part that is not zero is at least this high: a small share of `height`, so the highest part can make room. */
  readonly minimum: number;
}

/**
 * The heights of parts: as they are, or the minimum if that is more, except for zero. If that makes the bar too high,
 * its highest part gets lower by the excess.
 *
 * @param parts their heights in proportion, in pixels
 */
export function partHeights(parts: readonly number[], { height, minimum }: BarSizes): number[] {
  const heights = parts.map((part) => (part === 0 ? 0 : Math.max(part, minimum)));
  const excess = Math.max(heights.reduce((sum, each) => sum + each, 0) - height, 0);
  const highest = heights.indexOf(Math.max(...heights));
  return heights.map((each, index) => (index === highest ? each - excess : each));
}
