/**
 * A lock's twin: the power settings that commands ask for, those that the lock last reported, and where they differ
 * (protocol.md §1, set power).
 */

import type { Belief } from '../../proto/power/judge/belief.js';
import type { HighWindow, PowerChange } from '../../proto/wire/ping.js';
import { type HighWindowJson, highWindowToJson } from '../../proto/wire/ping-json.js';
import type { CommandStore } from '../store/contract/command-record.js';
import { TWIN_WISHES } from './command-terms.js';

/** Settings as JSON; an absent one was never asked for. */
export interface PowerSettingsJson {
  readonly mode?: string;
  readonly ride_tracking?: boolean;
  readonly airplane?: boolean;
  readonly recovery?: boolean;
  readonly high_window?: HighWindowJson;
}

export interface Twin {
  readonly wanted: PowerSettingsJson;
  /** Null for a lock that has never reported any. */
  readonly reported: Required<PowerSettingsJson> | null;
  /** The members of `wanted` that `reported` has otherwise, or not yet. */
  readonly differs: readonly string[];
}

/**
 * The twin of a lock. The wanted settings are the sum of its set-power commands that are done or may still be, except
 * those scheduled for later; one that was rejected, failed, expired or cancelled asks for nothing.
 */
export async function readTwin(
  store: CommandStore,
  deviceId: number,
  belief: Belief | undefined,
  nowMs: number,
): Promise<Twin> {
  const wishes = await store.readPowerWishes(deviceId, nowMs, TWIN_WISHES);
  // The newest first: a newer command overrides an older one.
  const sum: PowerChange = wishes.reduceRight((before, wish) => Object.assign(before, wish), {} as PowerChange);
  const wanted = settingsJson(sum);
  const reported =
    belief === undefined || belief.uplinks === 0
      ? null
      : (settingsJson({ ...belief.power, highWindow: belief.highWindow }) as Required<PowerSettingsJson>);
  const names = Object.keys(wanted) as (keyof PowerSettingsJson)[];
  const isSame = (name: keyof PowerSettingsJson): boolean =>
    JSON.stringify(wanted[name]) === JSON.stringify(reported?.[name]);
  return { wanted, reported, differs: names.filter((name) => !isSame(name)) };
}

function settingsJson(change: PowerChange & { readonly highWindow?: HighWindow }): PowerSettingsJson {
  const { mode, rideTracking, airplane, recovery, highWindow } = change;
  return {
    ...(mode !== undefined && { mode }),
    ...(rideTracking !== undefined && { ride_tracking: rideTracking }),
    ...(airplane !== undefined && { airplane }),
    ...(recovery !== undefined && { recovery }),
    ...(highWindow !== undefined && { high_window: highWindowToJson(highWindow) }),
  };
}
