/**
 * What notices ask of the store. The promises of store.ts hold: a method that writes resolves after the write is on the
 * disk, and nothing of a rejected call is kept. Times are ms since the epoch, by the wall's clock.
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

/** How many notices are kept: of more, the oldest that were read go first, then the oldest. */
export const NOTICES_RETAINED = 10_000;

/** What is known of a notice by its kind and subject. */
export interface NoticeKey {
  readonly kind: NoticeKind;
  /**
   * The URL's id, the lock's MAC, what is lacking, month and merchant, the reason for not being ready, the event's id,
   * or `ahead`.
   */
  readonly subject: string;
}

/** What became of one kind and subject since the last write. */
export interface NoticeChange extends NoticeKey {
  /** A sentence for people; null where nothing happened but that it ended. */
  readonly text: string | null;
  /** How often it happened. */
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  /** When it ended, kept to the second; null where it goes on. */
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

/** Which notices; a member that is left out lets everything through. */
export interface NoticeFilter {
  readonly unread?: boolean | undefined;
  readonly kind?: NoticeKind | undefined;
  /** Those that happened, at the last, at this time or later. */
  readonly sinceMs?: number | undefined;
  /** Only those behind it. */
  readonly after?: NoticeCursor | undefined;
  readonly limit: number;
}

export interface NoticeStore {
  /**
   * Keeps changes, each of another kind and subject, in one commit. What repeats a notice that goes on or is unread is
   * counted in it, and makes it unread; anything else is a new one. Beyond {@link NOTICES_RETAINED} the oldest go.
   */
  write(changes: readonly NoticeChange[]): Promise<void>;
  /** The latest first. */
  list(filter: NoticeFilter): Promise<Notice[]>;
  /** What goes on, by what the store knows. */
  readOpen(): Promise<NoticeKey[]>;
  /** How many are unread; a kind of which there is none is left out. */
  readUnread(): Promise<ReadonlyMap<NoticeKind, number>>;
  /**
   * Marks notices as read. Answers how many were not before.
   *
   * @throws LockgateError `no-such-notice`, and then none is marked
   */
  markRead(ids: readonly number[] | 'all', nowMs: number): Promise<number>;
}
