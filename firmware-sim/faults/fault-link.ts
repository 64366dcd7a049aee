/** One lock's line through a network with faults: a link around another one, which it makes lose, linger and break. */
import type { Clock, Milliseconds, Timer } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Uplink } from '../../proto/wire/ping.js';
import type { Link, LinkEvents, OpenLink } from '../link/link.js';
import type { Prng } from '../prng.js';
import { FAULT_ODDS, type FaultName } from './faults.js';

/** What the links of a network have in common. */
export interface Weather {
  readonly clock: Clock;
  /** Whether the fault is on at this moment. */
  has(fault: FaultName): boolean;
}

export interface FaultLinkOptions {
  readonly weather: Weather;
  readonly prng: Prng;
  /** What is behind the network. */
  readonly open: OpenLink;
  readonly mac: Mac;
  /** Whom the lock's end tells. */
  readonly events: LinkEvents;
}

type Span = readonly [from: Milliseconds, to: Milliseconds];

export class FaultLink implements Link {
  readonly #weather: Weather;
  readonly #prng: Prng;
  readonly #events: LinkEvents;
  readonly #inner: Link;
  /** `dead`: the lock believes in a connection through which nothing passes. */
  #phase: 'down' | 'trying' | 'up' | 'dead' = 'down';
  /** What is under way on the connection that is; none of it outlives the connection. */
  readonly #timers = new Set<Timer>();
  #nat: Timer | undefined;
  /** An uplink that got stuck in the network when its connection broke. */
  #late: Uplink | undefined;
  #gapFromMs = 0;
  #gapToMs: number;

  constructor({ weather, prng, open, mac, events }: FaultLinkOptions) {
    this.#weather = weather;
    this.#prng = prng;
    this.#events = events;
    this.#gapToMs = weather.clock.now();
    this.#inner = open(mac, this.#innerEvents());
  }

  connect(): void {
    this.#end('trying');
    if (!this.#isInGap() && !this.#befalls('lost-connect', FAULT_ODDS.lostConnect)) {
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
    if (this.#befalls('cut', FAULT_ODDS.cut)) {
      this.#inner.cut(this.#prng.whole(1, FAULT_ODDS.cutAfterBytes));
      this.#inner.publish(uplink);
    } else if (this.#befalls('reorder', FAULT_ODDS.reorder)) {
      this.#late = uplink;
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

  /** What a storm does. */
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
        if (this.#befalls('lost-puback', FAULT_ODDS.lostPuback)) return;
        this.#maybeLater(() => this.#events.acknowledged(uplink));
      },
    };
  }

  /** The uplink reaches the other side, and what got stuck before comes some time after. */
  #send(uplink: Uplink): void {
    this.#inner.publish(uplink);
    if (this.#befalls('duplicate', FAULT_ODDS.duplicate)) this.#inner.publish(uplink);
    const late = this.#late;
    this.#late = undefined;
    if (late !== undefined) this.#later(FAULT_ODDS.delayed, () => this.#inner.publish(late));
  }

  #befalls(fault: FaultName, odds: number): boolean {
    return this.#weather.has(fault) && this.#prng.chance(odds);
  }

  #maybeLater(work: () => void): void {
    if (this.#befalls('delay', FAULT_ODDS.delay)) this.#later(FAULT_ODDS.delayed, work);
    else work();
  }

  #later(span: Span, work: () => void): void {
    const timer = this.#weather.clock.after(this.#prng.whole(...span), () => {
      this.#timers.delete(timer);
      work();
    });
    this.#timers.add(timer);
  }

  /** Ends what is under way. */
  #end(phase: 'down' | 'trying'): void {
    this.#phase = phase;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#nat?.cancel();
  }

  /** Whether the network does not reach the lock now. Where no gap is over, the next one is drawn. */
  #isInGap(): boolean {
    if (!this.#weather.has('gap')) return false;
    const nowMs = this.#weather.clock.now();
    while (this.#gapToMs <= nowMs) {
      this.#gapFromMs = this.#gapToMs + this.#prng.whole(...FAULT_ODDS.gapEvery);
      this.#gapToMs = this.#gapFromMs + this.#prng.whole(...FAULT_ODDS.gapLasts);
    }
    return nowMs >= this.#gapFromMs;
  }

  /** The next gap takes the connection with it: the lock hears of it, the other side does not. */
  #armGap(): void {
    if (this.#isInGap() || !this.#weather.has('gap')) return;
    const wait = this.#gapFromMs - this.#weather.clock.now();
    this.#later([wait, wait], () => {
      if (!this.#weather.has('gap') || this.#phase !== 'up') return;
      this.#end('down');
      this.#inner.abandon();
      this.#events.ended({ message: 'the network is gone' });
    });
  }

  /** A router on the way forgets a connection that is silent for too long, and tells nobody. */
  #armNat(): void {
    this.#nat?.cancel();
    if (!this.#befalls('nat-timeout', FAULT_ODDS.natTimeout)) return;
    this.#nat = this.#weather.clock.after(this.#prng.whole(...FAULT_ODDS.natForgetsAfter), () => {
      if (this.#phase !== 'up') return;
      this.#end('down');
      this.#phase = 'dead';
      this.#inner.abandon();
    });
  }
}
