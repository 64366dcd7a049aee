/** The orders in which a list shows locks (interfaces.md §4). Locks with equal values are ordered by MAC. Pure. */

import { POWER_MODEL } from '../../../proto/power/model.js';
import { TROUBLES, type Trouble } from '../../../proto/power/troubles.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { ListedLock } from './listed-lock.js';
import { isStolen, PRESENCES } from './lock-filter.js';

/** What a list can be sorted by; `trouble`: what needs attention first; `received`: when the last uplink came. */
export const SORT_KEYS = ['trouble', 'mac', 'name', 'presence', 'state', 'battery', 'received'] as const;
export type SortKey = (typeof SORT_KEYS)[number];

export interface LockOrder {
  readonly key: SortKey;
  readonly isDescending: boolean;
}

/** Every order as text: a key, or `-` and a key for the reverse. */
export const SORTS: readonly string[] = SORT_KEYS.flatMap((key) => [key, `-${key}`]);

/** The order that one of {@link SORTS} names. */
export function parseSort(text: string): LockOrder {
  const isDescending = text.startsWith('-');
  const name = isDescending ? text.slice(1) : text;
  const key = SORT_KEYS.find((known) => known === name);
  if (key === undefined) throw new Error(`there is no order ${text}: the caller must check the text`);
  return { key, isDescending };
}

/** A lock's place in an order: the value that it is sorted by, null if it has none, and its MAC. */
export interface Place {
  readonly value: number | string | null;
  readonly mac: Mac;
}

/** The most urgent trouble of a lock; `none` if it has none. */
export function troubleOf({ state, presence: { presence }, unjudged }: ListedLock): Trouble {
  if (isStolen(state)) return 'theft';
  if (presence === 'late') return 'late';
  if (presence === 'low-battery' || state?.belief.state === 'LOW_BATTERY') return 'low-battery';
  if (unjudged !== undefined) return 'unjudged';
  return presence === 'airplane' || presence === 'never-seen' ? presence : 'none';
}

const POWER_STATES = POWER_MODEL.states.map(({ state }) => state);

/** The value by which an order of `key` sorts a lock; null if the lock has none. */
export function sortValue(lock: ListedLock, key: SortKey): Place['value'] {
  const { device, state, presence } = lock;
  switch (key) {
    case 'trouble':
      return TROUBLES.indexOf(troubleOf(lock));
    case 'mac':
      // All values are equal, so that only the MAC decides.
      return 0;
    case 'name':
      return device.name?.toLowerCase() ?? null;
    case 'presence':
      return PRESENCES.indexOf(presence.presence);
    case 'state':
      return state === null ? null : POWER_STATES.indexOf(state.belief.state);
    case 'battery':
      return state?.belief.batteryPercent ?? null;
    case 'received':
      return state?.receivedAtMs ?? null;
  }
}

/** Returns a function that compares values, for sorting. A lock without a value comes last in either direction. */
export function compareValues(isDescending: boolean): (a: Place['value'], b: Place['value']) => number {
  const sign = isDescending ? -1 : 1;
  return (a, b) => {
    if (a === b) return 0;
    if (a === null || b === null) return a === null ? 1 : -1;
    return a < b ? -sign : sign;
  };
}

/** Returns a function that compares places: by value, and by MAC where the values are equal. */
export function placeComparer({ key, isDescending }: LockOrder): (a: Place, b: Place) => number {
  const compare = compareValues(isDescending);
  const macSign = key === 'mac' && isDescending ? -1 : 1;
  return (a, b) => {
    const byValue = compare(a.value, b.value);
    if (byValue !== 0 || a.mac === b.mac) return byValue;
    return a.mac < b.mac ? -macSign : macSign;
  };
}
