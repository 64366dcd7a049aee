/** Tells which locks of a run have a firmware bug, and warns of bugs that can't show in it. */
import type { Bug } from '../../../firmware-sim/faults/bug.js';
import { type LockAtStart, whyHidden } from '../../../firmware-sim/faults/bug-visibility.js';
import { assignBugs, type BugAssignment } from '../../../firmware-sim/faults/bugs.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { printNote } from '../../terminal/output.js';
import { plural } from './summary.js';

/** A lock of the run, in the order of the fleet. */
export interface NotedLock {
  readonly mac: Mac;
  readonly state: LockAtStart;
}

/** The run: what whyHidden needs to know of it. A scenario's events are its own, so no warning is given there. */
export type NotedRun =
  | { readonly pace: 'everyday' | 'lively'; readonly days: number | null; readonly hasGateway: boolean }
  | 'scenario';

/** A bug of the run, in JSON: its locks, and why it can't show, or null. */
export interface BugNote {
  readonly bug: string;
  /** The rule that it breaks; null where no rule sees it. */
  readonly rule: string | null;
  readonly locks: readonly string[];
  readonly warning: string | null;
}

/** So many locks are named; more are counted. */
const MAX_NAMED_LOCKS = 5;

/** Which locks have which bug, one row for each bug. */
export function bugNotes(
  assignments: readonly BugAssignment[],
  locks: readonly NotedLock[],
  run: NotedRun,
): readonly BugNote[] {
  const bugsOfLocks = assignBugs(assignments, locks.length);
  return [...new Set(assignments.map(({ bug }) => bug))].map((bug) => {
    const buggy = locks.filter((_, index) => bugsOfLocks[index]?.includes(bug));
    const names = buggy.map(({ mac }) => formatMac(mac));
    return { bug: bug.name, rule: bug.rule, locks: names, warning: warningOf(bug, buggy, run) };
  });
}

function warningOf(bug: Bug, buggy: readonly NotedLock[], run: NotedRun): string | null {
  if (run === 'scenario') return null;
  return whyHidden(bug, { ...run, locks: buggy.map(({ state }) => state) });
}

/** Prints the rows for people, to the standard error. */
export function printBugNotes(notes: readonly BugNote[], locks: number): void {
  for (const { bug, rule, locks: buggy, warning } of notes) {
    const named = buggy.slice(0, MAX_NAMED_LOCKS).join(', ');
    const more = buggy.length > MAX_NAMED_LOCKS ? ` and ${buggy.length - MAX_NAMED_LOCKS} more` : '';
    const which =
      buggy.length === locks ? `all ${plural(locks, 'lock')}` : `${buggy.length} of ${plural(locks, 'lock')}`;
    printNote(`Bug ${bug}: ${which}, ${named}${more}; ${rule === null ? 'no rule sees it' : `breaks ${rule}`}.`);
    if (warning !== null) printNote(`Warning: ${bug} can hardly show here: ${warning}.`);
  }
}
