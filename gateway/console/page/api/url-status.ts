/** How deliveries to one webhook URL go, as the gateway's status shows it (docs/operator.md). */
export interface UrlStatus {
  readonly id: number;
  readonly state: 'active' | 'disabled';
  readonly circuit: 'open' | 'closed';
  readonly backlog: {
    readonly behind: number;
    readonly pending: number;
    readonly dead: number;
    readonly damaged: number;
    readonly oldest_seconds: number | null;
  };
}
