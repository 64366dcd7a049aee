/**
 * Parses a line of `mosquitto_sub -F '%I %t %x'` (or `%U` for the time): the time, the topic, and the payload in hex.
 * Source: mosquitto_sub(1), "Output format".
 */
import { bytesOfHex } from '../payload-event.js';
import { parseRecordedTime } from '../recorded-time.js';

/** A message that mosquitto_sub received. */
export interface SubscriberLine {
  readonly atMs: number;
  readonly topic: string;
  readonly payload: Uint8Array;
}

/** Such as `2026-11-20T06:00:00+0100 up 0801100d`. A topic may contain spaces, and a payload may be empty. */
const LINE = /^(\S+) (.+?)(?: ([0-9a-fA-F]*))?$/;

/** Parses a line; undefined for a line of another format. */
export function parseSubscriberLine(text: string, utcOffsetMs: number): SubscriberLine | undefined {
  const match = LINE.exec(text);
  if (match === null) return undefined;
  const atMs = parseRecordedTime(match[1] as string, utcOffsetMs);
  const payload = bytesOfHex(match[3] ?? '');
  // Lines of the broker's log have a colon after the time, so their time is NaN here.
  if (Number.isNaN(atMs) || payload === undefined) return undefined;
  return { atMs, topic: match[2] as string, payload };
}
