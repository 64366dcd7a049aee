/** How deliveries to one webhook URL go, as the gateway's status shows it (docs/operator.md). */
export interface UrlStatus {
  readonly id: number;
  readonly state: 'active' | 'disabled';
  /** `open` after many failures in a row: then only single probes are sent. */
  readonly circuit: 'open' | 'closed';
  /** Events that the URL has not accepted: not reached yet, to be retried, given up, and damaged in the store. */
  readonly backlog: {
    readonly behind: number;
    readonly pending: number;
    readonly dead: number;
    readonly damaged: number;
    readonly oldest_seconds: number | null;
  };
}
