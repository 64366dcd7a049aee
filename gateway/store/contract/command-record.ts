/**
 * Commands in the store (protocol.md §1 and §2, Commands): what was asked of which lock, and the result. All times are
 * ms since the epoch by the run's clock, which locks live by (protocol.md §3, Sped-up runs).
 */
import type { Mac } from '../../../proto/wire/mac.js';
import type { Command, PowerChange } from '../../../proto/wire/ping.js';

/**
 * The state of a command: `queued` until it is first sent, `sent` until the lock answers, then the lock's result
 * (`done`, `rejected`, `failed`); `expired` where its time ran out first; `cancelled` where an operator cancelled it
 * before it was sent, or the lock was removed or moved to another merchant before it answered.
 */
export const COMMAND_STATES = ['queued', 'sent', 'done', 'rejected', 'failed', 'expired', 'cancelled'] as const;
export type CommandState = (typeof COMMAND_STATES)[number];

/** A lock's result of a command. */
export type AnsweredState = Extract<CommandState, 'done' | 'rejected' | 'failed'>;

/** A command on its way into the store. */
export interface NewCommand {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly command: Command;
  readonly createdAtMs: number;
  /** When it is scheduled for; null for one that may be sent at once. */
  readonly notBeforeMs: number | null;
  /** From then on it is neither sent nor executed. */
  readonly expiresAtMs: number;
  /** Who asked for it, in a few words for people. */
  readonly askedBy: string;
}

/** A stored command. */
export interface CommandRecord extends NewCommand {
  /** Unique in this store, ascending, never given twice. It is the id on the wire, so it fits 32 bits. */
  readonly id: number;
  readonly mac: Mac;
  readonly state: CommandState;
  readonly firstSentAtMs: number | null;
  readonly lastSentAtMs: number | null;
  readonly sentCount: number;
  /** When the lock's answer came, or it expired or was cancelled. */
  readonly finishedAtMs: number | null;
  /** The lock's reason; empty where there is none. */
  readonly detail: string;
}

/**
 * A commit's changes to commands, in order. Only the first acknowledgement counts, and only from the lock that the
 * command was sent to. It counts for an expired or cancelled command too, which was executed before and reported late.
 */
export type CommandChange =
  | { readonly type: 'sent'; readonly id: number; readonly atMs: number }
  | {
      readonly type: 'acknowledged';
      readonly id: number;
      readonly deviceId: number;
      readonly state: AnsweredState;
      readonly detail: string;
      readonly atMs: number;
    };

/** Which commands to list. */
export interface CommandFilter {
  readonly deviceId?: number | undefined;
  readonly state?: CommandState | undefined;
  readonly limit: number;
}

/** Commands in the store, with the promises of store.ts. */
export interface CommandStore {
  /**
   * Adds all of them or none, in the order given. By the time it resolves a command may be cancelled already: see its
   * state.
   *
   * @throws LockgateError `no-such-device` where a lock was removed or moved since it was looked up,
   * `commands-exhausted` where ids no longer fit the wire
   */
  add(commands: readonly NewCommand[]): Promise<CommandRecord[]>;
  find(id: number): Promise<CommandRecord | null>;
  /** Newest first. */
  list(filter: CommandFilter): Promise<CommandRecord[]>;
  /** All that are queued or sent, oldest first. */
  readUnfinished(): Promise<CommandRecord[]>;
  /** Marks the unfinished ones among them as expired; returns which. */
  expire(ids: readonly number[], atMs: number): Promise<number[]>;
  /** Moves the creation and the expiry of the unfinished ones among them by so much. */
  postpone(ids: readonly number[], byMs: number): Promise<void>;
  /** Cancels it where it is still queued; returns whether it was. */
  cancel(id: number, atMs: number): Promise<boolean>;
  /**
   * The set-power commands of the lock's merchant that are done or may still be, and are due by `nowMs`: the newest
   * first, at most `limit`.
   */
  readPowerWishes(deviceId: number, nowMs: number, limit: number): Promise<PowerChange[]>;
}
