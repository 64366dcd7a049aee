/**
 * Guards the changes of mode of a class with a life: a connection, a session, a commit. Such a class states its modes
 * in prose above itself and has a table of which mode may follow which.
 */

/** For each phase, the phases that may follow it. */
export type NextPhases<Phase extends string> = Readonly<Record<Phase, readonly Phase[]>>;

/**
 * Returns `to`, for the caller to assign. `what` names the object in the message.
 *
 * @throws Error where `to` may not follow `from`: a bug of ours, since no input from outside chooses a phase
 */
export function nextPhase<Phase extends string>(
  what: string,
  next: NextPhases<Phase>,
  from: Phase,
  to: NoInfer<Phase>,
): Phase {
  if (!next[from].includes(to)) throw new Error(`${what} cannot go from "${from}" to "${to}"`);
  return to;
}
