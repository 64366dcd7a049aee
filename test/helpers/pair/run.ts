/**
 * A pair check (architecture.md, "Pair check") runs the two implementations of the power model against each other on a
 * virtual clock: `step`, which simulates one lock, and `judge`, which checks the lock's messages as the gateway does. A
 * simulated network connects them. Each finding (objection) of the judge is compared with the simulated world, that is
 * with what happened to lock and network. A violation is always a mistake of one implementation. A warning is a mistake
 * unless the world cut the lock off.
 */

import type { StepWrapper } from '../../../firmware-sim/faults/bug-wrappers.js';
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
import { keyNumber, PairJudge } from './judge.js';
import { MODEL_LOCK_MAC } from './model-lock.js';
import { type NetworkEndpoints, PairNetwork } from './network.js';

/** Maximum number of logged events that a report shows. */
const MAX_LOGGED_EVENTS = 40;
/** A lock that wakes up more often at one moment is in an endless loop. */
const MAX_WAKE_UPS_PER_MOMENT = 1000;
/** Maximum number of commands that the gateway queues for the lock. */
const MAX_QUEUED_COMMANDS = 8;
/** Later deadlines of the judge get no timer, since no run takes that long. */
const MAX_TIMER_MS = Days(60);
/** How long after a cut a lock may take to reconnect: its longest retry interval, and some latency. */
const MAX_RECONNECT_MS = Minutes(6) + Minutes(1);

/** The lock, its network, and what is wrong with the lock, if anything. */
export interface PairOptions {
  readonly seed: string | number;
  readonly startMs: number;
  readonly lock: Omit<NewLock, 'mac' | 'firmwareVersion' | 'jitterSeed'>;
  /** The shortest and longest time that a message takes, ms. */
  readonly latency: readonly [number, number];
  /** The lock's power model, for mutation checks. The judge always uses the true model. */
  readonly model?: PowerModel;
  /** A firmware fault outside the power model: changes the state after each step, and returns the next wake-up time. */
  readonly tamper?: (state: Draft, wakeAtMs: number) => number;
  /** A firmware fault that changes what the lock does at each step (firmware-sim/faults). */
  readonly wrapStep?: StepWrapper;
  /** Called with each event between lock and gateway, as the gateway sees it. */
  readonly observe?: (atMs: number, event: ObservedEvent) => void;
}

/** An event that a gateway sees of a lock, or an effect that a person at the lock notices. */
export type ObservedEvent =
  | { readonly type: 'connect' }
  | { readonly type: 'disconnect'; readonly cause: DisconnectCause }
  | { readonly type: 'uplink'; readonly uplink: Uplink }
  | { readonly type: 'command'; readonly downlink: Downlink }
  | { readonly type: 'effect'; readonly effect: StepEffect };

/** A finding that no event of the world explains, with the last events before it. */
export interface Unexplained {
  readonly finding: Finding;
  readonly events: readonly string[];
}

/** An event of the run, for the story of a fault. */
interface LoggedEvent {
  readonly atMs: number;
  readonly event: unknown;
}

/** One lock with its network and its judge. The caller advances the clock and applies events. */
export class PairRun {
  readonly clock: VirtualClock;
  readonly random: Prng;
  readonly state: Draft;
  readonly judge: PairJudge;
  /** The judge's belief at the start. */
  readonly initial: InitialBelief;
  readonly network: PairNetwork;
  /** Whether a person may change settings at the lock. A sleeping lock need not report such a change. */
  isOperatedManually = false;
  /** Findings that no event explains and that the judge has not withdrawn. */
  readonly unexplained: Unexplained[] = [];
  /** How many findings the world explains, by rule. */
  readonly explained = new Map<string, number>();
  /** Uplinks that the gateway has not received and the lock has not discarded, by {@link keyNumber}. */
  readonly outstanding = new Map<number, Uplink>();
  /** The last uplink that the lock made. */
  newest: Uplink | undefined;
  /** The number of inputs that the lock has processed. */
  steps = 0;
  readonly #options: PairOptions;
  readonly #model: PowerModel;
  readonly #step: typeof stepInPlace;
  readonly #effects: StepEffect[] = [];
  /** The last events, as a ring buffer. */
  readonly #log: LoggedEvent[] = [];
  /** The number of events logged so far. */
  #loggedCount = 0;
  /** When the lock wants to wake up. */
  #wakeAtMs = Number.POSITIVE_INFINITY;
  /** When the lock's timer fires; Infinity if no timer is scheduled. */
  #lockTimerMs = Number.POSITIVE_INFINITY;
  /** When the judge's timer fires; Infinity if no timer is scheduled. */
  #judgeTimerMs = Number.POSITIVE_INFINITY;
  /** Until when the program that runs the lock delays its wake-ups. */
  #lateUntilMs = Number.NEGATIVE_INFINITY;
  /** When the lock last woke up, and how often it has at that moment. */
  #lastTickMs = Number.NEGATIVE_INFINITY;
  #ticksAtThisMoment = 0;
  /** When the world last disturbed the lock's connection. */
  #lastTroubleMs = Number.NEGATIVE_INFINITY;
  /** The event that cut the last closed connection; null if it was closed properly. */
  #cutBy: string | null = null;
  /** The high window (the hours of mode HIGH) in the last acknowledgement that the lock discarded. */
  #lostWindow: HighWindow | null = null;
  /** The commands that the gateway has queued for the lock. */
  #commands: Downlink[] = [];
  /** The ids of the commands that have reached the lock since the gateway last sent them. */
  readonly #reachedIds = new Set<number>();

  constructor(options: PairOptions) {
    const { seed, startMs, lock } = options;
    this.#options = options;
    this.#model = options.model ?? POWER_MODEL;
    this.#step = options.wrapStep?.(stepInPlace) ?? stepInPlace;
    this.clock = new VirtualClock(startMs);
    this.random = new Prng(seed);
    this.state = newLock(this.#model, { mac: MODEL_LOCK_MAC, firmwareVersion: '2.4.1', jitterSeed: 1, ...lock });
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
      (finding) => this.#onFinding(finding),
      (rule, key) => this.#onWithdrawal(rule, key),
    );
    this.network = new PairNetwork(this.clock, this.random.fork('network'), options.latency, this.#endpoints());
    this.input({ type: 'boot' });
  }

  get nowMs(): number {
    return this.clock.now();
  }

  /** Advances the clock. */
  advance(span: Milliseconds): this {
    this.clock.run(this.nowMs + span);
    return this;
  }

  /** Schedules a change of the world. */
  schedule(delay: Milliseconds, change: () => void): void {
    this.clock.after(delay, change);
  }

  /** Advances the clock while the program that runs the lock is late: wake-ups of this span come at its end. */
  advanceWithLateWakeUps(span: Milliseconds): this {
    this.#lateUntilMs = this.nowMs + span;
    return this.advance(span);
  }

  /** Processes an input of the lock now. */
  input(input: StepInput): this {
    if (input.type !== 'tick') this.#logEvent(input);
    if (CUTTING_INPUTS.has(input.type)) this.recordTrouble();
    if (input.type === 'command') this.#reachedIds.add(input.downlink.id);
    const effects = this.#effects;
    this.steps++;
    const wakeAtMs = this.#step(this.#model, this.state, input, this.nowMs, effects);
    this.#wakeAtMs = this.#options.tamper?.(this.state, wakeAtMs) ?? wakeAtMs;
    for (const effect of effects) this.#perform(effect, input);
    effects.length = 0;
    this.#scheduleLockTick();
    return this;
  }

  /** Gives the gateway a command, which it queues until the command is acknowledged or expires. */
  enqueueCommand(downlink: Downlink): void {
    if (!this.#commands.some(({ id }) => id === downlink.id)) this.#commands.push(downlink);
    if (this.#commands.length > MAX_QUEUED_COMMANDS) this.#commands.shift();
    this.sendCommand(downlink);
  }

  /** The gateway sends a command, for the first time or again; never in LOW_BATTERY (protocol.md §1). */
  sendCommand(downlink: Downlink): void {
    if (this.judge.belief.state !== 'LOW_BATTERY') this.forceCommand(downlink);
  }

  /** Sends a command in any state. */
  forceCommand(downlink: Downlink): void {
    if (!this.network.gatewayUp) return;
    const { id, command, expiresMs } = downlink;
    this.#logEvent(downlink);
    this.#reachedIds.delete(id);
    this.#options.observe?.(this.nowMs, { type: 'command', downlink });
    this.judge.judge({ type: 'command', id, command, expiresMs, atMs: this.nowMs });
    this.#scheduleJudgeTick();
    this.network.send(downlink);
  }

  /** The gateway stops listening, or starts again. */
  setListening(listens: boolean): void {
    if (this.network.accepts === listens) return;
    this.#logEvent(listens ? 'gateway starts' : 'gateway stops');
    this.recordTrouble();
    this.judge.judge({ type: 'gateway', state: listens ? 'start' : 'stop', atMs: this.nowMs });
    if (listens) this.network.accepts = true;
    else this.network.stopListening();
    this.#scheduleJudgeTick();
  }

  /** Records that the world disturbs the lock's connection at this moment. */
  recordTrouble(): void {
    this.#lastTroubleMs = this.nowMs;
  }

  /** The last events, one line each. */
  events(): string[] {
    const first = Math.max(0, this.#loggedCount - MAX_LOGGED_EVENTS);
    const lines: string[] = [];
    for (let index = first; index < this.#loggedCount; index++) {
      const { atMs, event } = this.#log[index % MAX_LOGGED_EVENTS] as LoggedEvent;
      lines.push(`${new Date(atMs).toISOString()} ${typeof event === 'string' ? event : JSON.stringify(event)}`);
    }
    return lines;
  }

  #logEvent(event: unknown): void {
    this.#log[this.#loggedCount++ % MAX_LOGGED_EVENTS] = { atMs: this.nowMs, event };
  }

  /** What happens when the network reports an event to the lock or to the gateway. */
  #endpoints(): NetworkEndpoints {
    return {
      input: (input) => void this.input(input),
      connected: () => {
        this.#logEvent('gateway: connect');
        this.#options.observe?.(this.nowMs, { type: 'connect' });
        this.judge.judge({ type: 'connect', source: 'lock', atMs: this.nowMs });
        this.#sendQueuedCommands();
        this.#scheduleJudgeTick();
      },
      disconnected: (cause, cutBy) => {
        this.#logEvent(`gateway: disconnect ${cause}${cutBy === null ? '' : `, by ${cutBy}`}`);
        this.#options.observe?.(this.nowMs, { type: 'disconnect', cause });
        this.#cutBy = cutBy;
        this.judge.judge({ type: 'disconnect', source: 'lock', cause, atMs: this.nowMs });
        this.#scheduleJudgeTick();
      },
      received: (uplink) => this.#received(uplink),
      recordTrouble: () => this.recordTrouble(),
    };
  }

  #received(uplink: Uplink): void {
    this.#logEvent({ received: uplink });
    this.#options.observe?.(this.nowMs, { type: 'uplink', uplink });
    this.outstanding.delete(keyNumber(uplink));
    const { body } = uplink;
    if (body.kind === 'ack') this.#commands = this.#commands.filter(({ id }) => id !== body.commandId);
    this.judge.receive(uplink, this.nowMs);
    this.#scheduleJudgeTick();
  }

  /** Sends the queued commands when the lock connects. */
  #sendQueuedCommands(): void {
    this.#commands = this.#commands.filter(({ expiresMs }) => expiresMs > this.nowMs);
    for (const downlink of this.#commands) this.sendCommand(downlink);
  }

  /** Carries out what the lock does at a step. */
  #perform(effect: StepEffect, input: StepInput): void {
    this.#options.observe?.(this.nowMs, { type: 'effect', effect });
    switch (effect.type) {
      case 'connect':
        this.#logEvent('lock: connect');
        this.network.connect();
        break;
      case 'publish':
        this.network.publish(effect.uplink);
        break;
      case 'disconnect':
        this.#logEvent('lock: disconnect');
        this.network.disconnect();
        break;
      case 'drop':
        this.#logEvent('lock: drop');
        this.network.drop(CUTTING_INPUTS.has(input.type) ? input.type : null);
        break;
      case 'made':
        this.#logEvent({ made: effect.uplink });
        this.newest = effect.uplink;
        this.outstanding.set(keyNumber(effect.uplink), effect.uplink);
        break;
      case 'discarded':
        if (effect.uplink.body.kind === 'ack') this.#lostWindow = effect.uplink.body.highWindow ?? this.#lostWindow;
        this.outstanding.delete(keyNumber(effect.uplink));
        break;
    }
  }

  /** Schedules the lock's next wake-up, unless an earlier one is scheduled. */
  #scheduleLockTick(): void {
    if (this.#wakeAtMs >= this.#lockTimerMs || this.#wakeAtMs === Number.POSITIVE_INFINITY) return;
    this.#lockTimerMs = Math.max(this.#wakeAtMs, this.#lateUntilMs);
    const timerMs = this.#lockTimerMs;
    this.clock.after(timerMs - this.nowMs, () => {
      if (this.#lockTimerMs !== timerMs) return;
      this.#lockTimerMs = Number.POSITIVE_INFINITY;
      if (this.#wakeAtMs <= this.nowMs && this.#lateUntilMs <= this.nowMs) this.#wakeLock();
      else this.#scheduleLockTick();
    });
  }

  #wakeLock(): void {
    this.#ticksAtThisMoment = this.nowMs === this.#lastTickMs ? this.#ticksAtThisMoment + 1 : 0;
    this.#lastTickMs = this.nowMs;
    if (this.#ticksAtThisMoment > MAX_WAKE_UPS_PER_MOMENT) throw new Error('the lock wakes up endlessly at one moment');
    const { state } = this;
    this.input({
      type: 'tick',
      fix: needsFix(state) && state.skyOpen ? fixAt(this.nowMs) : null,
      cellPosition: needsCellPosition(state) && state.covered ? fixAt(this.nowMs).position : null,
    });
  }

  /** Schedules a tick of the judge just after each moment at which a deadline may expire. */
  #scheduleJudgeTick(): void {
    const dueMs = this.judge.belief.dueMs + 1;
    if (dueMs >= this.#judgeTimerMs || dueMs - this.nowMs > MAX_TIMER_MS) return;
    this.#judgeTimerMs = dueMs;
    this.clock.after(dueMs - this.nowMs, () => {
      if (this.#judgeTimerMs !== dueMs) return;
      this.#judgeTimerMs = Number.POSITIVE_INFINITY;
      if (this.judge.belief.dueMs < this.nowMs) this.judge.judge({ type: 'tick', atMs: this.nowMs });
      this.#scheduleJudgeTick();
    });
  }

  #onFinding(finding: Finding): void {
    this.#logEvent(`judge: ${finding.rule}: ${finding.message}`);
    const explanation = this.#isWindowLost(finding) ? 'the window’s acknowledgement was lost' : this.#explain(finding);
    if (explanation === null) this.unexplained.push({ finding, events: this.events() });
    else this.explained.set(finding.rule, (this.explained.get(finding.rule) ?? 0) + 1);
  }

  #onWithdrawal(rule: string, key: number): void {
    const index = this.unexplained.findIndex(
      ({ finding }) => finding.rule === rule && finding.about !== null && keyNumber(finding.about) === key,
    );
    if (index >= 0) this.unexplained.splice(index, 1);
  }

  /**
   * Whether a gap of the protocol explains the warning: only the acknowledgement of a set-power carries the window. If
   * a full buffer discarded that acknowledgement (protocol.md §2), the judge expects a connection in the old window.
   */
  #isWindowLost({ rule }: Finding): boolean {
    const { belief } = this.judge;
    return (
      rule === 'window-offline' &&
      belief.state === 'HIGH' &&
      this.#lostWindow !== null &&
      this.#lostWindow === this.state.highWindow
    );
  }

  /** The event of the world that caused a warning; null if there is none. */
  #explain({ rule, severity, message }: Finding): string | null {
    if (severity === 'violation') return null;
    switch (rule) {
      case 'not-closed':
        return this.#cutBy;
      case 'command-ignored':
        return this.#hasReachedLock(message)
          ? null
          : 'a command that was lost on a connection whose uplinks still came';
      case 'sequence-gap':
        return this.#isGapTemporary() ? 'cut off for long, and still sending its buffer' : null;
      case 'period-overdue':
        return this.#hadTrouble(this.#sinceLastPeriod()) ? 'cut off' : null;
      case 'window-offline':
      case 'recovery-offline':
        // The report of the lock's new state was lost, or the lock, asleep without a connection, need not report it.
        if ((this.isOperatedManually || this.#lastTroubleMs > 0) && this.#isStateOutdated())
          return 'in another state meanwhile';
        return this.#hadTrouble(Minutes(10)) ? 'cut off' : null;
      default:
        return null;
    }
  }

  /** The time since the last Period Ping, at least 25 h. It is longer if the rule was suspended meanwhile. */
  #sinceLastPeriod(): Milliseconds {
    return Math.max(Hours(25), this.nowMs - (this.judge.belief.lastPeriodMs ?? this.nowMs));
  }

  /** Whether the lock was cut off or reconnecting within the span that ends now. */
  #hadTrouble(span: Milliseconds): boolean {
    const { state, network } = this;
    return !state.covered || !network.accepts || this.#lastTroubleMs >= this.nowMs - span - MAX_RECONNECT_MS;
  }

  /** Whether the command that the finding names has reached the lock since it was last sent. */
  #hasReachedLock(message: string): boolean {
    return this.#reachedIds.has(Number(/^Command (\d+) /.exec(message)?.[1]));
  }

  /** Whether a missing uplink may still arrive, or the uplink that reports how many were dropped. */
  #isGapTemporary(): boolean {
    if (this.judge.missing().some((key) => this.outstanding.has(key))) return true;
    const reportedDrops = new Map(this.judge.belief.runs.map(({ boot, dropped }) => [boot, dropped]));
    return [...this.outstanding.values()].some(({ boot, dropped }) => dropped > (reportedDrops.get(boot) ?? 0));
  }

  /** Whether the judge believes a state that differs from the lock's state. */
  #isStateOutdated(): boolean {
    return this.judge.belief.state !== this.state.stateName;
  }
}

/** The inputs that break a connection at the lock's end. */
const CUTTING_INPUTS: ReadonlySet<StepInput['type']> = new Set(['coverage', 'boot', 'modem-reset']);

/** The fix of a lock that moves in a circle of about 100 m, depending only on the time. */
function fixAt(atMs: number): GpsFix {
  const turn = (atMs % Minutes(10)) / Minutes(10);
  const radians = turn * 2 * Math.PI;
  const toE7 = (degrees: number): number => Math.round(degrees * 1e7) / 1e7;
  // A thousandth of a degree of latitude is 111 m; a degree of longitude is shorter there.
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
