/**
 * What a row of the table of firmware bugs (bugs.ts) says. Bugs are independent of network faults (faults.ts): a lock
 * with a bug misbehaves on a perfect network.
 */
import type { RuleName } from '../../proto/power/rules.js';
import type { OpenLink } from '../link/link.js';
import type { StepWrapper } from './bug-wrappers.js';

/** What a run must have, or else a bug can't show in it (bug-visibility.ts). */
export type BugNeed =
  | 'rides'
  | 'tracked-rides'
  | 'thefts'
  | 'mid'
  | 'high'
  | 'recovery'
  | 'kept-connection'
  | 'airplane'
  | 'low-battery'
  | 'commands'
  | 'six-hours'
  | 'a-day';

export interface Bug {
  readonly name: string;
  /**
   * The rule that the bug is made for. Null where no rule can tell the lock from a healthy one: only a comparison with
   * what truly happened shows it, or a row of a certificate that was not seen to hold.
   */
  readonly rule: RuleName | null;
  /** Further rules that a lock with this bug may break, in alphabetical order. */
  readonly also?: readonly RuleName[];
  /** What the lock does wrong. */
  readonly sentence: string;
  /** Which locks show the bug, and when. */
  readonly shows: string;
  /** What a run must have for the bug to show; nothing where it shows in each lock within an hour or a ride. */
  readonly needs?: readonly BugNeed[];
  readonly wrapStep?: StepWrapper;
  /** Misuses the link in a way that no MQTT server accepts. So the bug exists only in virtual runs. */
  readonly wrapVirtualLink?: (open: OpenLink) => OpenLink;
}

export const IN_RIDES = 'each lock, in its rides';
export const AT_STATE_CHANGES = 'each lock, when it is locked or unlocked under an open sky';

/** The rules that a lock with the bug may break, in alphabetical order; none for a bug that no rule sees. */
export function rulesOf({ rule, also = [] }: Bug): RuleName[] {
  return [...(rule === null ? [] : [rule]), ...also].sort();
}
