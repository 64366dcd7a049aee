/**
 * Parses the lines of a modem's log that matter for MQTT: the `AT+QMT…` commands and `+QMT…` results of Quectel modems.
 * A line is a time, optionally a direction (`>`, `<`, `TX`, `RX`, `->`, `<-`), and what was sent or received.
 */
import { bytesOfHex } from '../payload-event.js';
import { parseRecordedTime } from '../recorded-time.js';

/** The content of a line. `link` is the modem's number of the MQTT connection. */
export type AtEvent =
  | { readonly kind: 'connect-command'; readonly link: number; readonly clientId: string }
  | { readonly kind: 'connected'; readonly link: number; readonly isAccepted: boolean; readonly detail: string }
  /** The payload is in the command, or (undefined) in the next line that is sent to the modem. */
  | {
      readonly kind: 'publish-command';
      readonly link: number;
      readonly messageId: number;
      readonly topic: string;
      readonly payload: Uint8Array | undefined;
    }
  | { readonly kind: 'payload'; readonly payload: Uint8Array }
  /** The modem's result for a message; `retry`: the modem sends the message again. */
  | {
      readonly kind: 'published';
      readonly link: number;
      readonly messageId: number;
      readonly result: 'sent' | 'retry' | 'failed';
    }
  | { readonly kind: 'received'; readonly link: number; readonly topic: string; readonly payload: Uint8Array }
  | { readonly kind: 'disconnected'; readonly link: number }
  /** The connection ended; `code` is the modem's number for the reason. */
  | { readonly kind: 'status'; readonly link: number; readonly code: number }
  /** A line about MQTT that is not as expected. */
  | { readonly kind: 'unreadable' }
  /** Other traffic of the modem, such as `OK` or `+CSQ: 20,99`. */
  | { readonly kind: 'other' };

/** A line of the log, and its time in ms since the epoch. */
export interface AtLine {
  readonly atMs: number;
  readonly event: AtEvent;
}

/**
 * A time (a date, where a space may separate date and time of day, or Unix seconds), which may be in brackets, and the
 * remaining line, such as `[2026-11-20 06:00:00.120] > AT+QMTCONN=0,"A4C138F0E1D2"`.
 */
const LINE = /^\[?(\d{4}-\d\d-\d\d[ Tt][\d:.,]+ ?(?:[Zz]|[+-]\d\d:?\d\d)?|\d+(?:[.,]\d+)?)\]?:?\s+(.*)$/;
/** Whether the line was sent to the modem or came from it. */
const DIRECTION = /^(?:->|<-|>>|<<|[<>]|TX|RX)[:\s]\s*/;

/** Parses a line; undefined for a line without a time. `utcOffsetMs` is the UTC offset of a time without one. */
export function parseAtLine(text: string, utcOffsetMs: number): AtLine | undefined {
  const match = LINE.exec(text);
  if (match === null) return undefined;
  const atMs = parseRecordedTime((match[1] as string).trim(), utcOffsetMs);
  if (Number.isNaN(atMs)) return undefined;
  return { atMs, event: eventOf((match[2] as string).replace(DIRECTION, '').trim()) };
}

/** Parses the values of a command or result; undefined if they are malformed. */
type Parser = (values: readonly string[]) => AtEvent | undefined;

/**
 * The parser for each command and result, by its start. Source: manual "BG95&BG77 MQTT Application Note", chapter 3.
 */
const PARSERS: readonly (readonly [prefix: RegExp, parse: Parser])[] = [
  [/^AT\+QMTCONN=/i, parseConnectCommand],
  [/^\+QMTCONN:/i, parseConnected],
  [/^AT\+QMTPUB(?:EX)?=/i, parsePublishCommand],
  [/^\+QMTPUB(?:EX)?:/i, parsePublished],
  [/^\+QMTRECV:/i, parseReceived],
  [/^\+QMTDISC:/i, ([link]) => onLink(link, (number) => ({ kind: 'disconnected', link: number }))],
  [/^\+QMTSTAT:/i, parseStatus],
];

function eventOf(text: string): AtEvent {
  for (const [prefix, parse] of PARSERS) {
    const match = prefix.exec(text);
    if (match !== null) return parse(valuesOf(text.slice(match[0].length))) ?? { kind: 'unreadable' };
  }
  const payload = text === '' ? undefined : bytesOfHex(text);
  return payload === undefined ? { kind: 'other' } : { kind: 'payload', payload };
}

/**
 * The values between commas: in quotes, where a value may contain commas, or plain. A comma before another comma or the
 * end stands for an empty value.
 */
function valuesOf(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|([^",]+)|,(?=,|$)/g)].map(([, quoted, plain]) => quoted ?? plain?.trim() ?? '');
}

const NUMBER = /^\d{1,9}$/;

/** Makes the event if the link is a number. */
function onLink(link: string | undefined, makeEvent: (link: number) => AtEvent | undefined): AtEvent | undefined {
  return link !== undefined && NUMBER.test(link) ? makeEvent(Number(link)) : undefined;
}

/** `AT+QMTCONN=0,"client id","user","password"`: the password is not read. */
function parseConnectCommand([link, clientId]: readonly string[]): AtEvent | undefined {
  if (clientId === undefined) return undefined;
  return onLink(link, (number) => ({ kind: 'connect-command', link: number, clientId }));
}

/** `+QMTCONN: 0,0,0`: link, result, return code of CONNACK. A result of 1 is a retransmission. */
function parseConnected([link, result, code = '']: readonly string[]): AtEvent | undefined {
  if (result === '1') return { kind: 'other' };
  const isAccepted = result === '0' && code === '0';
  const detail = `result ${result}, return code ${code}`;
  return onLink(link, (number) => ({ kind: 'connected', link: number, isAccepted, detail }));
}

/** `AT+QMTPUB=0,1,1,0,"up",44` (link, message, QoS, retain, topic, length), or the payload in hex as last value. */
function parsePublishCommand([link, messageId, , , topic, last]: readonly string[]): AtEvent | undefined {
  if (messageId === undefined || !NUMBER.test(messageId) || topic === undefined) return undefined;
  const isLength = last === undefined || NUMBER.test(last);
  const payload = isLength ? undefined : bytesOfHex(last);
  if (!isLength && payload === undefined) return undefined;
  return onLink(link, (number) => ({
    kind: 'publish-command',
    link: number,
    messageId: Number(messageId),
    topic,
    payload,
  }));
}

/** `+QMTPUB: 0,1,0`: link, message, result. */
function parsePublished([link, messageId, result]: readonly string[]): AtEvent | undefined {
  if (messageId === undefined || !NUMBER.test(messageId) || result === undefined) return undefined;
  const outcome = result === '0' ? 'sent' : result === '1' ? 'retry' : 'failed';
  return onLink(link, (number) => ({ kind: 'published', link: number, messageId: Number(messageId), result: outcome }));
}

/** `+QMTRECV: 0,0,"down",12,"0801…"`: link, message, topic, the length if the modem shows it, payload in hex. */
function parseReceived(values: readonly string[]): AtEvent | undefined {
  const [link, , topic] = values;
  const payload = values.length < 4 ? undefined : bytesOfHex(values.at(-1) as string);
  if (topic === undefined || payload === undefined) return undefined;
  return onLink(link, (number) => ({ kind: 'received', link: number, topic, payload }));
}

/** `+QMTSTAT: 0,1`: link, why the connection ended. */
function parseStatus([link, code]: readonly string[]): AtEvent | undefined {
  if (code === undefined || !NUMBER.test(code)) return undefined;
  return onLink(link, (number) => ({ kind: 'status', link: number, code: Number(code) }));
}
