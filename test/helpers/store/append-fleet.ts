/**
 * Makes commits with uplinks (messages) of many locks in random order, for tests and benchmarks of the store. A commit
 * is what the gateway stores in one transaction.
 */

import { type Commit, type IncomingUplink, UPLINK_KINDS } from '../../../gateway/store/contract/log/commit.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { testBytes } from '../gateway/test-gateway.js';
import { SeededChance } from '../pair/seeded-chance.js';

/** Encoding each uplink would dominate a measurement, so this many encoded payloads are used in turn. */
const SAMPLE_PAYLOADS = 512;
/** Any time; uplinks arrive 1 ms apart from here. */
const START_MS = Date.UTC(2025, 10, 20, 6);

/** Makes the commits of a fleet of this number of locks. */
export class UplinkSource {
  readonly #locks: number;
  /** The seed is fixed, so that every run stores the same uplinks. */
  readonly #chance = new SeededChance(7);
  readonly #sequences: number[];
  readonly #payloads: readonly Buffer[];
  readonly #digests: readonly Buffer[];
  #sent = 0;

  constructor(locks: number) {
    this.#locks = locks;
    this.#sequences = new Array<number>(locks).fill(0);
    this.#payloads = Array.from({ length: SAMPLE_PAYLOADS }, (_, sequence) => testBytes(sequence));
    this.#digests = this.#payloads.map(uplinkDigest);
  }

  /** Returns a commit with the next uplinks, of random locks. */
  nextCommit(size: number): Commit {
    return { incoming: Array.from({ length: size }, () => this.#uplink()), judged: [], states: new Map() };
  }

  #uplink(): IncomingUplink {
    const lock = Math.floor(this.#chance.next() * this.#locks);
    const sequence = (this.#sequences[lock] ?? 0) + 1;
    this.#sequences[lock] = sequence;
    // Ids in the store start at 1.
    const id = lock + 1;
    const sample = this.#sent++ % this.#payloads.length;
    return {
      type: 'uplink',
      deviceId: id,
      merchantId: 1,
      credentialId: id,
      boot: 1,
      sequence,
      digest: this.#digests[sample] as Buffer,
      kind: UPLINK_KINDS.indexOf('cellular'),
      bytes: this.#payloads[sample] as Buffer,
      receivedAtMs: START_MS + this.#sent,
      buffered: false,
    };
  }
}
