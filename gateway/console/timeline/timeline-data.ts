/**
 * What a lock's timeline shows: its power states, connections, pings, commands, deliveries and findings over a span of
 * time. The report of `trace check` makes this data from a trace, the screens of the console make it from the
 * gateway's answers. Types only.
 */
import type { StateRow } from '../../../proto/power/model.js';

/** A span of time, ms since the epoch. */
export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A power state that a lock entered. */
export interface EnteredState {
  /** By the gateway's clock, ms since the epoch. */
  readonly atMs: number;
  /** The state's row in the power model's table. */
  readonly row: StateRow;
}

/** A ping that was received. */
export interface TimelinePing {
  readonly atMs: number;
  readonly reason: string;
  /** The text that identifies it to the caller when it is selected; null if it can't be selected. */
  readonly id: string | null;
  /** One line that describes it. */
  readonly title: string;
}

/** Something that lasted: a connection, or a command from being sent to its answer. */
export interface TimelineSpan {
  readonly fromMs: number;
  /** Null while it lasts. */
  readonly toMs: number | null;
  /** `good`, `bad` or `open`: how it ended, or that it has not. */
  readonly outcome: 'good' | 'bad' | 'open';
  readonly id: string | null;
  readonly title: string;
}

/** A delivery of an event to a webhook URL. */
export interface TimelineDelivery {
  /** When the event was received. */
  readonly fromMs: number;
  /** Oldest first. */
  readonly attempts: readonly { readonly atMs: number; readonly isGood: boolean }[];
  /** `good`: delivered; `bad`: given up; `open`: a further attempt is planned. */
  readonly outcome: 'good' | 'bad' | 'open';
  /** Names the URL. */
  readonly target: string;
  readonly id: string | null;
  readonly title: string;
}

/** A finding of the judge. */
export interface TimelineFinding {
  readonly atMs: number;
  readonly severity: 'violation' | 'warning';
  readonly id: string | null;
  readonly title: string;
}

/** Everything that one lock's timeline shows. A kind that the caller does not have is an empty list, and has no row. */
export interface TimelineData {
  /** The lock's MAC, with colons. */
  readonly mac: string;
  readonly states: readonly EnteredState[];
  readonly connections: readonly TimelineSpan[];
  readonly pings: readonly TimelinePing[];
  /** How many pings there are, if {@link pings} has only some of them. */
  readonly pingCount: number;
  readonly commands: readonly TimelineSpan[];
  readonly deliveries: readonly TimelineDelivery[];
  readonly findings: readonly TimelineFinding[];
}
