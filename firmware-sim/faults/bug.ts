/**
 * The type of a row in the table of firmware bugs of simulated locks (bugs.ts). Bugs are independent of network faults
 * (faults.ts): a lock with a bug misbehaves on a perfect network.
 */
import type { RuleName } from '../../proto/power/rules.js';
import type { OpenLink } from '../link/link.js';
import type { StepWrapper } from './bug-wrappers.js';

/** A condition that a run must meet for a bug to show (bug-visibility.ts). */
export type BugNeed =
  | 'rides'
  /** Rides of a lock with ride tracking on, which sends its position during them. */
  | 'tracked-rides'
  | 'thefts'
  // A lock that starts in this power mode, or with this setting or battery:
  | 'mid'
  | 'high'
  | 'recovery'
  | 'airplane'
  | 'low-battery'
  /** A lock whose mode keeps a connection open: HIGH or recovery. */
  | 'kept-connection'
  /** A run in which commands are sent to locks. */
  | 'commands'
  // A run that is longer than this:
  | 'six-hours'
  | 'a-day';

/** A row of the table. */
export interface Bug {
  readonly name: string;
  /**
   * The rule of the judge (the check of a lock's messages) that the bug breaks. Null if the messages of the lock could
   * also be those of a lock without the bug. Then only a comparison with what truly happened shows the bug, or a
   * certificate (`lockgate trace certify`), in which the missing function stays "not seen".
   */
  readonly rule: RuleName | null;
  /** Further rules that a lock with this bug may break, in alphabetical order. */
  readonly also?: readonly RuleName[];
  /** What the lock does wrong. */
  readonly sentence: string;
  /** Which locks show the bug, and when. */
  readonly shows: string;
  /** What a run must have for the bug to show; absent if the bug shows in each lock within an hour or a ride. */
  readonly needs?: readonly BugNeed[];
  /** Gives the lock's behaviour the bug. */
  readonly wrapStep?: StepWrapper;
  /**
   * Gives the lock's connection the bug. It is impossible over a real MQTT connection, so the bug exists only in
   * virtual runs, which simulate locks without a gateway.
   */
  readonly wrapVirtualLink?: (open: OpenLink) => OpenLink;
}

// Texts of `shows` that several bugs share.
export const IN_RIDES = 'each lock, in its rides';
export const AT_STATE_CHANGES = 'each lock, when it is locked or unlocked under an open sky';

/** The rules that a lock with the bug may break, in alphabetical order; empty for a bug that breaks no rule. */
export function rulesOf({ rule, also = [] }: Bug): RuleName[] {
  return [...(rule === null ? [] : [rule]), ...also].sort();
}
