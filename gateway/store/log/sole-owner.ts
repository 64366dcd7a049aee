/** Ownership while one gateway has the store: it owns every lock, URL and duty, and nobody ever asks for one. */
import { DENSE_SLOT } from '../contract/log/log-position.js';
import type { Claim, Ownership } from '../contract/slots/ownership.js';

const GRANTED: Claim = Object.freeze({ isGranted: true, unheardSinceMs: null });

const SOLE = {
  locks: {
    isSole: true,
    owns: () => true,
    claim: async () => GRANTED,
    adopt: async () => [],
    release: async () => undefined,
    onWish: () => undefined,
  },
  urls: {
    owns: () => true,
    claim: async (urlIds: readonly number[]) => urlIds,
    release: async () => undefined,
    onWish: () => undefined,
  },
  duties: { holds: () => true, onGain: () => undefined },
  signals: { send: () => undefined, onSignal: () => undefined },
} satisfies Omit<Ownership, 'slot'>;

/** Sole ownership, writing in a slot. */
export function soleOwner(slot: number): Ownership {
  return Object.freeze({ slot, ...SOLE });
}

export const SOLE_OWNER: Ownership = soleOwner(DENSE_SLOT);
