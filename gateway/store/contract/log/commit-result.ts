/**
 * What a commit did not store. A commit is stored completely or not at all, except for its conditional parts: a part
 * whose condition does not hold when the commit is stored is left out, with everything that belongs to it, and the
 * commit returns it here. The caller must act on it: for a refused command, no bytes may be sent.
 */

/** The conditional parts of a commit that were not stored. */
export interface CommitResult {
  /**
   * Indexes into `Commit.commands`, ascending. A `sent` is refused if the command is not queued or sent any more: it
   * was cancelled, has expired or was answered; the commit's lock event about its sending is left out too. An
   * `acknowledged` is refused if it is not the first answer of the lock that the command was sent to.
   */
  readonly refusedCommands: readonly number[];
  /** Indexes into `Commit.incoming`, ascending: uplinks that the log had already. */
  readonly repeatedUplinks: readonly number[];
}

/** Everything was stored. */
export const ALL_STORED: CommitResult = Object.freeze({ refusedCommands: [], repeatedUplinks: [] });

/** What `Store.recordProgress`, which stores the outcomes of deliveries to webhook URLs, did not store. */
export interface ProgressResult {
  /**
   * URLs that another gateway owns, or whose deliveries an operator made due again meanwhile (recover). Nothing of
   * their progress was stored: their workers must stop, and continue from what is stored.
   */
  readonly refusedUrlIds: readonly number[];
}

/** All progress was stored. */
export const ALL_RECORDED: ProgressResult = Object.freeze({ refusedUrlIds: [] });
