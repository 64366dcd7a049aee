/**
 * What may need attention at a lock, in the one order in which every list shows it: the gateway's answers, the command
 * line and the pages. Pure.
 */

/** The most urgent first; `none` last. */
export const TROUBLES = ['theft', 'late', 'low-battery', 'unjudged', 'airplane', 'never-seen', 'none'] as const;
export type Trouble = (typeof TROUBLES)[number];
