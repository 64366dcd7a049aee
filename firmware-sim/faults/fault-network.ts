/**
 * The network with faults that the locks of a fleet share. It is put around whatever they connect by, so that the same
 * faults befall locks within the process and over MQTT.
 *
 * Chance is drawn from the seed, for each lock apart; the moments of a storm are the same for all.
 */
import type { Clock, Timer } from '../../proto/clock.js';
import type { OpenLink } from '../link/link.js';
import { Prng } from '../prng.js';
import { FaultLink, type Weather } from './fault-link.js';
import { FAULT_ODDS, type FaultName } from './faults.js';

export interface FaultNetworkOptions {
  readonly seed: string | number;
  /** The locks' clock: faults are in the time of the run. */
  readonly clock: Clock;
  readonly faults: readonly FaultName[];
}

/** A network with faults, until it calms down. */
export class FaultNetwork implements Weather {
  readonly clock: Clock;
  readonly #faults: ReadonlySet<FaultName>;
  readonly #seed: string | number;
  readonly #prng: Prng;
  readonly #links = new Set<FaultLink>();
  #storm: Timer | undefined;
  #isCalm = false;

  constructor({ seed, clock, faults }: FaultNetworkOptions) {
    this.clock = clock;
    this.#faults = new Set(faults);
    this.#seed = `${seed}/faults`;
    this.#prng = new Prng(this.#seed).fork('storm');
    if (this.has('storm')) this.#planStorm();
  }

  /** Whether the fault is on. */
  has(fault: FaultName): boolean {
    return !this.#isCalm && this.#faults.has(fault);
  }

  /** Puts the network between locks and whatever `open` leads to. */
  wrap(open: OpenLink): OpenLink {
    return (mac, events) => {
      const link = new FaultLink({ weather: this, prng: new Prng(this.#seed).fork(mac), open, mac, events });
      this.#links.add(link);
      return link;
    };
  }

  /** No fault begins any more; what one has done already stays done. The same when the run ends. */
  calm(): void {
    this.#isCalm = true;
    this.#storm?.cancel();
  }

  #planStorm(): void {
    const wait = this.#prng.whole(...FAULT_ODDS.stormEvery);
    this.#storm = this.clock.after(wait, () => {
      for (const link of this.#links) link.breakNow();
      this.#planStorm();
    });
  }
}
