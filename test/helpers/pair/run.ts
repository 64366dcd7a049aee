/**
 * One lock under `step`, a modelled network, and a gateway under `judge`, on a clock that jumps from one thing due to
 * the next (architecture.md, "Pair check"). What the judge finds is held against what the world did: a violation is
 * always wrong, and a warning is, unless the world cut the lock off.
 */

import { Prng } from '../../../firmware-sim/prng.js';
import { VirtualClock } from '../../../firmware-sim/virtual-clock.js';
import { Days, Hours, type Milliseconds, Minutes } from '../../../proto/clock.js';
import type { InitialBelief } from '../../../proto/power/judge/belief.js';
import type { DisconnectCause, Finding } from '../../../proto/power/judge/event.js';
import { POWER_MODEL, type PowerModel } from '../../../proto/power/model.js';
import type { GpsFix, StepEffect, StepInput } from '../../../proto/power/step/io.js';
import { type Draft, type NewLock, newLock } from '../../../proto/power/step/state.js';
import { needsCellPosition, needsFix, stepInPlace } from '../../../proto/power/step/step.js';
import type { Downlink, HighWindow, Uplink } from '../../../proto/wire/ping.js';
import { BENCH_MAC } from '../mqtt/lock-bench.js';
import { nameNumber, PairJudge } from './judge.js';
import { type PairEnds, PairNetwork } from './network.js';

/** How much of what happened a report shows. */
const EVENTS_KEPT = 40;
/** Wakes at one moment in a row: more would be a lock that wakes itself for ever. */
const MOST_WAKES_AT_ONCE = 1000;
/** Commands that the gateway keeps for the lock. */
const COMMANDS_KEPT = 8;
/** How long after a cut a lock may still be on its way back: its longest wait, and messages that take their time. */
const BACK_WITHIN = Minutes(6) + Minutes(1);

export interface PairOptions {
  readonly seed: string | number;
  readonly startMs: number;
  readonly lock: Omit<NewLock, 'mac' | 'firmwareVersion' | 'jitterSeed'>;
  /** The least and the greatest time that a message takes, ms. */
  readonly latency: readonly [number, number];
  /** What the lock acts by; the judge keeps the true one. */
  readonly model?: PowerModel;
  /** A fault of the firmware that no table holds: changes the state after each step, and returns when to wake then. */
  readonly tamper?: (state: Draft, wakeAtMs: number) => number;
  /** Told of everything that passes between lock and gateway, as the gateway sees it. */
  readonly witness?: (atMs: number, what: Witnessed) => void;
}

/** What a gateway sees of a lock, and what people at the lock hear of it. */
export type Witnessed =
  | { readonly type: 'connect' }
  | { readonly type: 'disconnect'; readonly cause: DisconnectCause }
  | { readonly type: 'uplink'; readonly uplink: Uplink }
  | { readonly type: 'command'; readonly downlink: Downlink }
  | { readonly type: 'effect'; readonly effect: StepEffect };

/** A finding that nothing in the world explains. */
export interface Unexplained {
  readonly finding: Finding;
  readonly events: readonly string[];
}

interface Logged {
  readonly atMs: number;
  readonly what: unknown;
}

export class PairRun {
  readonly clock: VirtualClock;
  readonly random: Prng;
  readonly state: Draft;
  readonly judge: PairJudge;
  /** What the judge believed before anything happened. */
  readonly initial: InitialBelief;
  readonly network: PairNetwork;
  /** Whether people change the settings by hand, of which a sleeping lock need not tell. */
  hasHands = false;
  /** Findings that nothing explains and that were not withdrawn. */
  readonly unexplained: Unexplained[] = [];
  /** How many findings the world explains, by rule. */
  readonly explained = new Map<string, number>();
  /** Uplinks made, by name, that the gateway has not got and the lock has not discarded. */
  readonly outstanding = new Map<number, Uplink>();
  newest: Uplink | undefined;
  steps = 0;
  readonly #options: PairOptions;
  readonly #model: PowerModel;
  readonly #effects: StepEffect[] = [];
  readonly #log: Logged[] = [];
  #logged = 0;
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #armedMs = Number.POSITIVE_INFINITY;
  #judgeArmedMs = Number.POSITIVE_INFINITY;
  #sleepsUntilMs = Number.NEGATIVE_INFINITY;
  #tickedMs = Number.NEGATIVE_INFINITY;
  #ticksAtOnce = 0;
  #troubledMs = Number.NEGATIVE_INFINITY;
  #cutBy: string | null = null;
  /** The window of the last acknowledgement that was discarded. */
  #lostWindow: HighWindow | null = null;
  #commands: Downlink[] = [];

  constructor(options: PairOptions) {
    const { seed, startMs, lock } = options;
    this.#options = options;
    this.#model = options.model ?? POWER_MODEL;
    this.clock = new VirtualClock(startMs);
    this.random = new Prng(seed);
    this.state = newLock(this.#model, { mac: BENCH_MAC, firmwareVersion: '2.4.1', jitterSeed: 1, ...lock });
    const { power, highWindow, lockState } = lock;
    this.initial = {
      listeningSinceMs: startMs,
      lockState,
      ...(power && { power }),
      ...(highWindow && { highWindow }),
    };
    this.judge = new PairJudge(
      startMs,
      this.initial,
      (finding) => this.#found(finding),
      (rule, name) => this.#withdrawn(rule, name),
    );
    this.network = new PairNetwork(this.clock, this.random.fork('network'), options.latency, this.#ends());
    this.give({ type: 'boot' });
  }

  get nowMs(): number {
    return this.clock.now();
  }

  /** Lets time pass. */
  pass(span: Milliseconds): this {
    this.clock.run(this.nowMs + span);
    return this;
  }

  /** Does something to the world after a while. */
  later(delay: Milliseconds, change: () => void): void {
    this.clock.after(delay, change);
  }

  /** Lets time pass in which whoever runs the lock is late: what it was to be woken for comes when it is over. */
  oversleep(span: Milliseconds): this {
    this.#sleepsUntilMs = this.nowMs + span;
    return this.pass(span);
  }

  /** Something happens to the lock now. */
  give(input: StepInput): this {
    if (input.type !== 'tick') this.#note(input);
    if (CUTTING.has(input.type)) this.troubled();
    const effects = this.#effects;
    this.steps++;
    const wakeAtMs = stepInPlace(this.#model, this.state, input, this.nowMs, effects);
    this.#wakeAtMs = this.#options.tamper?.(this.state, wakeAtMs) ?? wakeAtMs;
    for (const effect of effects) this.#perform(effect, input);
    effects.length = 0;
    this.#arm();
    return this;
  }

  /** The gateway is asked to have the lock do something; it keeps the command until it is acknowledged or expires. */
  order(downlink: Downlink): void {
    if (!this.#commands.some(({ id }) => id === downlink.id)) this.#commands.push(downlink);
    if (this.#commands.length > COMMANDS_KEPT) this.#commands.shift();
    this.send(downlink);
  }

  /** The gateway sends a command, be it once more: never in LOW_BATTERY (protocol.md §1). */
  send(downlink: Downlink): void {
    if (this.judge.belief.state === 'LOW_BATTERY' || !this.network.gatewayUp) return;
    const { id, command } = downlink;
    this.#note(downlink);
    this.#options.witness?.(this.nowMs, { type: 'command', downlink });
    this.judge.judge({ type: 'command', id, command, atMs: this.nowMs });
    this.#armJudge();
    this.network.send(downlink);
  }

  /** The gateway stops to listen, or begins again. */
  listen(listens: boolean): void {
    if (this.network.accepts === listens) return;
    this.#note(listens ? 'gateway starts' : 'gateway stops');
    this.troubled();
    this.judge.judge({ type: 'gateway', state: listens ? 'start' : 'stop', atMs: this.nowMs });
    if (listens) this.network.accepts = true;
    else this.network.stop();
    this.#armJudge();
  }

  /** The world is hard on the lock's connection at this moment. */
  troubled(): void {
    this.#troubledMs = this.nowMs;
  }

  /** What happened last, a line each. */
  events(): string[] {
    const first = Math.max(0, this.#logged - EVENTS_KEPT);
    const lines: string[] = [];
    for (let index = first; index < this.#logged; index++) {
      const { atMs, what } = this.#log[index % EVENTS_KEPT] as Logged;
      lines.push(`${new Date(atMs).toISOString()} ${typeof what === 'string' ? what : JSON.stringify(what)}`);
    }
    return lines;
  }

  #note(what: unknown): void {
    this.#log[this.#logged++ % EVENTS_KEPT] = { atMs: this.nowMs, what };
  }

  #ends(): PairEnds {
    return {
      give: (input) => void this.give(input),
      connected: () => {
        this.#note('gateway: connect');
        this.#options.witness?.(this.nowMs, { type: 'connect' });
        this.judge.judge({ type: 'connect', source: 'lock', atMs: this.nowMs });
        this.#sendKept();
        this.#armJudge();
      },
      ended: (cause, cutBy) => {
        this.#note(`gateway: disconnect ${cause}${cutBy === null ? '' : `, by ${cutBy}`}`);
        this.#options.witness?.(this.nowMs, { type: 'disconnect', cause });
        this.#cutBy = cutBy;
        this.judge.judge({ type: 'disconnect', source: 'lock', cause, atMs: this.nowMs });
        this.#armJudge();
      },
      received: (uplink) => this.#received(uplink),
      troubled: () => this.troubled(),
    };
  }

  #received(uplink: Uplink): void {
    this.#note({ received: uplink });
    this.#options.witness?.(this.nowMs, { type: 'uplink', uplink });
    this.outstanding.delete(nameNumber(uplink));
    const { body } = uplink;
    if (body.kind === 'ack') this.#commands = this.#commands.filter(({ id }) => id !== body.commandId);
    this.judge.receive(uplink, this.nowMs);
    this.#armJudge();
  }

  /** What the gateway has kept for the lock goes out when it connects. */
  #sendKept(): void {
    this.#commands = this.#commands.filter(({ expiresMs }) => expiresMs > this.nowMs);
    for (const downlink of this.#commands) this.send(downlink);
  }

  #perform(effect: StepEffect, input: StepInput): void {
    this.#options.witness?.(this.nowMs, { type: 'effect', effect });
    switch (effect.type) {
      case 'connect':
        this.#note('lock: connect');
        this.network.connect();
        break;
      case 'publish':
        this.network.publish(effect.uplink);
        break;
      case 'disconnect':
        this.#note('lock: disconnect');
        this.network.disconnect();
        break;
      case 'drop':
        this.#note('lock: drop');
        this.network.drop(CUTTING.has(input.type) ? input.type : null);
        break;
      case 'made':
        this.#note({ made: effect.uplink });
        this.newest = effect.uplink;
        this.outstanding.set(nameNumber(effect.uplink), effect.uplink);
        break;
      case 'discarded':
        if (effect.uplink.body.kind === 'ack') this.#lostWindow = effect.uplink.body.highWindow ?? this.#lostWindow;
        this.outstanding.delete(nameNumber(effect.uplink));
        break;
    }
  }

  #arm(): void {
    if (this.#wakeAtMs >= this.#armedMs || this.#wakeAtMs === Number.POSITIVE_INFINITY) return;
    this.#armedMs = Math.max(this.#wakeAtMs, this.#sleepsUntilMs);
    const armedMs = this.#armedMs;
    this.clock.after(armedMs - this.nowMs, () => {
      if (this.#armedMs !== armedMs) return;
      this.#armedMs = Number.POSITIVE_INFINITY;
      if (this.#wakeAtMs <= this.nowMs && this.#sleepsUntilMs <= this.nowMs) this.#tick();
      else this.#arm();
    });
  }

  #tick(): void {
    this.#ticksAtOnce = this.nowMs === this.#tickedMs ? this.#ticksAtOnce + 1 : 0;
    this.#tickedMs = this.nowMs;
    if (this.#ticksAtOnce > MOST_WAKES_AT_ONCE) throw new Error('the lock wakes itself for ever');
    const { state } = this;
    this.give({
      type: 'tick',
      fix: needsFix(state) && state.skyOpen ? fixAt(this.nowMs) : null,
      cellPosition: needsCellPosition(state) && state.covered ? fixAt(this.nowMs).position : null,
    });
  }

  /** The judge is given a tick right after each moment at which something may lapse. */
  #armJudge(): void {
    const dueMs = this.judge.belief.dueMs + 1;
    if (dueMs >= this.#judgeArmedMs || dueMs - this.nowMs > Days(60)) return;
    this.#judgeArmedMs = dueMs;
    this.clock.after(dueMs - this.nowMs, () => {
      if (this.#judgeArmedMs !== dueMs) return;
      this.#judgeArmedMs = Number.POSITIVE_INFINITY;
      if (this.judge.belief.dueMs < this.nowMs) this.judge.judge({ type: 'tick', atMs: this.nowMs });
      this.#armJudge();
    });
  }

  #found(finding: Finding): void {
    this.#note(`judge: ${finding.rule}: ${finding.message}`);
    const why = this.#isWindowLost(finding) ? 'the window’s acknowledgement was lost' : this.#explain(finding);
    if (why === null) this.unexplained.push({ finding, events: this.events() });
    else this.explained.set(finding.rule, (this.explained.get(finding.rule) ?? 0) + 1);
  }

  #withdrawn(rule: string, name: number): void {
    const index = this.unexplained.findIndex(
      ({ finding }) => finding.rule === rule && finding.about !== null && nameNumber(finding.about) === name,
    );
    if (index >= 0) this.unexplained.splice(index, 1);
  }

  /**
   * A gap of the protocol, and the only violation that a true lock can be charged with: the high window stands in the
   * acknowledgement of a set-power alone. Where a full buffer had to let go of it (protocol.md §2), and the command has
   * expired since, the other side judges HIGH by a window that is no longer in force.
   */
  #isWindowLost({ rule }: Finding): boolean {
    const { belief } = this.judge;
    return (
      (rule === 'connection-unexplained' || rule === 'window-offline') &&
      belief.state === 'HIGH' &&
      this.#lostWindow !== null &&
      this.#lostWindow === this.state.highWindow
    );
  }

  /** What the world did that a warning comes from; null where it did nothing. */
  #explain({ rule, severity }: Finding): string | null {
    if (severity === 'violation') return null;
    switch (rule) {
      case 'not-closed':
        return this.#cutBy;
      case 'sequence-gap':
        return this.#isOnItsWay() ? 'cut off for long, and still sending what it kept' : null;
      case 'period-overdue':
        return this.#wasTroubled(this.#sinceLastPeriod()) ? 'cut off' : null;
      case 'window-offline':
      case 'recovery-offline':
        // What the lock was to say of itself was lost, or it need not say it: it sleeps in a state that keeps none.
        if ((this.hasHands || this.#troubledMs > 0) && this.#isStale()) return 'in another state by now';
        return this.#wasTroubled(Minutes(10)) ? 'cut off' : null;
      default:
        return null;
    }
  }

  /** Longer than the 25 h where the rule was suspended meanwhile. */
  #sinceLastPeriod(): Milliseconds {
    return Math.max(Hours(25), this.nowMs - (this.judge.belief.lastPeriodMs ?? this.nowMs));
  }

  /** Whether the lock was cut off, or on its way back, within the span that ends now. */
  #wasTroubled(span: Milliseconds): boolean {
    const { state, network } = this;
    return !state.covered || !network.accepts || this.#troubledMs >= this.nowMs - span - BACK_WITHIN;
  }

  /** Whether a missing number is still to come, or the uplink that tells how many were dropped. */
  #isOnItsWay(): boolean {
    if (this.judge.missing().some((name) => this.outstanding.has(name))) return true;
    const told = new Map(this.judge.belief.runs.map(({ boot, dropped }) => [boot, dropped]));
    return [...this.outstanding.values()].some(({ boot, dropped }) => dropped > (told.get(boot) ?? 0));
  }

  /** Whether the gateway takes the lock to be in another state than it is in. */
  #isStale(): boolean {
    return this.judge.belief.state !== this.state.stateName;
  }
}

/** What ends a connection from the lock's side of the network. */
const CUTTING: ReadonlySet<StepInput['type']> = new Set(['coverage', 'boot', 'modem-reset']);

/** A lock that goes round in a circle of some 100 m, by the clock. */
function fixAt(atMs: number): GpsFix {
  const turn = (atMs % Minutes(10)) / Minutes(10);
  const radians = turn * 2 * Math.PI;
  const toE7 = (degrees: number): number => Math.round(degrees * 1e7) / 1e7;
  return {
    position: {
      latitudeDegrees: toE7(52.37 + Math.cos(radians) / 1000),
      longitudeDegrees: toE7(4.89 + Math.sin(radians) / 700),
      uncertaintyMeters: 8,
    },
    speedMetersPerSecond: 1.05,
    directionDegrees: Math.floor(((turn * 360 + 90) % 360) * 100) / 100,
  };
}
