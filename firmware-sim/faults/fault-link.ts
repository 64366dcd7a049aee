/** One lock's link through a faulty network: it wraps another link, and loses, delays and breaks what passes. */
import type { Clock, Milliseconds, Timer } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Uplink } from '../../proto/wire/ping.js';
import type { Link, LinkEvents, OpenLink } from '../link/link.js';
import type { Prng } from '../prng.js';
import { FAULT_ODDS, type FaultName } from './faults.js';

/** What the links of a network share. */
export interface FaultConditions {
  readonly clock: Clock;
  /** Whether the fault is switched on at this moment. */
  isOn(fault: FaultName): boolean;
}

export interface FaultLinkOptions {
  readonly conditions: FaultConditions;
  readonly prng: Prng;
  /** The link behind the network. */
  readonly open: OpenLink;
  readonly mac: Mac;
  /** Where the lock is notified. */
  readonly events: LinkEvents;
}

type Span = readonly [from: Milliseconds, to: Milliseconds];

export class FaultLink implements Link {
  readonly #conditions: FaultConditions;
  readonly #prng: Prng;
  readonly #events: LinkEvents;
  readonly #inner: Link;
  /** `dead`: the lock believes in a connection through which nothing passes. */
  #phase: 'down' | 'trying' | 'up' | 'dead' = 'down';
  /** Pending work of the current connection; none of it survives the connection. */
  readonly #timers = new Set<Timer>();
  #nat: Timer | undefined;
  /** An uplink that was held up in the network when its connection broke. */
  #stuck: Uplink | undefined;
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
    this.#end('trying');
    if (!this.#isInGap() && !this.#strikes('lost-connect', FAULT_ODDS.lostConnect)) {
      this.#inner.connect();
      return;
    }
    this.#later(FAULT_ODDS.connectTimesOutAfter, () => {
      this.#end('down');
      this.#events.failed({ message: 'no answer came' });
    });
  }

  publish(uplink: Uplink): void {
    if (this.#phase !== 'up') return;
    this.#armNat();
    if (this.#strikes('cut', FAULT_ODDS.cut)) {
      this.#inner.cut(this.#prng.whole(1, FAULT_ODDS.cutAfterBytes));
      this.#inner.publish(uplink);
    } else if (this.#strikes('reorder', FAULT_ODDS.reorder)) {
      this.#stuck = uplink;
      this.#inner.cut(0);
    } else this.#maybeLater(() => this.#send(uplink));
  }

  disconnect(): void {
    if (this.#phase !== 'dead') {
      this.#inner.disconnect();
      return;
    }
    this.#end('down');
    this.#events.ended(null);
  }

  drop(): void {
    const wasDead = this.#phase === 'dead';
    this.#end('down');
    if (!wasDead) this.#inner.drop();
  }

  cut(afterBytes: number): void {
    this.#inner.cut(afterBytes);
  }

  abandon(): void {
    this.#end('down');
    this.#inner.abandon();
  }

  async close(): Promise<void> {
    this.#end('down');
    await this.#inner.close();
  }

  /** Breaks the connection, in a storm. */
  breakNow(): void {
    if (this.#phase === 'up') this.#inner.cut(0);
  }

  #innerEvents(): LinkEvents {
    return {
      ...this.#events,
      connected: () => {
        this.#phase = 'up';
        this.#armGap();
        this.#armNat();
        this.#events.connected();
      },
      failed: (trouble) => {
        this.#end('down');
        this.#events.failed(trouble);
      },
      ended: (trouble) => {
        this.#end('down');
        this.#events.ended(trouble);
      },
      acknowledged: (uplink) => {
        if (this.#strikes('lost-puback', FAULT_ODDS.lostPuback)) return;
        this.#maybeLater(() => this.#events.acknowledged(uplink));
      },
    };
  }

  /** The uplink arrives, and one that was held up before arrives some time after it. */
  #send(uplink: Uplink): void {
    this.#inner.publish(uplink);
    if (this.#strikes('duplicate', FAULT_ODDS.duplicate)) this.#inner.publish(uplink);
    const late = this.#stuck;
    this.#stuck = undefined;
    if (late !== undefined) this.#later(FAULT_ODDS.delayed, () => this.#inner.publish(late));
  }

  #strikes(fault: FaultName, odds: number): boolean {
    return this.#conditions.isOn(fault) && this.#prng.chance(odds);
  }

  #maybeLater(work: () => void): void {
    if (this.#strikes('delay', FAULT_ODDS.delay)) this.#later(FAULT_ODDS.delayed, work);
    else work();
  }

  #later(span: Span, work: () => void): void {
    const timer = this.#conditions.clock.after(this.#prng.whole(...span), () => {
      this.#timers.delete(timer);
      work();
    });
    this.#timers.add(timer);
  }

  /** Sets the phase and cancels all pending work. */
  #end(phase: 'down' | 'trying'): void {
    this.#phase = phase;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#nat?.cancel();
  }

  /** Whether the lock is in a coverage gap now. Draws the next gap when the last one is over. */
  #isInGap(): boolean {
    if (!this.#conditions.isOn('gap')) return false;
    const nowMs = this.#conditions.clock.now();
    while (this.#gapToMs <= nowMs) {
      this.#gapFromMs = this.#gapToMs + this.#prng.whole(...FAULT_ODDS.gapEvery);
      this.#gapToMs = this.#gapFromMs + this.#prng.whole(...FAULT_ODDS.gapLasts);
    }
    return nowMs >= this.#gapFromMs;
  }

  /** The next gap breaks the connection: the lock notices it, the other side does not. */
  #armGap(): void {
    if (this.#isInGap() || !this.#conditions.isOn('gap')) return;
    const wait = this.#gapFromMs - this.#conditions.clock.now();
    this.#later([wait, wait], () => {
      if (!this.#conditions.isOn('gap') || this.#phase !== 'up') return;
      this.#end('down');
      this.#inner.abandon();
      this.#events.ended({ message: 'the network is gone' });
    });
  }

  /** A router on the way silently forgets a connection that is idle for too long. */
  #armNat(): void {
    this.#nat?.cancel();
    if (!this.#strikes('nat-timeout', FAULT_ODDS.natTimeout)) return;
    this.#nat = this.#conditions.clock.after(this.#prng.whole(...FAULT_ODDS.natForgetsAfter), () => {
      if (this.#phase !== 'up') return;
      this.#end('down');
      this.#phase = 'dead';
      this.#inner.abandon();
    });
  }
}
