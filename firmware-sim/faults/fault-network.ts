/**
 * The faulty network that the simulated locks of a fleet share. It wraps any kind of link (a lock's connection to the
 * gateway), so that the same faults affect links within the process and over MQTT.
 *
 * Faults are drawn from the seed, separately for each lock. A storm breaks all connections at the same moment.
 */
import type { Clock, Timer } from '../../proto/clock.js';
import type { OpenLink } from '../link/link.js';
import { Prng } from '../prng.js';
import { type FaultConditions, FaultLink } from './fault-link.js';
import { FAULT_PARAMETERS, type FaultName } from './faults.js';

/** The faults to switch on, and from what they are drawn. */
export interface FaultNetworkOptions {
  readonly seed: string | number;
  /** The locks' clock: times and durations of faults are in the time of the run. */
  readonly clock: Clock;
  readonly faults: readonly FaultName[];
}

/** A network with faults, until they are stopped. */
export class FaultNetwork implements FaultConditions {
  readonly clock: Clock;
  readonly #faults: ReadonlySet<FaultName>;
  readonly #seed: string | number;
  readonly #prng: Prng;
  readonly #links = new Set<FaultLink>();
  /** Runs until the next storm. */
  #storm: Timer | undefined;
  #isStopped = false;

  constructor({ seed, clock, faults }: FaultNetworkOptions) {
    this.clock = clock;
    this.#faults = new Set(faults);
    this.#seed = `${seed}/faults`;
    this.#prng = new Prng(this.#seed).fork('storm');
    if (this.isOn('storm')) this.#planStorm();
  }

  /** Whether the fault is switched on. */
  isOn(fault: FaultName): boolean {
    return !this.#isStopped && this.#faults.has(fault);
  }

  /** Puts the network between the locks and the links that `open` makes. */
  wrap(open: OpenLink): OpenLink {
    return (mac, events) => {
      const link = new FaultLink({ conditions: this, prng: new Prng(this.#seed).fork(mac), open, mac, events });
      this.#links.add(link);
      return link;
    };
  }

  /** Stops new faults; the effects of past faults remain. To be called before a run ends. */
  stopFaults(): void {
    this.#isStopped = true;
    this.#storm?.cancel();
  }

  #planStorm(): void {
    const wait = this.#prng.integer(...FAULT_PARAMETERS.stormEvery);
    this.#storm = this.clock.after(wait, () => {
      for (const link of this.#links) link.breakInStorm();
      this.#planStorm();
    });
  }
}
