/**
 * Parses a line of `mosquitto_sub -F '%I %t %x'` (or `%U` for the time): when, on which topic, the payload in hex.
 * mosquitto_sub(1), "Output format".
 */
import { bytesOfHex } from '../payload-event.js';
import { parseRecordedTime } from '../recorded-time.js';

/** A message that mosquitto_sub received. */
export interface SubscriberLine {
  readonly atMs: number;
  readonly topic: string;
  readonly payload: Uint8Array;
}

/** A topic may contain spaces, and a payload may be empty. */
const LINE = /^(\S+) (.+?)(?: ([0-9a-fA-F]*))?$/;

/** Undefined for a line of another kind. */
export function parseSubscriberLine(text: string, utcOffsetMs: number): SubscriberLine | undefined {
  const match = LINE.exec(text);
  if (match === null) return undefined;
  const atMs = parseRecordedTime(match[1] as string, utcOffsetMs);
  const payload = bytesOfHex(match[3] ?? '');
  // The broker's lines have a colon after the time.
  if (Number.isNaN(atMs) || payload === undefined) return undefined;
  return { atMs, topic: match[2] as string, payload };
}
