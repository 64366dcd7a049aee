/** Which locks a list shows: by merchant, presence, state, labels and a search text (interfaces.md §2, §4). Pure. */
import { type EffectiveState, POWER_MODEL } from '../../../proto/power/model.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { Device } from '../../store/contract/devices/device.js';
import { labelsText, NO_LABELS } from '../../store/contract/devices/device-labels.js';
import type { ListedLock } from './listed-lock.js';

/** Every presence by which a list can be filtered. */
export const PRESENCES = ['online', 'asleep', 'late', 'low-battery', 'airplane', 'never-seen'] as const;
export type PresenceName = (typeof PRESENCES)[number];

const LOCK_STATES = ['locked', 'unlocked'] as const;
/** Every state by which a list can be filtered: power states, lock states, and theft. */
export const LISTED_STATES: readonly ListedState[] = [
  ...LOCK_STATES,
  'theft',
  ...POWER_MODEL.states.map(({ state }) => state),
];
export type ListedState = (typeof LOCK_STATES)[number] | 'theft' | EffectiveState;

/** A label that a lock must have; any value if `value` is undefined. */
export interface LabelFilter {
  readonly key: string;
  readonly value: string | undefined;
}

/** All conditions must hold. Of several presences or states, one must hold. */
export interface LockFilter {
  readonly merchantId?: number | undefined;
  readonly presences?: readonly PresenceName[] | undefined;
  readonly states?: readonly ListedState[] | undefined;
  readonly labels?: readonly LabelFilter[] | undefined;
  /** Part of a MAC, a name or a label, in any case. */
  readonly search?: string | undefined;
}

/** Parses `key=value`, or `key` for any value. */
export function parseLabelFilter(text: string): LabelFilter {
  const separator = text.indexOf('=');
  if (separator < 0) return { key: text.trim(), value: undefined };
  return { key: text.slice(0, separator).trim(), value: text.slice(separator + 1).trim() };
}

/**
 * Returns a function that says whether a lock's stored data passes the filter: its labels, and the search. It is asked
 * first, since it costs less than a lock's present state.
 */
export function deviceMatcher({ labels, search }: LockFilter): (device: Device) => boolean {
  const searchText = search?.trim().toLowerCase() ?? '';
  const macDigits = searchText.replaceAll(/[:.\-\s]/g, '').toUpperCase();
  return (device) =>
    (labels === undefined || labels.every((label) => hasLabel(device, label))) &&
    (searchText === '' || isFound(device, searchText, macDigits));
}

/** Returns a function that says whether a lock's present state passes the filter. */
export function stateMatcher({ presences, states }: LockFilter): (lock: ListedLock) => boolean {
  return (lock) =>
    (presences === undefined || presences.includes(lock.presence.presence)) &&
    (states === undefined || states.some((state) => hasState(lock, state)));
}

function hasState({ state }: ListedLock, wanted: ListedState): boolean {
  if (state === null) return false;
  if (wanted === 'locked' || wanted === 'unlocked') return state.belief.lockState === wanted;
  return wanted === 'theft' ? isStolen(state) : state.belief.state === wanted;
}

/** Whether the lock's latest ping reports a theft. */
export function isStolen(state: ListedLock['state']): boolean {
  return state?.ping?.reason === 'REASON_THEFT';
}

function hasLabel({ labels }: Device, { key, value }: LabelFilter): boolean {
  return Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
}

/** Whether the lock's MAC has the digits of the search text, or its name or labels contain the text. */
function isFound({ mac, name, labels }: Device, searchText: string, macDigits: string): boolean {
  // A text of separators alone, such as `:`, is compared with the MAC as people see it.
  if (macDigits === '' ? formatMac(mac).includes(searchText) : mac.includes(macDigits)) return true;
  if (name?.toLowerCase().includes(searchText) === true) return true;
  return labels !== NO_LABELS && labelsText(labels).toLowerCase().includes(searchText);
}
