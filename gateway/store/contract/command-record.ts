/**
 * Commands to locks in the store (protocol.md §1 and §2, Commands), and their results. All times are ms since the epoch
 * by the run's clock, which locks use too: it follows the wall clock, except in a sped-up simulation, and never goes
 * back (protocol.md §3, Sped-up runs).
 */
import { Hours } from '../../../proto/clock.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Command, PowerChange } from '../../../proto/wire/ping.js';

/**
 * The state of a command: `queued` until it is first sent, `sent` until the lock answers, then the lock's result
 * (`done`, `rejected`, `failed`); `expired` if its time ran out first; `cancelled` if an operator cancelled it before
 * it was sent, or if the lock was removed or moved to another merchant before it answered.
 */
export const COMMAND_STATES = ['queued', 'sent', 'done', 'rejected', 'failed', 'expired', 'cancelled'] as const;
export type CommandState = (typeof COMMAND_STATES)[number];

/** A lock's result of a command. */
export type AnsweredState = Extract<CommandState, 'done' | 'rejected' | 'failed'>;

/** A command to be stored. */
export interface NewCommand {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly command: Command;
  readonly createdAtMs: number;
  /** The earliest time to send it; null if it may be sent at once. */
  readonly notBeforeMs: number | null;
  /** From this time on the command is neither sent nor executed. */
  readonly expiresAtMs: number;
  /** Who asked for the command, in a few words. */
  readonly askedBy: string;
}

/** A stored command. */
export interface CommandRecord extends NewCommand {
  /** Unique in this store, ascending, never reused. It is the id on the wire, so it fits 32 bits. */
  readonly id: number;
  readonly mac: Mac;
  readonly state: CommandState;
  readonly firstSentAtMs: number | null;
  readonly lastSentAtMs: number | null;
  readonly sentCount: number;
  /** When the lock's answer arrived, or the command expired or was cancelled. */
  readonly finishedAtMs: number | null;
  /** The lock's reason; empty if there is none. */
  readonly detail: string;
}

/**
 * A commit's changes to commands. Only the first acknowledgement (the lock's answer) counts, and only from the lock
 * that the command was sent to. An acknowledgement counts for an expired or cancelled command too: the lock executed
 * the command in time and reported it late.
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

/**
 * A merchant's call with an idempotency key, which a repeat of the call has too (interfaces.md §2). A key is valid for
 * one merchant and one route.
 */
export interface IdempotentCall {
  readonly merchantId: number;
  /** The method and the path's pattern, such as `POST /v1/locks/{mac}/commands`. */
  readonly route: string;
  readonly key: string;
  /** A digest of everything that a repeat must have in common with the call. */
  readonly bodyDigest: Buffer;
  /** Wall-clock time, ms since the epoch. */
  readonly nowMs: number;
}

/** The stored answer to a call with an idempotency key. */
export interface IdempotentAnswer {
  readonly bodyDigest: Buffer;
  /** The body of the answer, JSON, to be sent again. */
  readonly answer: string;
}

/** How long an idempotency key is valid, counted from its first use. */
export const IDEMPOTENCY_LIFETIME = Hours(24);

/** Which commands to list. */
export interface CommandFilter {
  readonly merchantId?: number | undefined;
  /** Only commands with lower ids. */
  readonly beforeId?: number | undefined;
  readonly deviceId?: number | undefined;
  readonly state?: CommandState | undefined;
  readonly limit: number;
}

/** The methods for commands, with the promises of store.ts. */
export interface CommandStore {
  /**
   * Adds all commands or none, in the given order. Returns them as they are after the commit: one that was cancelled
   * in between has that state.
   *
   * @throws LockgateError `no-such-device` if a lock was removed or moved since it was looked up, `commands-exhausted`
   * if ids no longer fit the wire
   */
  add(commands: readonly NewCommand[]): Promise<CommandRecord[]>;
  /**
   * Adds one command, and stores the answer to the call that asked for it in the same transaction. The caller has
   * looked for an earlier answer with {@link findAnswer}.
   *
   * @param answerOf the answer, given the stored command
   * @throws LockgateError `no-such-device`, `commands-exhausted` as {@link add}
   */
  addOnce(
    command: NewCommand,
    call: IdempotentCall,
    answerOf: (record: CommandRecord) => string,
  ): Promise<CommandRecord>;
  /** Returns the answer to an earlier call with this key that is still valid; null if there was none. */
  findAnswer(call: Omit<IdempotentCall, 'bodyDigest'>): Promise<IdempotentAnswer | null>;
  find(id: number): Promise<CommandRecord | null>;
  /** Newest first. */
  list(filter: CommandFilter): Promise<CommandRecord[]>;
  /**
   * Returns the commands that are queued or sent, oldest first: of all locks or of these, all or those created at
   * `sinceMs` or later.
   */
  readUnfinished(deviceIds?: readonly number[], sinceMs?: number): Promise<CommandRecord[]>;
  /** Marks those of the given commands that are unfinished as expired; returns their ids. */
  expire(ids: readonly number[], atMs: number): Promise<number[]>;
  /**
   * Moves creation and expiry of those of the given commands that are unfinished by `byMs`, after a jump of the clock,
   * so that the jump itself expires none.
   */
  postpone(ids: readonly number[], byMs: number): Promise<void>;
  /** Cancels a command if it is still queued; returns whether it was. */
  cancel(id: number, atMs: number): Promise<boolean>;
  /**
   * Returns the set-power commands of the lock's current merchant that are done or may still be executed, and are due
   * by `nowMs`; newest first, at most `limit`.
   */
  readPowerChanges(deviceId: number, nowMs: number, limit: number): Promise<PowerChange[]>;
}
