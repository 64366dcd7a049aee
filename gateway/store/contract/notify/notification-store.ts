/**
 * Notifications in the store: messages about troubles to a recipient's URL, and the recipients. As in store.ts, a
 * method that writes resolves after the write is on the disk, and a rejected call has changed nothing.
 *
 * A recipient is the operators together, or a merchant. A notification is one trouble: a message is sent when it opens,
 * and another one when it ends. Notices for operators are queued by the commit that stores them (NoticeStore.write).
 *
 * The *delivery clock* is wall-clock time at the gateway's start, and monotonic from then on: a jump of the
 * machine's clock makes no attempt early or late.
 */
import { Hours, type Milliseconds, Minutes } from '../../../../proto/clock.js';

/** The id of the recipient for operators; a merchant's recipient has the merchant's id, from 1 on. */
export const OPERATOR_RECIPIENT = 0;

/** The troubles of a webhook URL that its merchant is notified of. Operators are notified of every kind of notice. */
export const URL_TROUBLES = ['webhook-failing', 'webhook-disabled'] as const;

export type UrlTrouble = (typeof URL_TROUBLES)[number];

/**
 * A trouble that opens again this soon after its end is flapping: a message about it is sent only once it has stayed
 * open for {@link FLAP_HOLD}.
 */
export const FLAP_WINDOW: Milliseconds = Hours(1);
export const FLAP_HOLD: Milliseconds = Minutes(10);

/** Notifications retained for each recipient. Beyond it the oldest finished ones are deleted first, then the oldest. */
export const MAX_NOTIFICATIONS = 5_000;

/** Valid secrets of one recipient, the newest included. */
export const MAX_RECIPIENT_SECRETS = 5;

/** Where a recipient's messages go, and how the last attempts went. Times are wall-clock time. */
export interface Recipient {
  readonly id: number;
  /** Null while nothing is sent to it. */
  readonly url: string | null;
  readonly lastSuccessAtMs: number | null;
  /** The last failed attempt, even if later ones succeeded; null if none failed since the URL was set. */
  readonly lastError: RecipientError | null;
}

export interface RecipientError {
  readonly atMs: number;
  /** HTTP status; null if there was no answer. */
  readonly status: number | null;
  /** A sentence for people. */
  readonly error: string;
}

/** A signing secret of a recipient. `validUntilMs` is null for the newest, wall-clock time for older ones. */
export interface RecipientSecret {
  readonly secretSealed: Buffer;
  readonly validUntilMs: number | null;
}

/** A change of a trouble. Of several in a row that open it only the first is stored; likewise of those that end it. */
export interface NotificationChange {
  readonly recipientId: number;
  readonly kind: string;
  /** What the trouble is about: the subject of a notice, or the id of a webhook URL. */
  readonly subject: string;
  /** Wall-clock time. */
  readonly atMs: number;
  /** `mayHold`: whether the message is held back while the trouble is flapping ({@link FLAP_WINDOW}). */
  readonly change:
    | { readonly type: 'open'; readonly text: string; readonly details: NotificationDetails; readonly mayHold: boolean }
    /** `how` is null if no message about the end is to be sent: another trouble has taken its place. */
    | { readonly type: 'end'; readonly how: EndedHow | null };
}

/** Members of the messages that depend on the recipient. */
export interface NotificationDetails {
  readonly noticeId?: number;
  /** A webhook URL's id, and its scheme, host and port. */
  readonly webhookId?: number;
  readonly origin?: string;
}

/** How a trouble ended: a notice is resolved; a URL works, was enabled, or was removed. */
export type EndedHow = 'resolved' | 'working' | 'enabled' | 'removed';

/** A message that is due. */
export interface DueMessage {
  /** The notification's id in the store. */
  readonly id: number;
  /** The random part of its messages' ids. */
  readonly publicId: string;
  readonly part: 'opened' | 'ended';
  /** It waits because of flapping, and must be released before its first attempt. */
  readonly isHeld: boolean;
  readonly kind: string;
  readonly subject: string;
  readonly text: string;
  readonly details: NotificationDetails;
  readonly openedAtMs: number;
  readonly endedAtMs: number | null;
  readonly endedHow: EndedHow | null;
  /** Attempts made so far. */
  readonly attempts: number;
}

/** An attempt at a message, and what follows. */
export interface MessageAttempt {
  readonly id: number;
  readonly recipientId: number;
  readonly part: 'opened' | 'ended';
  /** Wall-clock time. */
  readonly atMs: number;
  /** Null if it succeeded. */
  readonly failure: { readonly status: number | null; readonly error: string } | null;
  /** `nextAttemptAtMs` by the delivery clock; null if the message is delivered, or given up. */
  readonly nextAttemptAtMs: number | null;
}

/** How many messages of a recipient wait, and how many were given up. */
export interface MessageCounts {
  readonly pending: number;
  readonly dead: number;
}

/** A trouble of a merchant that has not ended. */
export interface OpenTrouble {
  readonly recipientId: number;
  readonly kind: string;
  readonly subject: string;
}

export interface NotificationStore {
  /** Returns every recipient. */
  readRecipients(): Promise<Recipient[]>;
  /**
   * Sets a recipient's URL; `url` null means none, and deletes a merchant's recipient with its messages. A recipient
   * without a secret gets `secretSealed`; returns whether it did. The errors of another URL are forgotten.
   */
  setUrl(recipientId: number, url: string | null, secretSealed: Buffer): Promise<{ readonly isSecretNew: boolean }>;
  /** Returns the secrets that are valid at this time, newest first. */
  readSecrets(recipientId: number, nowMs: number): Promise<RecipientSecret[]>;
  /** Gives a recipient a new secret; the older ones stay valid until `oldValidUntilMs` at most. */
  addSecret(recipientId: number, secretSealed: Buffer, nowMs: number, oldValidUntilMs: number): Promise<void>;
  /** Stores changes of troubles, in order and in one commit, for recipients that have a URL. */
  record(changes: readonly NotificationChange[]): Promise<void>;
  /** Returns the merchants' troubles that have not ended. */
  readOpenTroubles(): Promise<OpenTrouble[]>;
  /** Returns a recipient's message that has been due for longest; null if none is due. */
  readDue(recipientId: number, nowMs: number): Promise<DueMessage | null>;
  /** Returns when the recipient's next message is due, by the delivery clock; null if none waits. */
  nextDueAtMs(recipientId: number): Promise<number | null>;
  /** Releases a held message for its first attempt. Returns false if its trouble has ended meanwhile. */
  release(id: number): Promise<boolean>;
  /**
   * Stores an attempt. When the message about the opening is final, the one about the end becomes due, if it waits.
   * While an attempt waits to be repeated, later messages about the same trouble wait as long: the recipient must not
   * hear that a trouble ended after it has heard that it began again.
   */
  conclude(attempt: MessageAttempt): Promise<void>;
  /**
   * Shortens waits that are longer than they were when they started, after the machine's clock was set back.
   *
   * @param maxWaits the longest wait after no attempt, after one, after two …
   */
  shortenWaits(nowMs: number, maxWaits: readonly Milliseconds[]): Promise<void>;
  countMessages(recipientId: number): Promise<MessageCounts>;
}
