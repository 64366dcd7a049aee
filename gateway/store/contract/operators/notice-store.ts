/**
 * Notices in the store: what needs an operator's attention, one row for each trouble and what it is about. As in
 * store.ts, a method that writes resolves after the write is on the disk, and a rejected call has changed nothing.
 * Times are ms since the epoch, wall-clock time.
 */

/** What a notice is about. `url` is a webhook URL. */
export const NOTICE_KINDS = [
  'url-disabled',
  // A URL fails, and gets only probes.
  'circuit-open',
  // A URL has many or old undelivered events.
  'url-behind',
  // The gateway can't send webhooks, for a reason of its own.
  'cannot-send',
  // The outcome of a delivery can't be stored.
  'cannot-record',
  // A merchant's monthly statement of usage was made.
  'statement',
  // The gateway is not ready.
  'degraded',
  // File descriptors are scarce.
  'descriptors',
  // A ping of a lock is overdue.
  'lock-late',
  // A lock's boot counter went back, as after its flash was wiped.
  'boot-back',
  // A stored ping differs from its checksum, and is not sent.
  'event-damaged',
  // A lock or its phones send too much.
  'lock-over-budget',
  // The machine's clock disagrees with other clocks.
  'clock-leapt',
  // A lock's uplinks are no longer checked against the protocol's rules.
  'lock-unjudged',
  // The store's file is damaged.
  'store-damaged',
  // A notify URL, to which notices or a merchant's troubles are sent, fails.
  'notify-failing',
] as const;

export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** The subject of `notify-failing` for the operators' URL; for a merchant's it is the merchant's id. */
export const OPERATOR_SUBJECT = 'operator';

/** The number of notices retained. Beyond it the oldest read notices are deleted first, then the oldest. */
export const MAX_NOTICES = 10_000;

/** What identifies a notice. */
export interface NoticeKey {
  readonly kind: NoticeKind;
  /**
   * Depends on the kind: a URL's id, a lock's MAC, the scarce resource, month and merchant, the reason why the gateway
   * is not ready, an event's id, or `ahead` or `behind` (the clock).
   */
  readonly subject: string;
}

/** The occurrences of one kind and subject since the last write. */
export interface NoticeChange extends NoticeKey {
  /** The notice's sentence; null if the change only resolves the notice. */
  readonly text: string | null;
  /** The number of occurrences. */
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  /** When the condition ended, to the second; null while it continues. */
  readonly resolvedAtMs: number | null;
}

export interface Notice extends NoticeKey {
  readonly id: number;
  readonly text: string;
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  readonly readAtMs: number | null;
  readonly resolvedAtMs: number | null;
}

/** The last notice of a page of the list. */
export interface NoticeCursor {
  readonly lastAtMs: number;
  readonly id: number;
}

/** Selects notices; a member that is left out selects all. */
export interface NoticeFilter {
  readonly unread?: boolean | undefined;
  readonly kind?: NoticeKind | undefined;
  /** Only notices that last occurred at this time or later. */
  readonly sinceMs?: number | undefined;
  /** Only notices after this one in the list. */
  readonly after?: NoticeCursor | undefined;
  readonly limit: number;
}

export interface NoticeStore {
  /**
   * Stores changes, each with a different kind and subject, in one commit. If a notice of this kind and subject is
   * unresolved or unread, the change is counted in that notice, which becomes unread; otherwise a new notice is added.
   * Deletes notices beyond {@link MAX_NOTICES}. Queues a notification for each notice that opens or is resolved, if
   * operators have a notify URL.
   */
  write(changes: readonly NoticeChange[]): Promise<void>;
  /** Returns notices, latest first. */
  list(filter: NoticeFilter): Promise<Notice[]>;
  /** Returns the unresolved notices. */
  readOpen(): Promise<NoticeKey[]>;
  /**
   * Returns the unresolved notices that no running gateway has noted. To be called when this gateway has noted none
   * yet: then these are all unresolved ones, if it is alone.
   */
  readLeftOpen(): Promise<NoticeKey[]>;
  /** Returns the number of unread notices by kind; a kind without unread notices is left out. */
  readUnread(): Promise<ReadonlyMap<NoticeKind, number>>;
  /**
   * Marks notices as read. Returns how many were unread.
   *
   * @throws LockgateError `no-such-notice`; then no notice is marked
   */
  markRead(ids: readonly number[] | 'all', nowMs: number): Promise<number>;
}
