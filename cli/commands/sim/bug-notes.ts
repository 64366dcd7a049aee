/** Prints which locks of a simulated run have which firmware bug, and warns of bugs that can't show in that run. */
import type { Bug } from '../../../firmware-sim/faults/bug.js';
import { type LockAtStart, whyHidden } from '../../../firmware-sim/faults/bug-visibility.js';
import { assignBugs, type BugAssignment } from '../../../firmware-sim/faults/bugs.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { printNote } from '../../terminal/output.js';
import { plural } from './summary.js';

/** A lock of the run. */
export interface BugNoteLock {
  readonly mac: Mac;
  readonly state: LockAtStart;
}

/**
 * What decides whether a bug can show: how eventful and how long the run is, and whether a gateway takes part. For a
 * scenario, whose events its author has chosen, no warning is given.
 */
export type BugNoteRun =
  | { readonly pace: 'everyday' | 'lively'; readonly days: number | null; readonly hasGateway: boolean }
  | 'scenario';

/** A bug of the run, as in `--json`. */
export interface BugNote {
  readonly bug: string;
  /** The rule that the bug breaks; null if no rule detects it. */
  readonly rule: string | null;
  /** The MACs of the locks that have the bug. */
  readonly locks: readonly string[];
  /** Why the bug can hardly show in this run; null if it can. */
  readonly warning: string | null;
}

/** The maximum number of locks whose MACs are printed; the remaining locks are counted. */
const MAX_NAMED_LOCKS = 5;

/** Which locks have which bug: one note for each bug. `locks` is in the order of the fleet. */
export function bugNotes(
  assignments: readonly BugAssignment[],
  locks: readonly BugNoteLock[],
  run: BugNoteRun,
): readonly BugNote[] {
  const bugsOfLocks = assignBugs(assignments, locks.length);
  return [...new Set(assignments.map(({ bug }) => bug))].map((bug) => {
    const buggyLocks = locks.filter((_, index) => bugsOfLocks[index]?.includes(bug));
    const names = buggyLocks.map(({ mac }) => formatMac(mac));
    return { bug: bug.name, rule: bug.rule, locks: names, warning: warningOf(bug, buggyLocks, run) };
  });
}

/** Why the bug can hardly show in the run; null if it can, and for a scenario, whose events its author chose. */
function warningOf(bug: Bug, buggyLocks: readonly BugNoteLock[], run: BugNoteRun): string | null {
  if (run === 'scenario') return null;
  return whyHidden(bug, { ...run, locks: buggyLocks.map(({ state }) => state) });
}

/** Prints the notes on stderr. `locks` is the number of locks in the run. */
export function printBugNotes(notes: readonly BugNote[], locks: number): void {
  for (const { bug, rule, locks: buggyLocks, warning } of notes) {
    const namedMacs = buggyLocks.slice(0, MAX_NAMED_LOCKS).join(', ');
    const moreText = buggyLocks.length > MAX_NAMED_LOCKS ? ` and ${buggyLocks.length - MAX_NAMED_LOCKS} more` : '';
    const allOrSome = buggyLocks.length === locks ? 'all' : `${buggyLocks.length} of`;
    const effect = rule === null ? 'no rule detects it' : `breaks ${rule}`;
    printNote(`Bug ${bug}: ${allOrSome} ${plural(locks, 'lock')}, ${namedMacs}${moreText}; ${effect}.`);
    if (warning !== null) printNote(`Warning: ${bug} can hardly show here: ${warning}.`);
  }
}
