/**
 * Which events a webhook URL gets (interfaces.md §3, "What a URL gets"): by type of the event, by reason and type of
 * the ping, by the lock's labels. Pure.
 */
import { decodeUplink } from '../../../../proto/wire/codec.js';
import { isPingUplink } from '../../../../proto/wire/ping.js';
import type { Labels } from '../devices/device-labels.js';
import type { StoredUplink } from '../log/stored-uplink.js';
import { type EventType, eventTypeOf } from './merchant-event.js';

/** A member that is null excludes nothing, except for `events`: null lets only pings pass. */
export interface WebhookFilter {
  /** The types of events. `reasons` and `pingTypes` are about pings only. */
  readonly events: readonly EventType[] | null;
  /** Names of the reasons why a lock sent the ping, such as `REASON_THEFT`. */
  readonly reasons: readonly string[] | null;
  /** Such as `cellular`. */
  readonly pingTypes: readonly string[] | null;
  /** The lock must have all of them. */
  readonly labels: Labels | null;
}

/** The filter of a URL that gets all pings. */
export const NO_FILTER: WebhookFilter = Object.freeze({
  events: null,
  reasons: null,
  pingTypes: null,
  labels: null,
});

/** Whether no member of the filter is set, as in {@link NO_FILTER}. */
export function isEmptyFilter({ events, reasons, pingTypes, labels }: WebhookFilter): boolean {
  return events === null && reasons === null && pingTypes === null && labels === null;
}

const ONLY_PINGS: readonly EventType[] = ['ping'];

/** The part of a stored event that decides whether it passes. */
export type FilteredEvent = Pick<StoredUplink, 'kind' | 'bytes' | 'isDamaged' | 'deviceId'>;

/**
 * Whether an event passes the filter.
 *
 * @param labelsOf returns the present labels of a lock; called only if the filter has labels
 */
export function passesFilter(
  { events, reasons, pingTypes, labels }: WebhookFilter,
  { kind: storedKind, bytes, isDamaged, deviceId }: FilteredEvent,
  labelsOf: (deviceId: number) => Labels,
): boolean {
  const type = eventTypeOf(storedKind);
  if (!(events ?? ONLY_PINGS).includes(type)) return false;
  if (labels !== null && !hasLabels(labelsOf(deviceId), labels)) return false;
  if (type !== 'ping' || (reasons === null && pingTypes === null)) return true;
  const decoded = isDamaged ? undefined : decodeUplink(bytes);
  // Whether a damaged ping would pass is unknown. It counts as passing, so that it is reported as damaged, not lost.
  if (!decoded?.ok || !isPingUplink(decoded.value)) return true;
  const { kind, reason } = decoded.value.body;
  return (reasons?.includes(reason) ?? true) && (pingTypes?.includes(kind) ?? true);
}

/** Whether a lock with `labels` has all wanted ones. */
export function hasLabels(labels: Labels, wanted: Labels): boolean {
  return Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}
