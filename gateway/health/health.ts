/**
 * Whether the gateway is up, and whether it is ready to take pings: what `/healthz` and `/readyz` answer.
 *
 * It is up as long as it can answer at all and its store is not broken. It is ready when nothing speaks against it:
 * each reason has a code, a sentence for operators, and the time since which it holds. Merchants and strangers are told
 * "ready" or not, and no reason.
 */
import type { Clock } from '../../proto/clock.js';
import type { GatewayEvents, ReasonCode } from '../events.js';

export interface Reason {
  readonly code: ReasonCode;
  /** By the wall's clock, ms since the epoch. */
  readonly sinceMs: number;
  /** A sentence for operators. */
  readonly why: string;
}

export interface HealthParts {
  readonly events: GatewayEvents;
  /** The wall's clock: what is asked about here is read by people and their machines. */
  readonly clock: Clock;
  /** Stamps the events: the run's clock, once there is one. */
  readonly now: () => number;
}

/** The reasons that everybody knows of anyway, and that need no event. */
const EXPECTED: ReadonlySet<ReasonCode> = new Set(['starting', 'stopping']);

export class Health {
  readonly #parts: HealthParts;
  readonly #reasons = new Map<ReasonCode, Reason>();

  /** It begins as `starting`. */
  constructor(parts: HealthParts) {
    this.#parts = parts;
    this.begin('starting', 'the gateway is starting');
  }

  /** Whether it answers and may go on; a broken store only waits for the process to end. */
  get isUp(): boolean {
    return !this.#reasons.has('store-broken');
  }

  /** Whether it takes pings, as far as it knows. */
  get isReady(): boolean {
    return this.#reasons.size === 0;
  }

  /** Whether the store can't write now, so that nothing may be taken that would have to be kept. */
  get isStoreFailing(): boolean {
    return this.#reasons.has('store') || this.#reasons.has('store-broken');
  }

  get isStopping(): boolean {
    return this.#reasons.has('stopping');
  }

  /** What speaks against it, the oldest first. */
  get reasons(): readonly Reason[] {
    return [...this.#reasons.values()];
  }

  /** From now on this speaks against it. Said again, only the sentence changes. */
  begin(code: ReasonCode, why: string): void {
    const before = this.#reasons.get(code);
    this.#reasons.set(code, { code, sinceMs: before?.sinceMs ?? this.#parts.clock.now(), why });
    if (before !== undefined || EXPECTED.has(code)) return;
    this.#parts.events.emit('degraded', { atMs: this.#parts.now(), reason: code, why });
  }

  /** It no longer does. */
  end(code: ReasonCode): void {
    const before = this.#reasons.get(code);
    if (before === undefined) return;
    this.#reasons.delete(code);
    if (EXPECTED.has(code)) return;
    const lastedMs = this.#parts.clock.now() - before.sinceMs;
    this.#parts.events.emit('recovered', { atMs: this.#parts.now(), reason: code, lastedMs });
  }
}
