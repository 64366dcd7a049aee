/**
 * Formats each event of a gateway as one line, for `tail`, the demo and the simulator's shell. Pure.
 */

import {
  type EventJson,
  type EventTone,
  eventText,
  timeOf,
  withFindings,
} from '../../../gateway/console/wording/event-text.js';
import { paint, type Style, sanitizeLine } from '../../terminal/output.js';
import { cutToWidth } from '../../terminal/text-width.js';

const LABEL_WIDTH = 5;
/** A MAC with its colons. */
const MAC_WIDTH = 17;

const STYLES: Readonly<Record<EventTone, Style>> = {
  good: 'green',
  bad: 'red',
  warn: 'yellow',
  quiet: 'dim',
  lock: 'cyan',
  command: 'blue',
};

/**
 * The lines of an event: one for the event, and one for each of its findings, the rules that an uplink breaks; cut to
 * `width`, if given. `hasMac` says whether the lines have the MAC.
 */
export function eventLines(event: EventJson, width?: number, hasMac = true): string[] {
  return withFindings(event).map((each) => eventLine(each, width, hasMac));
}

/**
 * The line with the bytes of an uplink in hex, for `ping decode`; undefined if the event has none. It is never cut,
 * because a part of the bytes can't be decoded.
 */
export function hexLine(event: EventJson): string | undefined {
  if (typeof event.raw !== 'string') return undefined;
  const hex = Buffer.from(event.raw, 'base64').toString('hex');
  return `${timeAndMac(event, true)}${paint('dim', 'hex'.padEnd(LABEL_WIDTH))} ${hex}`;
}

/** The time and, with `hasMac`, the lock. */
function timeAndMac({ at, mac }: EventJson, hasMac: boolean): string {
  return `${timeOf(String(at))} ${hasMac ? `${(typeof mac === 'string' ? mac : '').padEnd(MAC_WIDTH)} ` : ''}`;
}

/** The line of an event, cut to `width`, if given. `hasMac` says whether the line has the MAC. */
export function eventLine(event: EventJson, width?: number, hasMac = true): string {
  const { label, tone, text } = eventText(event);
  const head = timeAndMac(event, hasMac);
  const room = width === undefined ? Number.POSITIVE_INFINITY : width - head.length - LABEL_WIDTH - 1;
  return `${head}${paint(STYLES[tone], label.padEnd(LABEL_WIDTH))} ${cutToWidth(sanitizeLine(text), room)}`;
}
