/**
 * The firmware bugs that can be switched on in simulated locks, and which locks of a fleet have them. A lock with a bug
 * breaks only those rules of the judge, the check of a lock's messages (proto/power/rules.ts), that the bug's row
 * names.
 *
 * A bug shows only in the situation that it affects: a bug in thefts does not show in a fleet without thefts
 * (bug-visibility.ts). Bugs can be combined; then one bug may hide another.
 */
import { didYouMean } from '../../proto/did-you-mean.js';
import { LockgateError } from '../../proto/errors.js';
import type { OpenLink } from '../link/link.js';
import type { StepFunction } from '../lock/lock.js';
import type { Bug } from './bug.js';
import { FORBIDDEN_BUGS } from './forbidden-bugs.js';
import { OMISSION_BUGS, UNSEEN_BUGS } from './omission-bugs.js';

/** The table: a bug for each rule, in the order of the rules, and then those that break no rule. */
export const BUGS: readonly Bug[] = Object.freeze([...FORBIDDEN_BUGS, ...OMISSION_BUGS, ...UNSEEN_BUGS]);

/** A bug, and how many locks of a fleet have the bug; null for all locks. */
export interface BugAssignment {
  readonly bug: Bug;
  readonly locks: number | null;
}

/**
 * Reads `NAME` or `NAME:LOCKS`.
 *
 * @throws LockgateError `input-bug` for an unknown name, or a count that is not a number
 */
export function parseBugAssignment(text: string): BugAssignment {
  const [name = '', count, ...more] = text.split(':');
  const bug = BUGS.find((row) => row.name === name);
  if (bug === undefined) {
    const names = BUGS.map((row) => row.name).join(', ');
    const suggestion = didYouMean(
      name,
      BUGS.map((row) => row.name),
    );
    throw new LockgateError(
      'input-bug',
      `there is no bug ${JSON.stringify(name)}: expected one of ${names}.${suggestion}`,
    );
  }
  if (count === undefined) return { bug, locks: null };
  if (!/^[1-9]\d{0,6}$/.test(count) || more.length > 0)
    throw new LockgateError(
      'input-bug',
      `the bug ${JSON.stringify(text)}: expected NAME or NAME:LOCKS, such as ${name}:3`,
    );
  return { bug, locks: Number(count) };
}

/**
 * Assigns bugs to the locks of a fleet; returns the bugs of each lock. Assignments with a count get consecutive locks,
 * starting at the first lock. So no lock has two such bugs if the fleet has enough locks.
 */
export function assignBugs(assignments: readonly BugAssignment[], locks: number): readonly (readonly Bug[])[] {
  const bugsOfLocks = Array.from({ length: locks }, (): Bug[] => []);
  let next = 0;
  for (const { bug, locks: wantedLocks } of assignments) {
    const count = Math.min(wantedLocks ?? locks, locks);
    const from = wantedLocks === null ? 0 : next;
    for (let index = 0; index < count; index++) bugsOfLocks[(from + index) % locks]?.push(bug);
    if (wantedLocks !== null) next += count;
  }
  return bugsOfLocks;
}

/** The step function of a lock with these bugs. */
export function stepWithBugs(bugs: readonly Bug[], healthy: StepFunction): StepFunction {
  return bugs.reduce((stepFunction, bug) => bug.wrapStep?.(stepFunction) ?? stepFunction, healthy);
}

/** The link of a lock with these bugs. */
export function linkWithBugs(bugs: readonly Bug[], open: OpenLink): OpenLink {
  return bugs.reduce((link, bug) => bug.wrapVirtualLink?.(link) ?? link, open);
}
