/**
 * How long commands live, and how much of them is taken: every number about commands, with its reason. Spans are by the
 * run's clock, since locks live by it, but for the one that is about MQTT.
 */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { Command } from '../../proto/wire/ping.js';

/** What moves or sounds a lock dies young: one that wakes at dawn must not spring open for last night's tap. */
const SHORT_LIFE = Minutes(2);
const LONG_LIFE = Hours(24);

/**
 * How long a command lives where nobody says otherwise, counted from when it may leave first (protocol.md §1).
 */
export function lifeOf(type: Command['type']): Milliseconds {
  return type === 'unlock' || type === 'lock' || type === 'siren' ? SHORT_LIFE : LONG_LIFE;
}

/** The longest life that may be asked for, and how far ahead a command may be scheduled. */
export const LONGEST_LIFE = Days(30);
export const FARTHEST_SCHEDULE = Days(366);

/** Commands that may wait for one lock: bounds memory, and what a lock that wakes must go through. */
export const MOST_WAITING_PER_LOCK = 100;

/** Locks that one request may name one by one. */
export const MOST_MACS = 10_000;

/** A siren of more than ten minutes is a mistake, and an empty battery. */
export const SIREN_MOST_SECONDS = 600;

/** Offsets that are in use on Earth lie within; the wire would take more. */
export const UTC_OFFSET_MOST_MINUTES = 840;

/**
 * A lock's first uplink on a connection says whether its battery allows commands, so the first command waits for it,
 * but not for ever. By the wall's clock, as all of MQTT.
 */
export const FIRST_WORD_WAIT = Seconds(1);

/** A command that stays unanswered on a live connection is sent again after this, and then after twice as long … */
const RESEND_AFTER = Seconds(30);
/** … and so on up to this: each costs the lock some 30 bytes. */
const RESEND_AT_LATEST = Minutes(15);

/** When to send again what was sent `times` on one connection. A search for a fix has its time first. */
export function resendAfter(type: Command['type'], times: number): Milliseconds {
  const doubled = Math.min(RESEND_AFTER * 2 ** (times - 1), RESEND_AT_LATEST);
  return type === 'locate-gps' ? doubled + POWER_MODEL.timings.fixSearchEnds : doubled;
}

/** Commands on their way through the ingest at once: a whole fleet's must not keep uplinks out of it. */
export const MOST_LEAVING = 1000;

/** set-power commands looked at for what is wanted of a lock: past it older ones no longer count. */
export const TWIN_WISHES = 200;

/** Commands that a list shows: where nothing is said, and at most. */
export const LISTED = 50;
export const LISTED_MOST = 1000;
