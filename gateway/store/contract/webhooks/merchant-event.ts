/**
 * Events for merchants that are not pings: a command has ended, a lock is late or back, its battery is low or charged
 * (interfaces.md §3, "What a URL gets"). Each is a row of the log beside the uplinks, with a kind of its own, and is
 * stored only if a webhook URL of the merchant gets its type. Its content is JSON and never changes. Pure.
 */
import type { CommandState } from '../command-record.js';

/** The types of events that a URL can get. */
export const EVENT_TYPES = ['ping', 'command', 'presence', 'battery'] as const;
export type EventType = (typeof EVENT_TYPES)[number];
export type MerchantEventType = Exclude<EventType, 'ping'>;

/** The kinds of the events' rows in the log; lower kinds are those of uplinks (`UPLINK_KINDS` of log/commit.ts). */
export const MERCHANT_EVENT_KINDS: Readonly<Record<MerchantEventType, number>> = {
  command: 4,
  presence: 5,
  battery: 6,
};
/** Rows of the log with this kind or a higher one are no uplinks. */
export const FIRST_EVENT_KIND = 4;

/** The type of the event in a row of the log. */
export function eventTypeOf(kind: number): EventType {
  if (kind === MERCHANT_EVENT_KINDS.command) return 'command';
  if (kind === MERCHANT_EVENT_KINDS.presence) return 'presence';
  return kind === MERCHANT_EVENT_KINDS.battery ? 'battery' : 'ping';
}

/** An event to be stored with the commit that caused it. `atMs` is by the run's clock. */
export interface NewMerchantEvent {
  readonly deviceId: number;
  readonly type: 'presence' | 'battery';
  readonly atMs: number;
  readonly content: PresenceContent | BatteryContent;
}

/**
 * The content of a `command` event, as of the end of the command. The store's SQL trigger `command_outcome` makes it.
 */
export interface CommandContent {
  readonly id: number;
  readonly command: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly state: CommandState;
  /** The lock's reason; empty if there is none. */
  readonly detail: string;
  /** Who asked for the command, in a few words. */
  readonly askedBy: string;
  readonly createdAtMs: number;
  readonly firstSentAtMs: number | null;
  readonly sentCount: number;
}

/** The content of a `presence` event. */
export interface PresenceContent {
  readonly presence: 'late' | 'back';
  /** Since when the lock is late, or was. */
  readonly lateSinceMs: number;
}

/** The content of a `battery` event. */
export interface BatteryContent {
  readonly battery: 'low' | 'charged';
  readonly percent: number;
}
