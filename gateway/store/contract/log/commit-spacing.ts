/** How a store's commits are best spaced while pings arrive steadily (ingest/commit-pace.ts). */
export interface CommitSpacing {
  /**
   * How many small commits are sent in a second, once a burst of them is used up. Each has costs that do not depend on
   * its size; the fewer there are, the less they cost, and the longer a lock waits for its acknowledgement.
   */
  readonly commitsPerSecond: number;
  /** A commit with so many uplinks and events is sent without a wait: its costs are small for each of them. */
  readonly minSharingItems: number;
}
