/**
 * The troubles of a lock that were reported to its merchant as events: that it is late, that its battery is low
 * (interfaces.md §3, "What a URL gets"). An event is made when the lock's state differs from what was reported, and is
 * stored together with the new state, so that it is neither lost nor made twice. Pure, except that `takeEvents` updates
 * the state.
 */

import type { Presence } from '../../proto/power/judge/presence.js';
import { lowBatteryLimitPercent } from '../../proto/power/judge/state.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { NewMerchantEvent } from '../store/contract/webhooks/merchant-event.js';

/** What was reported, as stored with the lock's state; a member is absent if there is no such trouble. */
export interface ReportedTroubles {
  /** Since when the lock is late, by the run's clock, ms since the epoch. */
  readonly lateSinceMs?: number;
  readonly isBatteryLow?: true;
}

interface TroubledState {
  readonly belief: { readonly batteryPercent: number | null };
  reported?: ReportedTroubles | undefined;
}

const NO_EVENTS: readonly NewMerchantEvent[] = Object.freeze([]);

/**
 * Compares a lock with what was reported, and returns the events about what has changed; the state then has the changes
 * as reported. `atMs` is by the run's clock.
 */
export function takeEvents(
  deviceId: number,
  state: TroubledState,
  presence: Presence,
  atMs: number,
): readonly NewMerchantEvent[] {
  const { reported } = state;
  const percent = state.belief.batteryPercent;
  const isLow = percent !== null && percent < lowBatteryLimitPercent(POWER_MODEL);
  const isLate = presence.presence === 'late';
  const wasLow = reported?.isBatteryLow === true;
  const wasLateSinceMs = reported?.lateSinceMs;
  if (isLow === wasLow && isLate === (wasLateSinceMs !== undefined)) return NO_EVENTS;
  const events: NewMerchantEvent[] = [];
  const lateSinceMs = presence.presence === 'late' ? (wasLateSinceMs ?? presence.sinceMs) : undefined;
  if (lateSinceMs !== wasLateSinceMs)
    events.push({
      deviceId,
      type: 'presence',
      atMs,
      content: isLate
        ? { presence: 'late', lateSinceMs: lateSinceMs ?? atMs }
        : { presence: 'back', lateSinceMs: wasLateSinceMs ?? atMs },
    });
  // There is nothing to report if the charge is no longer known.
  if (isLow !== wasLow && percent !== null)
    events.push({ deviceId, type: 'battery', atMs, content: { battery: isLow ? 'low' : 'charged', percent } });
  const reportedNow = {
    ...(lateSinceMs !== undefined && { lateSinceMs }),
    ...(isLow && { isBatteryLow: true as const }),
  };
  if (Object.keys(reportedNow).length === 0) delete state.reported;
  else state.reported = reportedNow;
  return events;
}
