/**
 * One lock of the power model (its function `step`), with a network that answers at once or is broken, and a time that
 * a test advances. Records the lock's effects (what it sends and switches) with their times. No gateway judges them; in
 * run.ts one does.
 */
import { Hours, Minutes } from '../../../proto/clock.js';
import { POWER_MODEL, type PowerModel } from '../../../proto/power/model.js';
import type { GpsFix, StepEffect, StepInput } from '../../../proto/power/step/io.js';
import { type NewLock, newLock, type StepState } from '../../../proto/power/step/state.js';
import { needsCellPosition, needsFix, step } from '../../../proto/power/step/step.js';
import { type Mac, parseMac } from '../../../proto/wire/mac.js';
import type { Command, Downlink, Position, PowerSettings, Uplink } from '../../../proto/wire/ping.js';

/** Midnight, UTC, of a Friday. */
export const MIDNIGHT_MS = Date.UTC(2026, 10, 20);

/** The daily ping's time depends on the MAC. With this MAC it is far from the hours that the tests use. */
export const MODEL_LOCK_MAC = macOf('A4C138F0E1D2');

/** Maximum number of wakes at one moment: more would be a lock that wakes itself for ever. */
const MAX_WAKES_PER_MOMENT = 50;

/** The MAC of a text that has one. @throws Error otherwise */
export function macOf(text: string): Mac {
  const mac = parseMac(text);
  if (!mac.ok) throw new Error(mac.error.message);
  return mac.value;
}

/** How the lock differs from a locked lock with 80 % battery that boots at noon. */
export interface ModelLockOptions extends Partial<NewLock> {
  readonly model?: PowerModel;
  /** When the lock boots; noon if undefined. */
  readonly startMs?: number;
}

/** An effect of the lock, and its time. */
export type TimedEffect = { readonly atMs: number; readonly effect: StepEffect };

/** The lock, its time, and its recorded effects. */
export class ModelLock {
  readonly model: PowerModel;
  state: StepState;
  nowMs: number;
  /** When the lock wants to wake up. */
  wakeAtMs = Number.POSITIVE_INFINITY;
  /** Whether the gateway answers. If not, connects are refused and uplinks stay unacknowledged. */
  gatewayAnswers = true;
  /** Whether uplinks are acknowledged. */
  gatewayAcknowledges = true;
  fix: GpsFix = {
    position: { latitudeDegrees: 52.37, longitudeDegrees: 4.89, uncertaintyMeters: 8 },
    speedMetersPerSecond: 3,
    directionDegrees: 90,
  };
  cellPosition: Position | null = { latitudeDegrees: 52.3, longitudeDegrees: 4.9, uncertaintyMeters: 900 };
  readonly timedEffects: TimedEffect[] = [];
  /** The number of inputs that the lock has processed. */
  steps = 0;

  constructor(options: ModelLockOptions = {}) {
    this.model = options.model ?? POWER_MODEL;
    this.nowMs = options.startMs ?? NOON_MS;
    this.state = newLock(this.model, {
      mac: MODEL_LOCK_MAC,
      firmwareVersion: '2.4.1',
      jitterSeed: 1,
      batteryPercent: 80,
      lockState: 'locked',
      ...options,
    });
    this.handle({ type: 'boot' });
  }

  /** Gives the lock an input now, and answers its network requests. */
  handle(input: StepInput): this {
    const result = step(this.model, this.state, input, this.nowMs);
    this.steps++;
    this.state = result.state;
    this.wakeAtMs = result.wakeAtMs;
    for (const effect of result.effects) this.timedEffects.push({ atMs: this.nowMs, effect });
    for (const effect of result.effects) this.#answer(effect);
    return this;
  }

  #answer(effect: StepEffect): void {
    if (effect.type === 'connect') this.handle({ type: this.gatewayAnswers ? 'connected' : 'connect-failed' });
    else if (effect.type === 'disconnect') this.handle({ type: 'disconnected' });
    else if (effect.type === 'publish' && this.gatewayAnswers && this.gatewayAcknowledges)
      this.acknowledge(effect.uplink);
  }

  /** The gateway acknowledges an uplink. */
  acknowledge(uplink: Uplink): this {
    return this.handle({ type: 'acknowledged', boot: uplink.boot, sequence: uplink.sequence });
  }

  /** Lets time pass, and wakes the lock at the times that it requested. */
  advance(spanMs: number): this {
    const untilMs = this.nowMs + spanMs;
    for (let wakesAtThisMoment = 0; this.wakeAtMs <= untilMs; ) {
      wakesAtThisMoment = this.wakeAtMs <= this.nowMs ? wakesAtThisMoment + 1 : 0;
      if (wakesAtThisMoment > MAX_WAKES_PER_MOMENT) throw new Error('the lock wakes itself for ever');
      this.nowMs = Math.max(this.nowMs, this.wakeAtMs);
      this.tick();
    }
    this.nowMs = untilMs;
    return this;
  }

  /** Wakes the lock, with a GPS fix or the cell's position if it needs one and can have it. */
  tick(): this {
    return this.handle({
      type: 'tick',
      fix: needsFix(this.state) && this.state.skyOpen ? this.fix : null,
      cellPosition: needsCellPosition(this.state) ? this.cellPosition : null,
    });
  }

  /** Sends a command that is valid for two minutes. */
  command(id: number, command: Command, expiresMs = this.nowMs + Minutes(2)): this {
    const downlink: Downlink = { id, expiresMs, command };
    return this.handle({ type: 'command', downlink });
  }

  /** The uplinks that the lock made, from the index `since` of `timedEffects` on. */
  createdUplinks(since = 0): Uplink[] {
    return this.timedEffects.slice(since).flatMap(({ effect }) => (effect.type === 'made' ? [effect.uplink] : []));
  }

  /** The uplinks that the lock sent, each as often as it was sent; `since` as in {@link createdUplinks}. */
  publishedUplinks(since = 0): Uplink[] {
    return this.timedEffects.slice(since).flatMap(({ effect }) => (effect.type === 'publish' ? [effect.uplink] : []));
  }

  /**
   * Lists what was sent and what happened to the connection, with seconds since `fromMs`: `30 gps STATE_PING`, `0
   * connect`. The GPS receiver's switching is left out, since it has its own test.
   */
  describeSince(fromMs: number): string[] {
    return this.timedEffects
      .filter(({ atMs }) => atMs >= fromMs)
      .filter(({ effect }) => !HIDDEN_EFFECTS.has(effect.type))
      .map(({ atMs, effect }) => `${(atMs - fromMs) / 1000} ${describeEffect(effect)}`);
  }
}

/** Effects that `describeSince` leaves out. */
const HIDDEN_EFFECTS: ReadonlySet<string> = new Set(['made', 'finished', 'gps-on', 'gps-off']);

/** A few words that describe an effect. */
export function describeEffect(effect: StepEffect): string {
  if (effect.type !== 'publish') return effect.type;
  const { body } = effect.uplink;
  if (body.kind === 'ack') return `ack ${body.commandId} ${body.result}`;
  if (body.kind === 'close_connection') return 'close';
  return `${body.kind} ${body.reason.replace('REASON_', '')}`;
}

/** Noon, when a model lock boots by default. */
export const NOON_MS = MIDNIGHT_MS + Hours(12);

/** The factory settings of the power model, with these changes. */
export function power(settings: Partial<PowerSettings>): PowerSettings {
  return { mode: 'MID', rideTracking: true, airplane: false, recovery: false, ...settings };
}

/** The reasons of all uplinks that the lock published. */
export function publishedReasons(lock: ModelLock): Set<string> {
  return new Set(lock.publishedUplinks().map(({ body }) => (body.kind === 'ack' ? 'ack' : body.reason)));
}
