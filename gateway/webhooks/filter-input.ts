/**
 * Checks an operator's change of a webhook URL's filter, which says what events the URL gets, and applies the change.
 * Pure.
 */
import type { PingType } from '../../proto/wire/ping-fields.js';
import { isReason, REASON_NAMES } from '../../proto/wire/reasons.js';
import { faultAt, type RequestFaults } from '../faults.js';
import { type Labels, labelsFault, orderedLabels } from '../store/contract/devices/device-labels.js';
import { EVENT_TYPES, type EventType } from '../store/contract/webhooks/merchant-event.js';
import { NO_FILTER, type WebhookFilter } from '../store/contract/webhooks/webhook-filter.js';

/** Members to change: an empty one removes the limit; an undefined one changes nothing. */
export interface FilterChange {
  readonly events?: readonly string[] | undefined;
  readonly reasons?: readonly string[] | undefined;
  readonly pingTypes?: readonly string[] | undefined;
  readonly labels?: Labels | undefined;
}

const PING_TYPES: readonly PingType[] = ['cellular', 'gps', 'close_connection'];

/** The filter after the change; undefined if the change names nothing. @throws LockgateError `input-filter` */
export function changedFilter(change: FilterChange, before: WebhookFilter = NO_FILTER): WebhookFilter | undefined {
  const { events, reasons, pingTypes, labels } = change;
  if (events === undefined && reasons === undefined && pingTypes === undefined && labels === undefined)
    return undefined;
  return {
    events: events === undefined ? before.events : checkEvents(events),
    reasons: reasons === undefined ? before.reasons : checkReasons(reasons),
    pingTypes: pingTypes === undefined ? before.pingTypes : checkPingTypes(pingTypes),
    labels: labels === undefined ? before.labels : checkLabels(labels),
  };
}

/** The types in their usual order; null if they are pings only, as by default. */
function checkEvents(events: readonly string[]): readonly EventType[] | null {
  const wrong = events.find((each) => !(EVENT_TYPES as readonly string[]).includes(each));
  if (wrong !== undefined) throw wrongFilter('/events', 'type of event', wrong, EVENT_TYPES.join(', '));
  const chosen = EVENT_TYPES.filter((type) => events.includes(type));
  return chosen.length === 0 || (chosen.length === 1 && chosen[0] === 'ping') ? null : chosen;
}

function checkReasons(reasons: readonly string[]): readonly string[] | null {
  const wrong = reasons.find((each) => !isReason(each));
  if (wrong !== undefined) throw wrongFilter('/reasons', 'reason', wrong, REASON_NAMES.join(', '));
  return distinct(reasons);
}

function checkPingTypes(pingTypes: readonly string[]): readonly string[] | null {
  const wrong = pingTypes.find((each) => !(PING_TYPES as readonly string[]).includes(each));
  if (wrong !== undefined) throw wrongFilter('/ping_types', 'ping type', wrong, PING_TYPES.join(', '));
  return distinct(pingTypes);
}

function checkLabels(labels: Labels): Labels | null {
  const fault = labelsFault(labels);
  if (fault !== undefined)
    throw faultAt('input-filter', '/labels', `the label ${JSON.stringify(fault.key)}: ${fault.detail}`);
  return Object.keys(labels).length === 0 ? null : orderedLabels(labels);
}

/** The values without repetitions; null if there are none. */
function distinct(values: readonly string[]): readonly string[] | null {
  return values.length === 0 ? null : [...new Set(values)];
}

function wrongFilter(pointer: string, what: string, value: string, expected: string): RequestFaults {
  return faultAt('input-filter', pointer, `${JSON.stringify(value.slice(0, 80))} is no ${what}: expected ${expected}`);
}
