/**
 * The reader's filter of the live events: it is read from the page's address, and decides which lines are shown. Pure.
 */
import { type EventJson, eventText } from '../../wording/event-text.js';

/** The wanted lines. An empty text selects all. */
export interface TailFilter {
  /** A part of the lock's MAC or name. */
  readonly lock: string;
  /** A merchant's name. */
  readonly merchant: string;
  /** A kind of event, such as `ping`. */
  readonly kind: string;
  /** The reason of a ping, such as `REASON_THEFT`. Events without a reason do not match. */
  readonly reason: string;
  /** Words of the line. */
  readonly search: string;
}

/** Looks up names for events, which have only the MAC of a lock or the id of a webhook URL. */
export interface TailNames {
  readonly lockName: (mac: string) => string | null;
  /** The merchant of the event's lock or webhook URL; undefined if it is not known. */
  readonly merchantOf: (event: EventJson) => string | undefined;
}

/** The filter of an address. */
export function readTailFilter(query: Readonly<Record<string, string>>): TailFilter {
  const { lock = '', merchant = '', kind = '', reason = '', search = '' } = query;
  return { lock, merchant, kind, reason, search };
}

/** Whether all lines are wanted. */
export function isOpenFilter(filter: TailFilter): boolean {
  return Object.values(filter).every((text) => text === '');
}

/** Whether a line is wanted. */
export function isWanted(event: EventJson, filter: TailFilter, names: TailNames): boolean {
  const { lock, merchant, kind, reason, search } = filter;
  if (kind !== '' && event.event !== kind) return false;
  if (reason !== '' && reasonOf(event) !== reason) return false;
  if (lock !== '' && !isOfLock(event, lock.toLowerCase(), names)) return false;
  if (merchant !== '' && names.merchantOf(event) !== merchant) return false;
  return search === '' || hasWords(event, search);
}

/** The reason of a ping; undefined for other events. */
function reasonOf({ ping }: EventJson): unknown {
  return (ping as EventJson | undefined)?.reason;
}

function isOfLock({ mac }: EventJson, part: string, { lockName }: TailNames): boolean {
  if (typeof mac !== 'string') return false;
  return mac.toLowerCase().includes(part) || (lockName(mac)?.toLowerCase().includes(part) ?? false);
}

function hasWords(event: EventJson, search: string): boolean {
  const { label, text } = eventText(event);
  const line = `${label} ${text}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => line.includes(word));
}
