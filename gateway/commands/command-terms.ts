/**
 * Every limit and time span of commands, with its reason. Spans are by the run's clock, which locks use and which a
 * demonstration can run faster than real time, except {@link FIRST_UPLINK_WAIT}, which is about MQTT.
 */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { Command } from '../../proto/wire/ping.js';

/**
 * For commands that move or sound a lock: a lock that wakes in the morning must not open for a tap on the app the
 * evening before.
 */
const SHORT_LIFETIME = Minutes(2);
const LONG_LIFETIME = Hours(24);

/** How long a command stays valid by default, counted from when it may first be sent (protocol.md §1). */
export function defaultLifetime(type: Command['type']): Milliseconds {
  return type === 'unlock' || type === 'lock' || type === 'siren' ? SHORT_LIFETIME : LONG_LIFETIME;
}

/** The longest validity that a request may ask for, and how far ahead a command may be scheduled. */
export const MAX_LIFETIME = Days(30);
export const MAX_SCHEDULE_AHEAD = Days(366);

/** Maximum number of commands that wait for one lock: limits memory, and what a lock must execute when it wakes. */
export const MAX_WAITING_PER_LOCK = 100;

/** Maximum number of locks that one request may send a command to. */
export const MAX_MACS_PER_REQUEST = 10_000;

/** A siren of more than ten minutes is a mistake, and empties the battery. */
export const MAX_SIREN_SECONDS = 600;

/** All offsets in use on Earth are within this; the wire format allows more. */
export const MAX_UTC_OFFSET_MINUTES = 840;

/**
 * A lock's first uplink on a connection shows whether its battery allows commands, so the first command waits this long
 * for it. Wall-clock time, as everywhere in MQTT.
 */
export const FIRST_UPLINK_WAIT = Seconds(1);

/**
 * A command that stays unanswered on an open connection is sent again after the minimum. Each further wait is twice as
 * long, up to the maximum, since each send costs the lock some 30 bytes.
 */
const MIN_RESEND_DELAY = Seconds(30);
const MAX_RESEND_DELAY = Minutes(15);

/** How long after its last send a command is sent again, after `sendCount` sends on one connection. */
export function resendDelay(type: Command['type'], sendCount: number): Milliseconds {
  const doubled = Math.min(MIN_RESEND_DELAY * 2 ** (sendCount - 1), MAX_RESEND_DELAY);
  // The lock may search for a GPS fix before it answers, for 120 s at most.
  return type === 'locate-gps' ? doubled + POWER_MODEL.timings.fixSearchEnds : doubled;
}

/** Maximum number of commands in the ingest's queue: the commands of a whole fleet must not keep uplinks out. */
export const MAX_LEAVING_COMMANDS = 1000;

/** Maximum number of set-power commands of a lock that are read for its twin (twin.ts); older ones do not count. */
export const MAX_TWIN_COMMANDS = 200;

/** The number of commands that a list shows: default and maximum. */
export const DEFAULT_LISTED = 50;
export const MAX_LISTED = 1000;

/**
 * So many ends of commands are remembered, in less than a megabyte. They are needed for as long as a read of unfinished
 * commands lasts, with its wait between two commits: some seconds. If more end in that time, as when a large fleet's
 * commands expire together, one that was being read may be reported twice.
 */
export const MAX_REMEMBERED_ENDS = 10_000;
