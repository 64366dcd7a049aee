/**
 * The calls that the readers of the bench's row `reads` make: each GET of a merchant's own data, with parameters as
 * programs use them: first pages and late ones, old cursors and new ones, filters that match much or little. Pure.
 */
import { encodeCursor } from '../../../gateway/http/merchant/own-data/cursor.js';
import { Days } from '../../../proto/clock.js';
import { lockMac } from '../load/many-locks.js';

/** What the calls are about. */
export interface ReadSubject {
  /** The number of the merchant's locks. */
  readonly locks: number;
  readonly merchantId: number;
  /** The id of the first lock; the locks' ids are consecutive. */
  readonly firstDeviceId: number;
  /** The id of the last stored ping, and the time when it was received. */
  readonly lastPingId: number;
  readonly endMs: number;
  /** The days over which the stored pings are spread. */
  readonly historyDays: number;
  /** A URL with dead deliveries. */
  readonly webhookId: number;
  /** The id of the last stored command, and the number of commands. */
  readonly lastCommandId: number;
  readonly commands: number;
  /** A month whose statement is final. */
  readonly closedMonth: string;
  /** The id of one of the events whose delivery is dead. */
  readonly event: string;
}

/** A call that a reader makes repeatedly. */
export interface ReadCall {
  /** What the figures are reported under. */
  readonly name: string;
  /** The route's `operationId`. */
  readonly operationId: string;
  /**
   * The path of the next request.
   *
   * @param random a number from 0 to 1, different for each request
   * @param newestCursor the cursor of the newest event that any reader has seen
   */
  readonly path: (subject: ReadSubject, random: number, newestCursor: string) => string;
}

/** The call that waits for new events; its answers move the newest cursor. */
export const WAITING_CALL = 'events, waiting';

const LIMIT = 100;
const MAX_LIMIT = 1_000;

// The labels and names in the calls below are those that fill-history.ts gives to the locks.

function macAt({ locks }: ReadSubject, random: number): string {
  return lockMac(Math.floor(random * locks));
}

/** A time as a parameter; `share` of the history is before it. */
function timeAt({ endMs, historyDays }: ReadSubject, share: number): string {
  return new Date(endMs - (1 - share) * Days(historyDays)).toISOString();
}

// The cursors below are made as the gateway makes them: from the name of the list, with all that its order depends on,
// and the position of the last entry that the page before had.

/** The cursor of events after a share of the history. */
export function eventCursor({ merchantId, lastPingId, endMs, historyDays }: ReadSubject, share: number): string {
  const completeToMs = Math.floor(endMs - (1 - share) * Days(historyDays));
  return encodeCursor(`events ${merchantId}`, [Math.floor(share * lastPingId), completeToMs]);
}

/** Its values are the one that the list is sorted by (not used by MAC), the MAC, and no remembered order. */
function locksCursor(subject: ReadSubject, random: number): string {
  const asked = { filter: { merchantId: subject.merchantId }, order: { key: 'mac', isDescending: false } };
  return encodeCursor(`locks ${JSON.stringify(asked)}`, [0, macAt(subject, random), '', 0]);
}

function commandCursor(subject: ReadSubject, random: number): string {
  const id = subject.lastCommandId - Math.floor(random * subject.commands);
  return encodeCursor(JSON.stringify(['commands', null, null]), [id]);
}

function call(name: string, operationId: string, path: ReadCall['path']): ReadCall {
  return { name, operationId, path };
}

/** All calls, in the order in which a reader makes them. */
export const READ_CALLS: readonly ReadCall[] = [
  call('locks', 'listLocks', () => `/v1/locks?limit=${LIMIT}`),
  call(
    'locks, late page',
    'listLocks',
    (subject, random) => `/v1/locks?limit=${LIMIT}&cursor=${locksCursor(subject, random)}`,
  ),
  call('locks, trouble first', 'listLocks', () => `/v1/locks?sort=trouble&limit=${LIMIT}`),
  call(
    'locks of a label',
    'listLocks',
    (_, random) => `/v1/locks?label=city%3Dcity-${Math.floor(random * 20)}&limit=${LIMIT}`,
  ),
  call('locks, searched', 'listLocks', (_, random) => `/v1/locks?search=harbour%20${1000 + Math.floor(random * 9000)}`),
  call('one lock', 'getLock', (subject, random) => `/v1/locks/${macAt(subject, random)}`),
  call('pings', 'listPings', (subject, random) => `/v1/locks/${macAt(subject, random)}/pings?limit=${LIMIT}`),
  call('pings of an early day', 'listPings', (subject, random) => {
    const share = 0.1 + random * 0.3;
    const span = `from=${timeAt(subject, share)}&to=${timeAt(subject, share + 1 / subject.historyDays)}`;
    return `/v1/locks/${macAt(subject, random)}/pings?${span}&limit=${LIMIT}`;
  }),
  call('pings by reason', 'listPings', (subject, random) => {
    return `/v1/locks/${macAt(subject, random)}/pings?reason=REASON_THEFT&ping_type=gps&limit=${LIMIT}`;
  }),
  call('track of a day', 'getTrack', (subject, random) => {
    const share = random * 0.9;
    const span = `from=${timeAt(subject, share)}&to=${timeAt(subject, share + 1 / subject.historyDays)}`;
    return `/v1/locks/${macAt(subject, random)}/track?${span}`;
  }),
  call('findings of all locks', 'listAllFindings', () => `/v1/findings?limit=${LIMIT}`),
  call('findings', 'listFindings', (subject, random) => `/v1/locks/${macAt(subject, random)}/findings`),
  call('why an event', 'explain', ({ event }) => `/v1/why/${event}`),
  call('why a finding', 'explain', (subject, random) => `/v1/why/finding:${1 + Math.floor(random * subject.locks)}`),
  call('events, oldest', 'listEvents', () => `/v1/events?limit=${LIMIT}`),
  call('events, late cursor', 'listEvents', (subject, random) => {
    return `/v1/events?limit=${LIMIT}&after=${eventCursor(subject, 0.5 + random / 2)}`;
  }),
  call('events by reason', 'listEvents', (subject, random) => {
    return `/v1/events?limit=${LIMIT}&reasons=REASON_THEFT&after=${eventCursor(subject, random)}`;
  }),
  call(
    WAITING_CALL,
    'listEvents',
    (_subject, _random, cursor) => `/v1/events?limit=${MAX_LIMIT}&wait=1&after=${cursor}`,
  ),
  call('commands', 'listCommands', () => `/v1/commands?limit=${LIMIT}`),
  call(
    'commands, late page',
    'listCommands',
    (subject, random) => `/v1/commands?limit=${LIMIT}&cursor=${commandCursor(subject, random)}`,
  ),
  call(
    'commands of a lock',
    'listCommands',
    (subject, random) => `/v1/commands?mac_addr=${macAt(subject, random)}&state=expired`,
  ),
  call('one command', 'getCommand', ({ lastCommandId, commands }, random) => {
    return `/v1/commands/${lastCommandId - Math.floor(random * commands)}`;
  }),
  call('webhooks', 'listWebhooks', () => '/v1/webhooks'),
  call('deliveries', 'listDeliveries', ({ webhookId }) => `/v1/webhooks/${webhookId}/deliveries?limit=${LIMIT}`),
  call(
    'dead deliveries',
    'listDeliveries',
    ({ webhookId }) => `/v1/webhooks/${webhookId}/deliveries?state=dead&limit=${LIMIT}`,
  ),
  call('hours of a URL', 'listDeliveryHours', ({ webhookId }) => `/v1/webhooks/${webhookId}/hours`),
  call('usage', 'listUsage', () => `/v1/usage?limit=${LIMIT}`),
  call('statements', 'listStatements', () => '/v1/statements'),
  call('one statement', 'getStatement', ({ closedMonth }) => `/v1/statements/${closedMonth}`),
  call('invitations', 'listInvitations', () => `/v1/invitations?limit=${LIMIT}`),
  call('states of a day', 'getLockHistory', (subject, random) => {
    const share = random * 0.9;
    const span = `from=${timeAt(subject, share)}&to=${timeAt(subject, share + 1 / subject.historyDays)}`;
    return `/v1/locks/${macAt(subject, random)}/history?${span}`;
  }),
  call('users', 'listUsers', () => `/v1/users?limit=${LIMIT}`),
];
