/** Parses the lines of the broker Mosquitto's log about connects, disconnects and messages (Mosquitto 1.6–2.0). */
import type { DisconnectCause } from '../../../proto/power/judge/event.js';
import { parseRecordedTime } from '../recorded-time.js';

/** The content of a line. */
export type BrokerEvent =
  | { readonly kind: 'connect'; readonly clientId: string }
  | { readonly kind: 'disconnect'; readonly clientId: string; readonly cause: DisconnectCause }
  /** A client published (`up`), or was sent (`down`), a message of this topic and length. */
  | { readonly kind: 'publish'; readonly clientId: string; readonly topic: string; readonly bytes: number }
  /** The broker ended, and with it all connections. */
  | { readonly kind: 'stop' }
  /** A line that is no event of a trace, such as a PINGREQ. */
  | { readonly kind: 'other' };

/** A line of the log. */
export interface BrokerLine {
  /** Mosquitto logs whole seconds, so the event happened up to a second later. */
  readonly atMs: number;
  readonly event: BrokerEvent;
}

/** The time, a colon and the text, such as `1795154441: mosquitto version 2.0.18 starting`. */
const TIME = /^(\S+?): (.*)$/;
/** Such as `New client connected from 10.0.0.7:51342 as A4C138F0E1D2 (p2, c1, k60).` */
const CONNECT = /^New client connected from \S+ as (\S+) \(/;
/** Such as `Received PUBLISH from A4C138F0E1D2 (d0, q1, r0, m7, 'up', ... (44 bytes))`. */
const PUBLISH =
  /^(?:Received PUBLISH from|Sending PUBLISH to) (\S+) \(d\d, q\d, r\d, m\d+, '(.*)', \.\.\. \((\d+) bytes\)\)$/;
const STOP = /^mosquitto version \S+ terminating/;

/**
 * Lines about the end of a connection, with its cause: no packet came in time (`keepalive`), the client connected again
 * (`takeover`), the connection ended without DISCONNECT (`dropped`) or with it (`closed`), or the broker ended it
 * (`gateway`). The first pattern that matches counts.
 */
const DISCONNECTS: readonly (readonly [pattern: RegExp, cause: DisconnectCause])[] = [
  [/^Client (\S+) has exceeded timeout, disconnecting\.$/, 'keepalive'],
  [/^Client (\S+) already connected, closing old connection\.$/, 'takeover'],
  [/^Client (\S+) closed its connection\.$/, 'dropped'],
  [/^Socket error on client (\S+), disconnecting\.$/, 'dropped'],
  [/^Client (\S+) disconnected\.$/, 'closed'],
  [/^Client (\S+) disconnected(?:,|:| due to) .*$/, 'gateway'],
];

/** Parses a line; undefined for a line that is not of Mosquitto's log. */
export function parseBrokerLine(text: string, utcOffsetMs: number): BrokerLine | undefined {
  const match = TIME.exec(text);
  if (match === null) return undefined;
  const atMs = parseRecordedTime(match[1] as string, utcOffsetMs);
  return Number.isNaN(atMs) ? undefined : { atMs, event: eventOf(match[2] as string) };
}

function eventOf(text: string): BrokerEvent {
  const connected = CONNECT.exec(text)?.[1];
  if (connected !== undefined) return { kind: 'connect', clientId: connected };
  for (const [pattern, cause] of DISCONNECTS) {
    const clientId = pattern.exec(text)?.[1];
    if (clientId !== undefined) return { kind: 'disconnect', clientId, cause };
  }
  const publish = PUBLISH.exec(text);
  if (publish !== null) {
    // The pattern's three groups are in every match.
    const [, clientId, topic, bytes] = publish as unknown as readonly [string, string, string, string];
    return { kind: 'publish', clientId, topic, bytes: Number(bytes) };
  }
  return { kind: STOP.test(text) ? 'stop' : 'other' };
}
