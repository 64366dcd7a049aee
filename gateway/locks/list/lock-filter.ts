/** Which locks a list shows: by merchant, presence, state, labels and a search text (interfaces.md §2, §4). Pure. */
import { type EffectiveState, POWER_MODEL } from '../../../proto/power/model.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { labelsText } from '../../store/contract/devices/device-labels.js';
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

/** Returns a function that says whether a lock passes the filter. */
export function lockMatcher({ presences, states, labels, search }: LockFilter): (lock: ListedLock) => boolean {
  const searchText = search?.trim().toLowerCase() ?? '';
  const macDigits = searchText.replaceAll(/[:.\-\s]/g, '');
  return (lock) =>
    (presences === undefined || presences.includes(lock.presence.presence)) &&
    (states === undefined || states.some((state) => hasState(lock, state))) &&
    (labels === undefined || labels.every((label) => hasLabel(lock, label))) &&
    (searchText === '' || isFound(lock, searchText, macDigits));
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

function hasLabel({ device: { labels } }: ListedLock, { key, value }: LabelFilter): boolean {
  return Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
}

/** Whether the lock's MAC, name or labels contain the search text, or the MAC its digits. */
function isFound({ device: { mac, name, labels } }: ListedLock, searchText: string, macDigits: string): boolean {
  if (macDigits !== '' && mac.toLowerCase().includes(macDigits)) return true;
  if (name?.toLowerCase().includes(searchText) === true) return true;
  return formatMac(mac).toLowerCase().includes(searchText) || labelsText(labels).toLowerCase().includes(searchText);
}
