/**
 * Notices in the store. The promises of store.ts hold: a method that writes resolves after the write is on the disk,
 * and nothing of a rejected call remains. Times are ms since the epoch, wall-clock time.
 */

/** What a notice is about. */
export const NOTICE_KINDS = [
  'url-disabled',
  'circuit-open',
  'url-behind',
  'cannot-send',
  'cannot-record',
  'statement',
  'degraded',
  'descriptors',
  'lock-late',
  'boot-back',
  'event-damaged',
  'lock-over-budget',
  'clock-leapt',
  'lock-unjudged',
  'store-damaged',
] as const;

export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** How many notices are retained; beyond it the oldest read ones are deleted first, then the oldest. */
export const NOTICES_RETAINED = 10_000;

/** What identifies a notice. */
export interface NoticeKey {
  readonly kind: NoticeKind;
  /**
   * Depends on the kind: a URL's id, a lock's MAC, the scarce resource, month and merchant, the reason for not being
   * ready, an event's id, or `ahead`.
   */
  readonly subject: string;
}

/** What happened to one kind and subject since the last write. */
export interface NoticeChange extends NoticeKey {
  /** A sentence for people; null where it only ended. */
  readonly text: string | null;
  /** How often it happened. */
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  /** When it ended, to the second; null while it goes on. */
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

/** Where a page of the list ended. */
export interface NoticeCursor {
  readonly lastAtMs: number;
  readonly id: number;
}

/** Selects notices; a member that is left out selects all. */
export interface NoticeFilter {
  readonly unread?: boolean | undefined;
  readonly kind?: NoticeKind | undefined;
  /** Those that last happened at this time or later. */
  readonly sinceMs?: number | undefined;
  /** Only those after it in the list. */
  readonly after?: NoticeCursor | undefined;
  readonly limit: number;
}

export interface NoticeStore {
  /**
   * Stores changes, each of another kind and subject, in one commit. A repeat of a notice that goes on or is unread is
   * counted in it and makes it unread; anything else is a new notice. Retains {@link NOTICES_RETAINED}.
   */
  write(changes: readonly NoticeChange[]): Promise<void>;
  /** The latest first. */
  list(filter: NoticeFilter): Promise<Notice[]>;
  /** The notices that go on, as the store has them. */
  readOpen(): Promise<NoticeKey[]>;
  /** How many are unread, by kind; a kind without any is left out. */
  readUnread(): Promise<ReadonlyMap<NoticeKind, number>>;
  /**
   * Marks notices as read. Returns how many were unread.
   *
   * @throws LockgateError `no-such-notice`, and then none is marked
   */
  markRead(ids: readonly number[] | 'all', nowMs: number): Promise<number>;
}
