/**
 * A store of one gateway, the tested one, that behaves as if other gateways shared it: a test says what they own, and
 * what they ask for. What a gateway owns, only that gateway serves: a lock, the phones that act for a lock (each a
 * *part*), or a webhook URL. The rules are in gateway/store/contract/slots/ownership.ts.
 */
import type { AdoptedPart, Claim, LockPart, Ownership } from '../../../gateway/store/contract/slots/ownership.js';
import type { Signal } from '../../../gateway/store/contract/slots/signals.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { withOverrides } from '../durability/sabotage.js';

/** What all gateways own, as the test sets it. */
export class ScriptedOwnership {
  /** The parts that the tested gateway owns, as `deviceId/source`, such as `7/lock` or `7/phone`. */
  readonly owned = new Set<string>();
  /** The ids of the URLs that the tested gateway owns. */
  readonly ownedUrls = new Set<number>();
  /** The answers to the tested gateway's claims of parts, by `deviceId/source`. Other claims are granted. */
  readonly claims = new Map<string, Claim | Promise<Claim>>();
  /** How often the tested gateway has claimed a part. */
  claimCount = 0;
  /** The parts without an owner, which the tested gateway gets when it next looks for some. */
  orphans: AdoptedPart[] = [];
  /** The parts that the tested gateway has released. */
  readonly released: LockPart[] = [];
  /** The ids of the URLs that other gateways own. */
  readonly urlsElsewhere = new Set<number>();
  /** Calls the tested gateway as if another gateway asked for a part. */
  wish: (part: LockPart) => void = () => undefined;
  /** Calls the tested gateway as if another gateway was to have a URL. */
  wishUrl: (urlId: number) => void = () => undefined;

  /** What the tested gateway has told the others. */
  readonly sent: Signal[] = [];
  readonly #listeners: ((signal: Signal) => void)[] = [];

  /** Calls the tested gateway as if another one told it something. */
  signal(signal: Signal): void {
    for (const listener of this.#listeners) listener(signal);
  }

  /** Wraps the store of the tested gateway. */
  readonly wrap = (store: Store): Store => withOverrides(store, { ownership: this.#ownership });

  readonly #ownership: Ownership = {
    // The number under which the gateway writes; each gateway has another.
    slot: 0,
    locks: {
      // Other gateways may own parts.
      isSole: false,
      owns: (deviceId, source) => this.owned.has(`${deviceId}/${source}`),
      claim: async ({ deviceId, source }) => {
        this.claimCount += 1;
        // `unheardSinceMs: null`: there was no time in which no gateway served the part.
        const claim = (await this.claims.get(`${deviceId}/${source}`)) ?? { isGranted: true, unheardSinceMs: null };
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
    // Work that one gateway does for all, such as deleting old rows: the tested gateway does all of it.
    duties: { holds: () => true, onGain: () => undefined },
    signals: {
      send: (signal) => {
        this.sent.push(signal);
      },
      onSignal: (listener) => {
        this.#listeners.push(listener);
      },
    },
  };
}
