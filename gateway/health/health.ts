/**
 * Tracks whether the gateway is up and whether it is ready to take pings, for `/healthz` and `/readyz`.
 *
 * The gateway is up until its store is broken. It is ready while there is no reason why not. Each reason has a code, a
 * sentence for operators, and the time since which it applies. Merchants and strangers only see whether the gateway is
 * ready.
 *
 * Its phase is `starting`, then `running`, then `stopping`; a start that fails goes from `starting` to `stopping`.
 * `starting` and `stopping` are reasons too. All other reasons come and go in any phase, except `store-broken`, which
 * stays.
 */
import type { Clock } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';
import type { ReasonCode } from '../operation-events.js';
import { type NextPhases, nextPhase } from '../phase.js';

export interface Reason {
  readonly code: ReasonCode;
  /** Wall-clock time, ms since the epoch. */
  readonly sinceMs: number;
  /** A sentence for operators. */
  readonly why: string;
}

export interface HealthParts {
  readonly events: GatewayEvents;
  /** The wall clock: people and their machines read these times. */
  readonly clock: Clock;
  /**
   * The time for events' timestamps: the run's clock (wall-clock time, except in a sped-up simulation), once there is
   * one.
   */
  readonly now: () => number;
}

/** Reasons that an operator's start or stop causes, which need no event. */
const REASONS_WITHOUT_EVENT: ReadonlySet<ReasonCode> = new Set(['starting', 'stopping']);

export type HealthPhase = 'starting' | 'running' | 'stopping';

const NEXT_PHASES: NextPhases<HealthPhase> = {
  starting: ['running', 'stopping'],
  running: ['stopping'],
  stopping: [],
};

export class Health {
  readonly #parts: HealthParts;
  readonly #reasons = new Map<ReasonCode, Reason>();
  #phase: HealthPhase = 'starting';

  constructor(parts: HealthParts) {
    this.#parts = parts;
    this.begin('starting', 'the gateway is starting');
  }

  get phase(): HealthPhase {
    return this.#phase;
  }

  /** To be called once all listeners are open. @throws Error if the gateway is not starting */
  started(): void {
    this.#phase = nextPhase('the gateway', NEXT_PHASES, this.#phase, 'running');
    this.end('starting');
  }

  /** To be called when the gateway starts to stop. Further calls do nothing. */
  stopping(): void {
    if (this.#phase === 'stopping') return;
    this.#phase = nextPhase('the gateway', NEXT_PHASES, this.#phase, 'stopping');
    this.begin('stopping', 'the gateway is stopping');
  }

  /** Whether the gateway can continue. With a broken store it only waits for the process to end. */
  get isUp(): boolean {
    return !this.#reasons.has('store-broken');
  }

  /** Whether the gateway takes pings. */
  get isReady(): boolean {
    return this.#reasons.size === 0;
  }

  /** Whether the store can't write now, so that no data may be accepted that must be stored. */
  get isStoreFailing(): boolean {
    return this.#reasons.has('store') || this.#reasons.has('store-broken');
  }

  get isStopping(): boolean {
    return this.#phase === 'stopping';
  }

  /** The reasons why the gateway is not ready, oldest first. */
  get reasons(): readonly Reason[] {
    return [...this.#reasons.values()];
  }

  /** Adds a reason. If it is set already, only its sentence changes. */
  begin(code: ReasonCode, why: string): void {
    const before = this.#reasons.get(code);
    this.#reasons.set(code, { code, sinceMs: before?.sinceMs ?? this.#parts.clock.now(), why });
    if (before !== undefined || REASONS_WITHOUT_EVENT.has(code)) return;
    this.#parts.events.emit('degraded', { atMs: this.#parts.now(), reason: code, why });
  }

  /** Removes a reason, if it is set. */
  end(code: ReasonCode): void {
    const before = this.#reasons.get(code);
    if (before === undefined) return;
    this.#reasons.delete(code);
    if (REASONS_WITHOUT_EVENT.has(code)) return;
    const lastedMs = this.#parts.clock.now() - before.sinceMs;
    this.#parts.events.emit('recovered', { atMs: this.#parts.now(), reason: code, lastedMs });
  }
}
