/** A store of one gateway that behaves as if others shared it: a test says what they own, and what they ask for. */
import type { AdoptedPart, Claim, LockPart, Ownership } from '../../../gateway/store/contract/slots/ownership.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { withOverrides } from '../durability/sabotage.js';

export class ScriptedOwnership {
  /** The parts that the tested gateway owns, as `deviceId/source`. */
  readonly owned = new Set<string>();
  /** The URLs that it owns. */
  readonly ownedUrls = new Set<number>();
  /** The answers to claims that are not simply granted, by `deviceId/source`. */
  readonly claims = new Map<string, Claim>();
  /** The parts that the next look for parts without an owner finds. */
  orphans: AdoptedPart[] = [];
  readonly released: LockPart[] = [];
  /** The URLs that other gateways own. */
  readonly urlsElsewhere = new Set<number>();
  wish: (part: LockPart) => void = () => undefined;
  wishUrl: (urlId: number) => void = () => undefined;

  readonly wrap = (store: Store): Store => withOverrides(store, { ownership: this.#ownership });

  readonly #ownership: Ownership = {
    slot: 0,
    locks: {
      isSole: false,
      owns: (deviceId, source) => this.owned.has(`${deviceId}/${source}`),
      claim: async ({ deviceId, source }) => {
        const claim = this.claims.get(`${deviceId}/${source}`) ?? { isGranted: true, unheardSinceMs: null };
        if (claim.isGranted) this.owned.add(`${deviceId}/${source}`);
        return claim;
      },
      adopt: async () => {
        const adopted = this.orphans;
        this.orphans = [];
        for (const { deviceId, source } of adopted) this.owned.add(`${deviceId}/${source}`);
        return adopted;
      },
      release: async (parts) => {
        for (const { deviceId, source } of parts) this.owned.delete(`${deviceId}/${source}`);
        this.released.push(...parts);
      },
      onWish: (listener) => {
        this.wish = listener;
      },
    },
    urls: {
      owns: (urlId) => this.ownedUrls.has(urlId),
      claim: async (urlIds) => {
        const granted = urlIds.filter((urlId) => !this.urlsElsewhere.has(urlId));
        for (const urlId of granted) this.ownedUrls.add(urlId);
        return granted;
      },
      release: async (urlIds) => {
        for (const urlId of urlIds) {
          this.ownedUrls.delete(urlId);
          this.urlsElsewhere.add(urlId);
        }
      },
      onWish: (listener) => {
        this.wishUrl = listener;
      },
    },
    duties: { holds: () => true, onGain: () => undefined },
  };
}
