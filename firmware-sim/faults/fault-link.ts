/**
 * A simulated lock's *link* (its connection to the gateway) through a faulty network. It wraps another link, loses
 * acknowledgements, delays and repeats uplinks, and breaks connections. Each lock has its own random generator, from
 * which the faults are drawn.
 */
import type { Clock, Milliseconds, Timer } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Uplink } from '../../proto/wire/ping.js';
import type { Link, LinkEvents, OpenLink } from '../link/link.js';
import type { Prng } from '../prng.js';
import { FAULT_PARAMETERS, type FaultName } from './faults.js';

/** The clock and the active faults that all links of a network share. */
export interface FaultConditions {
  readonly clock: Clock;
  /** Whether the fault is switched on at this moment. */
  isOn(fault: FaultName): boolean;
}

/** The link to wrap, and where its faults come from. */
export interface FaultLinkOptions {
  readonly conditions: FaultConditions;
  readonly prng: Prng;
  /** Opens the link that is wrapped. */
  readonly open: OpenLink;
  readonly mac: Mac;
  /** The lock's event handlers. */
  readonly events: LinkEvents;
}

/** The shortest and the longest duration of something. */
type Span = readonly [from: Milliseconds, to: Milliseconds];

/** See the top of this file. */
export class FaultLink implements Link {
  readonly #conditions: FaultConditions;
  readonly #prng: Prng;
  readonly #events: LinkEvents;
  readonly #inner: Link;
  /** `dead`: the lock considers the connection open, but nothing passes through it. */
  #phase: 'down' | 'trying' | 'up' | 'dead' = 'down';
  /** Pending work of the current connection, cancelled when the connection closes. */
  readonly #timers = new Set<Timer>();
  /** Runs until the simulated router (NAT) forgets the connection. */
  #natTimer: Timer | undefined;
  /** An uplink that was delayed in the network when its connection broke. It arrives on the next connection. */
  #delayedUplink: Uplink | undefined;
  /** The current or next period without coverage. */
  #gapFromMs = 0;
  #gapToMs: number;

  constructor({ conditions, prng, open, mac, events }: FaultLinkOptions) {
    this.#conditions = conditions;
    this.#prng = prng;
    this.#events = events;
    this.#gapToMs = conditions.clock.now();
    this.#inner = open(mac, this.#innerEvents());
  }

  connect(): void {
    this.#reset('trying');
    if (!this.#isInGap() && !this.#occurs('lost-connect', FAULT_PARAMETERS.lostConnect)) {
      this.#inner.connect();
      return;
    }
    this.#schedule(FAULT_PARAMETERS.connectTimesOutAfter, () => {
      this.#reset('down');
      this.#events.failed({ message: 'no answer' });
    });
  }

  publish(uplink: Uplink): void {
    if (this.#phase !== 'up') return;
    this.#startNatTimer();
    if (this.#occurs('cut', FAULT_PARAMETERS.cut)) {
      this.#inner.breakConnection(this.#prng.integer(1, FAULT_PARAMETERS.cutAfterBytes));
      this.#inner.publish(uplink);
    } else if (this.#occurs('reorder', FAULT_PARAMETERS.reorder)) {
      this.#delayedUplink = uplink;
      this.#inner.breakConnection(0);
    } else this.#maybeDelay(() => this.#send(uplink));
  }

  disconnect(): void {
    if (this.#phase !== 'dead') {
      this.#inner.disconnect();
      return;
    }
    this.#reset('down');
    // Null: no trouble. For the lock this looks like a proper close.
    this.#events.disconnected(null);
  }

  drop(): void {
    const wasDead = this.#phase === 'dead';
    this.#reset('down');
    if (!wasDead) this.#inner.drop();
  }

  breakConnection(afterBytes: number): void {
    this.#inner.breakConnection(afterBytes);
  }

  abandon(): void {
    this.#reset('down');
    this.#inner.abandon();
  }

  async close(): Promise<void> {
    this.#reset('down');
    await this.#inner.close();
  }

  /** Breaks the connection if it is up. */
  breakInStorm(): void {
    if (this.#phase === 'up') this.#inner.breakConnection(0);
  }

  #innerEvents(): LinkEvents {
    return {
      ...this.#events,
      connected: () => {
        this.#phase = 'up';
        this.#scheduleGap();
        this.#startNatTimer();
        this.#events.connected();
      },
      failed: (trouble) => {
        this.#reset('down');
        this.#events.failed(trouble);
      },
      disconnected: (trouble) => {
        this.#reset('down');
        this.#events.disconnected(trouble);
      },
      acknowledged: (uplink) => {
        if (this.#occurs('lost-puback', FAULT_PARAMETERS.lostPuback)) return;
        this.#maybeDelay(() => this.#events.acknowledged(uplink));
      },
    };
  }

  /** Sends an uplink. An uplink that was delayed before arrives some time after it. */
  #send(uplink: Uplink): void {
    this.#inner.publish(uplink);
    if (this.#occurs('duplicate', FAULT_PARAMETERS.duplicate)) this.#inner.publish(uplink);
    const delayedUplink = this.#delayedUplink;
    this.#delayedUplink = undefined;
    if (delayedUplink !== undefined)
      this.#schedule(FAULT_PARAMETERS.delayLasts, () => this.#inner.publish(delayedUplink));
  }

  /** Draws whether a fault occurs. Never, if the fault is switched off. */
  #occurs(fault: FaultName, probability: number): boolean {
    return this.#conditions.isOn(fault) && this.#prng.chance(probability);
  }

  #maybeDelay(work: () => void): void {
    if (this.#occurs('delay', FAULT_PARAMETERS.delay)) this.#schedule(FAULT_PARAMETERS.delayLasts, work);
    else work();
  }

  /** Calls `work` after a random time in the span, unless the connection closes before. */
  #schedule(span: Span, work: () => void): void {
    const timer = this.#conditions.clock.after(this.#prng.integer(...span), () => {
      this.#timers.delete(timer);
      work();
    });
    this.#timers.add(timer);
  }

  /** Sets the phase and cancels all pending work. */
  #reset(phase: 'down' | 'trying'): void {
    this.#phase = phase;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#natTimer?.cancel();
  }

  /** Whether the lock is in a coverage gap now. Draws the next gap when the current one has passed. */
  #isInGap(): boolean {
    if (!this.#conditions.isOn('gap')) return false;
    const nowMs = this.#conditions.clock.now();
    while (this.#gapToMs <= nowMs) {
      this.#gapFromMs = this.#gapToMs + this.#prng.integer(...FAULT_PARAMETERS.gapEvery);
      this.#gapToMs = this.#gapFromMs + this.#prng.integer(...FAULT_PARAMETERS.gapLasts);
    }
    return nowMs >= this.#gapFromMs;
  }

  /** Breaks the connection at the start of the next gap: the lock notices this, the gateway does not. */
  #scheduleGap(): void {
    if (this.#isInGap() || !this.#conditions.isOn('gap')) return;
    const wait = this.#gapFromMs - this.#conditions.clock.now();
    // The span is a single moment: the start of the gap, which was drawn before.
    this.#schedule([wait, wait], () => {
      if (!this.#conditions.isOn('gap') || this.#phase !== 'up') return;
      this.#reset('down');
      this.#inner.abandon();
      this.#events.disconnected({ message: 'the network does not reach the lock' });
    });
  }

  /** Simulates a router that silently forgets a connection which is idle for too long. */
  #startNatTimer(): void {
    this.#natTimer?.cancel();
    if (!this.#occurs('nat-timeout', FAULT_PARAMETERS.natTimeout)) return;
    this.#natTimer = this.#conditions.clock.after(this.#prng.integer(...FAULT_PARAMETERS.natForgetsAfter), () => {
      if (this.#phase !== 'up') return;
      this.#reset('down');
      this.#phase = 'dead';
      // Sends nothing more, while the gateway still considers the connection open.
      this.#inner.abandon();
    });
  }
}
