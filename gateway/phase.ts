/**
 * Checks the phase changes of a class with phases, such as a connection, a session or a commit. Such a class describes
 * its phases in its doc comment, and has a table of the phases that may follow each phase. Pure.
 */

/** For each phase, the phases that may follow it. */
export type NextPhases<Phase extends string> = Readonly<Record<Phase, readonly Phase[]>>;

/**
 * Returns `to` if it may follow `from`.
 *
 * @param subject names the object in the error
 * @throws Error if `to` may not follow `from`: a bug in lockgate, since no input chooses a phase
 */
export function nextPhase<Phase extends string>(
  subject: string,
  nextPhases: NextPhases<Phase>,
  from: Phase,
  to: NoInfer<Phase>,
): Phase {
  if (!nextPhases[from].includes(to)) throw new Error(`${subject} cannot go from "${from}" to "${to}"`);
  return to;
}
