/**
 * The sentences of the findings of the rule `owed`: an uplink or a connection is missing, or a position is wrong, given
 * the `world` events, which record what truly happened around the lock. Pure.
 */
import type { JsonObject } from '../../json-reader.js';
import { describeTime } from '../../power/judge/words.js';
import type { Uplink } from '../../wire/ping.js';
import type { Duty } from './duty.js';
import type { WrongPlace } from './whereabouts.js';

/** How much of a `world` event's members a sentence shows. */
const MAX_SHOWN_CHARACTERS = 80;

/**
 * What happened, by the trigger of the missing uplink. Three triggers never have a missing uplink, since no `world`
 * event causes them: the pings of a kept connection and the two that commands ask for.
 */
const WHY = {
  theft: 'the lock moved while it was locked',
  ride: 'the lock moved while it was unlocked',
  'state-change': 'the lock state changed',
  period: 'the daily ping was due',
  reset: 'the modem restarted',
  'kept-connection': '',
  'locate-gps': '',
  'locate-cell': '',
} as const;

/** The sentence about a missing uplink. It starts in lower case, as do the others. */
export function uplinkSentence({ trigger, kind, reasons, lockState, fromMs, byMs }: Duty): string {
  const type = kind === 'gps' ? 'GPS' : 'cellular';
  const state = lockState === null ? '' : ` with lock state ${lockState}`;
  const when = Number.isFinite(byMs)
    ? `between ${describeTime(fromMs)} and ${describeTime(byMs)}`
    : `after ${describeTime(fromMs)}`;
  const sky = kind === 'gps' ? ' under an open sky' : '';
  return `${WHY[trigger]}${sky}, and no ${type} ${reasons[0]}${state} was made ${when}`;
}

/** The sentence about a missing connection. */
export function connectionSentence(state: string, sinceMs: number): string {
  return `in ${state} the connection is kept, and the lock has not been connected since ${describeTime(sinceMs)}`;
}

/** The sentence about a position that is not true. */
export function placeSentence({ body }: Uplink, { meters, allowedMeters }: WrongPlace): string {
  const reason = body.kind === 'ack' ? '' : body.reason;
  const [distance, limit] = [meters, allowedMeters].map((value) => Math.round(value).toLocaleString('en-US'));
  return (
    `the position of the GPS ping ${reason} is ${distance} m from the true one, ` +
    `and may be at most ${limit} m from it`
  );
}

/** The members of a `world` event in a sentence, such as `moving true`. */
export function describeCause(members: JsonObject): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(members)) {
    if (name === 'at' || name === 'mac' || name === 'event') continue;
    parts.push(`${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  }
  const text = parts.join(', ');
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS - 1)}…` : text;
}
