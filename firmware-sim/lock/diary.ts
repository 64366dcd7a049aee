/**
 * The diary: a simulated lock's own log of the uplinks it made and sent, the acknowledgements, and what truly happened
 * around it. Tests compare the gateway's records with the diary (quality.md §2).
 */

import type { GpsFix, StepEffect } from '../../proto/power/step/io.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import type { LinkTrouble } from '../link/link.js';
import type { WorldChange } from '../world/world.js';

/** One entry of a diary. */
export type DiaryEntry =
  /** The lock booted, with what is true around it at that moment. */
  | {
      readonly type: 'booted';
      readonly boot: number;
      readonly covered: boolean;
      readonly skyOpen: boolean;
      readonly batteryPercent: number;
    }
  /** A change in the world around the lock. */
  | { readonly type: 'world'; readonly change: WorldChange }
  /** The lock's true position when it boots, starts or stops moving, or makes a GPS ping. */
  | { readonly type: 'whereabouts'; readonly fix: GpsFix }
  /** The connection is established. */
  | { readonly type: 'connected' }
  /** An attempt to connect failed. */
  | { readonly type: 'refused'; readonly trouble: LinkTrouble }
  /** The lock closed the connection. */
  | { readonly type: 'closed' }
  /** The connection broke. */
  | { readonly type: 'lost'; readonly trouble: LinkTrouble }
  | { readonly type: 'acknowledged'; readonly uplink: Uplink }
  | { readonly type: 'received'; readonly downlink: Downlink }
  /** A message arrived that is not a command. */
  | { readonly type: 'unreadable'; readonly message: string }
  /** An effect of a step: an uplink made, sent (`publish`) or discarded, the shackle moved, a command finished. */
  | { readonly type: 'did'; readonly effect: StepEffect }
  /** The operator switched the lock off. Its flash is preserved. */
  | { readonly type: 'stopped' };

/** Called for each entry, in order. `atMs` is the time by the lock's clock, ms since the epoch. */
export type Diary = (mac: Mac, atMs: number, entry: DiaryEntry) => void;
