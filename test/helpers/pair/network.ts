/**
 * The network of a pair check, between one lock and its gateway: messages take their time and keep their order, and a
 * connection may die for one side long before the other learns of it. It does what MQTT over TCP does, no more: what
 * arrives once has arrived for good, and nothing arrives on a connection that its receiver has given up.
 */

import type { Prng } from '../../../firmware-sim/prng.js';
import type { VirtualClock } from '../../../firmware-sim/virtual-clock.js';
import { Seconds } from '../../../proto/clock.js';
import type { DisconnectCause } from '../../../proto/power/judge/event.js';
import type { StepInput } from '../../../proto/power/step/io.js';
import type { Downlink, Uplink } from '../../../proto/wire/ping.js';

/** How a network cuts a connection. */
export const CUTS = ['both', 'lock-first', 'gateway-first', 'deaf', 'mute'] as const;
export type Cut = (typeof CUTS)[number];

/** What the network asks of those at its ends. */
export interface PairEnds {
  /** Something happens to the lock. */
  give(input: StepInput): void;
  /** The gateway sees a connection begin. */
  connected(): void;
  /** The gateway sees it end. `cutBy` is what the world did to it; null where the lock itself let go of it. */
  ended(cause: DisconnectCause, cutBy: string | null): void;
  received(uplink: Uplink): void;
  /** The world is hard on the network at this moment. */
  troubled(): void;
}

/** A lock that has nothing to say for so long says at least that (MQTT 3.1.1, PINGREQ). */
const KEEPALIVE = Seconds(300);
/** Half a keepalive more than one, after which MQTT takes the other side for gone. */
const KEEPALIVE_ENDS = Seconds(450);
const CONNACK_WITHIN = Seconds(30);

interface Line {
  /** What the lock takes it for. */
  phase: 'connecting' | 'up' | 'ending' | 'dead';
  gatewayUp: boolean;
  /** Nothing gets up, or down, any more. */
  isMute: boolean;
  isDeaf: boolean;
  cutBy: string | null;
  /** When the gateway last heard of the lock, and when the line up died. */
  heardMs: number;
  muteMs: number;
  /** When what was sent last arrives: nothing overtakes. */
  upMs: number;
  downMs: number;
}

/** See the head of this file. */
export class PairNetwork {
  /** Whether the gateway takes connections. */
  accepts = true;
  readonly #clock: VirtualClock;
  readonly #random: Prng;
  readonly #latency: readonly [number, number];
  readonly #ends: PairEnds;
  #line: Line | undefined;
  #gatewayLine: Line | undefined;

  /** `latency` is the least and the greatest time that a message takes, in whole ms. */
  constructor(clock: VirtualClock, random: Prng, latency: readonly [number, number], ends: PairEnds) {
    this.#clock = clock;
    this.#random = random;
    this.#latency = latency;
    this.#ends = ends;
  }

  /** Whether the gateway has a connection of the lock. */
  get gatewayUp(): boolean {
    return this.#gatewayLine?.gatewayUp ?? false;
  }

  /* What the lock does. */

  connect(): void {
    const line: Line = {
      phase: 'connecting',
      gatewayUp: false,
      isMute: false,
      isDeaf: false,
      cutBy: null,
      heardMs: 0,
      muteMs: Number.POSITIVE_INFINITY,
      upMs: 0,
      downMs: 0,
    };
    this.#line = line;
    this.#up(line, () => this.#reach(line));
    this.#clock.after(CONNACK_WITHIN, () => {
      if (line.phase !== 'connecting') return;
      line.phase = 'dead';
      this.#gatewayNotices(line);
      this.#ends.give({ type: 'connect-failed' });
    });
  }

  publish(uplink: Uplink): void {
    const line = this.#line;
    if (line?.phase !== 'up') throw new Error('the lock published without a connection');
    this.#up(line, () => {
      if (!line.gatewayUp) return;
      this.#ends.received(uplink);
      this.#down(line, () => {
        const { boot, sequence } = uplink;
        if (line.phase === 'up') this.#ends.give({ type: 'acknowledged', boot, sequence });
      });
    });
  }

  disconnect(): void {
    const line = this.#line;
    if (line?.phase !== 'up') throw new Error('the lock ended no connection');
    line.phase = 'ending';
    this.#up(line, () => this.#end(line, 'closed'));
    this.#clock.after(this.#delay(), () => {
      if (line.phase !== 'ending') return;
      line.phase = 'dead';
      // Where the word was lost, the gateway finds out in time.
      if (line.isMute) this.#gatewayNotices(line);
      this.#ends.give({ type: 'disconnected' });
    });
  }

  /** The lock lets go of its connection without a word. `why` is what the world did to it; null for nothing. */
  drop(why: string | null): void {
    const line = this.#line;
    if (line === undefined || line.phase === 'dead') return;
    line.phase = 'dead';
    line.cutBy ??= why;
    // What is on its way may still arrive.
    if (this.#random.chance(0.5)) this.#mute(line);
    this.#gatewayNotices(line);
  }

  /* What the gateway does. */

  /** Sends a command; false where there is no connection to send it on. */
  send(downlink: Downlink): boolean {
    const line = this.#gatewayLine;
    if (line?.gatewayUp !== true) return false;
    this.#down(line, () => {
      if (line.phase === 'up') this.#ends.give({ type: 'command', downlink });
    });
    return true;
  }

  /** The gateway stops listening: it ends its connections itself. */
  stop(): void {
    this.accepts = false;
    const line = this.#gatewayLine;
    if (line?.gatewayUp !== true) return;
    line.gatewayUp = false;
    line.cutBy ??= 'gateway';
    this.#lockNotices(line, this.#delay());
  }

  /* What the world does. */

  /** Cuts the connection that there is. Returns whether there was one. */
  cut(how: Cut): boolean {
    const line = this.#line;
    if (line === undefined || line.phase === 'dead') return false;
    this.#ends.troubled();
    line.cutBy ??= `a cut (${how})`;
    if (how === 'both' || how === 'lock-first') {
      line.isDeaf = true;
      if (this.#random.chance(0.5)) this.#mute(line);
      this.#lockNotices(line, how === 'both' ? this.#delay() : 0);
    } else {
      line.isDeaf ||= how !== 'mute';
      if (how !== 'deaf') {
        this.#mute(line);
        this.#gatewayNotices(line);
      }
      if (how === 'gateway-first') this.#end(line, 'dropped');
      this.#lockNotices(line, this.#random.integer(0, KEEPALIVE_ENDS));
    }
    return true;
  }

  /** The connection dies, and nobody is told. */
  die(): void {
    const line = this.#line;
    if (line === undefined) return;
    line.cutBy ??= 'a silent death';
    line.isDeaf = true;
    this.#mute(line);
    this.#gatewayNotices(line);
  }

  #reach(line: Line): void {
    // Given up before it stood, and another one was begun since.
    if (line !== this.#line) return;
    if (!this.accepts) {
      this.#ends.troubled();
      this.#down(line, () => {
        if (line.phase !== 'connecting') return;
        line.phase = 'dead';
        this.#ends.give({ type: 'connect-failed' });
      });
      return;
    }
    const before = this.#gatewayLine;
    this.#gatewayLine = line;
    if (before?.gatewayUp === true) {
      before.gatewayUp = false;
      this.#ends.ended('takeover', before.cutBy);
    }
    line.gatewayUp = true;
    this.#ends.connected();
    if (line.phase === 'dead') this.#gatewayNotices(line);
    this.#down(line, () => {
      if (line.phase !== 'connecting') return;
      line.phase = 'up';
      this.#ends.give({ type: 'connected' });
    });
  }

  #up(line: Line, arrive: () => void): void {
    const nowMs = this.#clock.now();
    line.upMs = Math.max(line.upMs, nowMs + this.#delay());
    this.#clock.after(line.upMs - nowMs, () => {
      if (line.isMute) return;
      line.heardMs = this.#clock.now();
      arrive();
    });
  }

  #down(line: Line, arrive: () => void): void {
    const nowMs = this.#clock.now();
    line.downMs = Math.max(line.downMs, nowMs + this.#delay());
    this.#clock.after(line.downMs - nowMs, () => {
      if (!line.isDeaf) arrive();
    });
  }

  #delay(): number {
    const [least, most] = this.#latency;
    return least === most ? least : this.#random.integer(least, most);
  }

  #mute(line: Line): void {
    line.isMute = true;
    line.muteMs = Math.min(line.muteMs, this.#clock.now());
  }

  #end(line: Line, cause: DisconnectCause): void {
    if (!line.gatewayUp) return;
    line.gatewayUp = false;
    this.#ends.ended(cause, line.cutBy);
  }

  /** Nothing more will come from the other end: the gateway learns of it at once, or by the keepalive. */
  #gatewayNotices(line: Line): void {
    const isSoon = this.#random.chance(0.5);
    const nowMs = this.#clock.now();
    const idle = Math.max(0, Math.min(line.muteMs, nowMs) - line.heardMs - 1);
    const heardMs = line.heardMs + Math.floor(idle / KEEPALIVE) * KEEPALIVE;
    const delay = isSoon ? this.#random.integer(0, Seconds(5)) : heardMs + KEEPALIVE_ENDS - nowMs;
    this.#clock.after(delay, () => this.#end(line, isSoon ? 'dropped' : 'keepalive'));
  }

  #lockNotices(line: Line, delay: number): void {
    this.#clock.after(delay, () => {
      if (line.phase === 'dead') return;
      const wasConnecting = line.phase === 'connecting';
      line.phase = 'dead';
      this.#ends.troubled();
      this.#gatewayNotices(line);
      this.#ends.give({ type: wasConnecting ? 'connect-failed' : 'disconnected' });
    });
  }
}
