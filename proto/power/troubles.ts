/**
 * What may need attention at a lock, in the one order in which every list shows it: the gateway's answers, the command
 * line and the pages. Pure.
 */

/**
 * The most urgent first; `none` last. `theft`: its last ping reports a theft. `late`: it is silent for longer than its
 * mode allows. `unjudged`: the judge failed at it, so its state is not up to date. `never-seen`: it has never
 * connected.
 */
export const TROUBLES = ['theft', 'late', 'low-battery', 'unjudged', 'airplane', 'never-seen', 'none'] as const;
export type Trouble = (typeof TROUBLES)[number];
