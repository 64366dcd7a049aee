/**
 * What a simulated lock writes down of itself. Checkers read this, never the gateway's word (quality.md §2): what was
 * made, what was sent, what was acknowledged, and what truly happened around the lock.
 */

import type { GpsFix, StepEffect } from '../../proto/power/step/io.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import type { LinkTrouble } from '../link/link.js';
import type { WorldChange } from '../world/world.js';

export type DiaryEntry =
  | { readonly type: 'booted'; readonly boot: number }
  /** What happened around the lock. */
  | { readonly type: 'world'; readonly change: WorldChange }
  /** Where the lock truly is when it begins or ends to move, whether GPS can tell or not. */
  | { readonly type: 'whereabouts'; readonly fix: GpsFix }
  /** The connection stands. */
  | { readonly type: 'connected' }
  /** A try to connect came to nothing. */
  | { readonly type: 'refused'; readonly trouble: LinkTrouble }
  /** The connection ended as the lock asked. */
  | { readonly type: 'closed' }
  /** The connection ended by itself. */
  | { readonly type: 'lost'; readonly trouble: LinkTrouble }
  | { readonly type: 'acknowledged'; readonly uplink: Uplink }
  | { readonly type: 'received'; readonly downlink: Downlink }
  | { readonly type: 'unreadable'; readonly message: string }
  /** What the lock did: made, sent (`publish`) or discarded an uplink, moved its shackle, finished a command. */
  | { readonly type: 'did'; readonly effect: StepEffect }
  /** The operator switched the lock off; it keeps what is in its flash. */
  | { readonly type: 'stopped' };

/** Called for each entry, in order. `atMs` is the lock's clock, ms since the epoch. */
export type Diary = (mac: Mac, atMs: number, entry: DiaryEntry) => void;
