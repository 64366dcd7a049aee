/**
 * Which events (stored pings) a webhook URL gets (interfaces.md §3, "What a URL gets"): by reason, by type of the ping,
 * by the lock's labels. Pure.
 */
import { decodeUplink } from '../../../../proto/wire/codec.js';
import { isPingUplink } from '../../../../proto/wire/ping.js';
import type { Labels } from '../merchants/device-labels.js';
import type { StoredUplink } from '../stored-uplink.js';

/** A member that is null lets every event pass. */
export interface WebhookFilter {
  /** Names of reasons. */
  readonly reasons: readonly string[] | null;
  /** Such as `cellular`. */
  readonly pingTypes: readonly string[] | null;
  /** The lock must have all of them. */
  readonly labels: Labels | null;
}

/** The filter of a URL that gets all events. */
export const NO_FILTER: WebhookFilter = Object.freeze({ reasons: null, pingTypes: null, labels: null });

/** Whether every event passes the filter. */
export function isEmptyFilter({ reasons, pingTypes, labels }: WebhookFilter): boolean {
  return reasons === null && pingTypes === null && labels === null;
}

/**
 * Whether an event passes the filter.
 *
 * @param labelsOf returns the present labels of a lock; called only if the filter has labels
 */
export function passesFilter(
  { reasons, pingTypes, labels }: WebhookFilter,
  { bytes, isDamaged, deviceId }: Pick<StoredUplink, 'bytes' | 'isDamaged' | 'deviceId'>,
  labelsOf: (deviceId: number) => Labels,
): boolean {
  if (labels !== null && !hasLabels(labelsOf(deviceId), labels)) return false;
  if (reasons === null && pingTypes === null) return true;
  const decoded = isDamaged ? undefined : decodeUplink(bytes);
  // Of a damaged ping it is not known whether it passes: it is kept for the URL, and reported as damaged.
  if (!decoded?.ok || !isPingUplink(decoded.value)) return true;
  const { kind, reason } = decoded.value.body;
  return (reasons?.includes(reason) ?? true) && (pingTypes?.includes(kind) ?? true);
}

/** Whether a lock with `labels` has all wanted ones. */
export function hasLabels(labels: Labels, wanted: Labels): boolean {
  return Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}
