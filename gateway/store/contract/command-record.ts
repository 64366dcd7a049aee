/**
 * Commands as the store has them (protocol.md §1 and §2, Commands): what was asked of which lock, and what became of
 * it. All times are ms since the epoch by the run's clock, since locks live by it (protocol.md §3, Sped-up runs).
 */
import type { Mac } from '../../../proto/wire/mac.js';
import type { Command, PowerChange } from '../../../proto/wire/ping.js';

/**
 * Where a command stands: `queued` until it leaves for the first time, `sent` until the lock answers, then what the
 * lock made of it (`done`, `rejected`, `failed`); `expired` where its time was over first; `cancelled` where an
 * operator took it back before it left, or the lock was removed or moved to another merchant before it answered.
 */
export const COMMAND_STATES = ['queued', 'sent', 'done', 'rejected', 'failed', 'expired', 'cancelled'] as const;
export type CommandState = (typeof COMMAND_STATES)[number];

/** What the lock made of a command. */
export type AnsweredState = Extract<CommandState, 'done' | 'rejected' | 'failed'>;

/** A command on its way into the store. */
export interface NewCommand {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly command: Command;
  readonly createdAtMs: number;
  /** When it is scheduled for; null for one that may leave at once. */
  readonly notBeforeMs: number | null;
  /** From then on it is neither sent nor carried out. */
  readonly expiresAtMs: number;
  /** Who asked for it, in a word or two for people. */
  readonly askedBy: string;
}

/** A command as the store has it. */
export interface CommandRecord extends NewCommand {
  /** Unique in this store, growing, never given twice; it is the id on the wire, so it fits 32 bits. */
  readonly id: number;
  readonly mac: Mac;
  readonly state: CommandState;
  readonly firstSentAtMs: number | null;
  readonly lastSentAtMs: number | null;
  readonly sentCount: number;
  /** When the lock's answer came, or it expired or was cancelled. */
  readonly finishedAtMs: number | null;
  /** The lock's word on why; empty where there is none. */
  readonly detail: string;
}

/**
 * What one commit changes of commands, in order. An acknowledgement counts once: the first, from the lock that the
 * command was sent to. It counts for an expired or cancelled command too, which was carried out before and told late.
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

/** What the gateway asks of its store about commands; the promises are those of the store itself. */
export interface CommandStore {
  /**
   * All of them or none; in the order given. Rejects with `no-such-device` where a lock was removed or moved since it
   * was looked up, and with `commands-exhausted` where ids no longer fit the wire. By the time it resolves a command
   * may be cancelled already: see its state.
   */
  add(commands: readonly NewCommand[]): Promise<CommandRecord[]>;
  find(id: number): Promise<CommandRecord | null>;
  /** Newest first. */
  list(filter: CommandFilter): Promise<CommandRecord[]>;
  /** All that are queued or sent, oldest first. */
  readUnfinished(): Promise<CommandRecord[]>;
  /** Marks those of them as expired that are unfinished still; answers which. */
  expire(ids: readonly number[], atMs: number): Promise<number[]>;
  /** Has those of them that are unfinished still be asked for, and expire, later by so much. */
  postpone(ids: readonly number[], byMs: number): Promise<void>;
  /** Marks it as cancelled where it is queued still; answers whether it was. */
  cancel(id: number, atMs: number): Promise<boolean>;
  /**
   * What set-power commands of the merchant that has the lock ask of it that are done or may still be, and whose time
   * has come by `nowMs`: the newest first, at most `limit`.
   */
  readPowerWishes(deviceId: number, nowMs: number, limit: number): Promise<PowerChange[]>;
}
