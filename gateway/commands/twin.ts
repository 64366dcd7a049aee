/**
 * Reads a lock's twin: the power settings that commands ask for, the power settings that the lock last reported, and
 * the differences (protocol.md §1, set power). Only reads.
 */
import type { Belief } from '../../proto/power/judge/belief.js';
import type { HighWindow, PowerChange } from '../../proto/wire/ping.js';
import { type HighWindowJson, highWindowToJson } from '../../proto/wire/ping-json.js';
import type { CommandStore } from '../store/contract/command-record.js';
import { MAX_TWIN_COMMANDS } from './command-terms.js';

/** Power settings as JSON; an absent one was never asked for. */
export interface PowerSettingsJson {
  readonly mode?: string;
  readonly ride_tracking?: boolean;
  readonly airplane?: boolean;
  readonly recovery?: boolean;
  readonly high_window?: HighWindowJson;
}

export interface Twin {
  readonly wanted: PowerSettingsJson;
  /** Null for a lock that has never sent an uplink. */
  readonly reported: Required<PowerSettingsJson> | null;
  /** The names of the settings in `wanted` whose reported value is different or missing. */
  readonly differs: readonly string[];
}

/**
 * The twin of a lock. The wanted settings combine its set-power commands that are done, queued or sent, except those
 * scheduled for later. Commands that were rejected, failed, expired or cancelled do not count.
 */
export async function readTwin(
  store: CommandStore,
  deviceId: number,
  belief: Belief | undefined,
  nowMs: number,
): Promise<Twin> {
  const changes = await store.readPowerChanges(deviceId, nowMs, MAX_TWIN_COMMANDS);
  // The store returns the newest first, and a newer command overrides an older one.
  const combined: PowerChange = changes.reduceRight((older, newer) => Object.assign(older, newer), {} as PowerChange);
  const wanted = settingsJson(combined);
  // A belief, what the judge has concluded about the lock, always has all settings.
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
