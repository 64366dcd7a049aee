/**
 * What is true of one lock at a moment: the events of the world, and what only the lock's own uplinks say (settings and
 * a shackle that a command changed). What the truth does not say is as usual: covered, under an open sky, with enough
 * battery, standing still.
 */
import { Days } from '../../clock.js';
import { stateRow, windowPhase } from '../../power/judge/state.js';
import type { PowerModel, StateRow } from '../../power/model.js';
import type { Command, HighWindow, LockState, PowerSettings, Uplink } from '../../wire/ping.js';
import type { TruthChange } from '../ground-truth.js';
import type { TraceLock } from '../trace.js';

export class LockTruth {
  isMoving = false;
  lockState: LockState;
  /** When an event of the world last moved the shackle, ms since the epoch. */
  shackleMovedMs = Number.NEGATIVE_INFINITY;
  isCovered = true;
  /** Since when it is covered, ms since the epoch. */
  coveredSinceMs = Number.NEGATIVE_INFINITY;
  isSkyOpen = true;
  skySinceMs = Number.NEGATIVE_INFINITY;
  row: StateRow;
  /** Since when the effective state is in force. */
  rowSinceMs = Number.NEGATIVE_INFINITY;
  power: PowerSettings;
  /** A set-power that may have been carried out, and that no uplink has shown yet. */
  hasOpenSetPower = false;
  #isAirplaneAsked = false;
  #askedMs = Number.NEGATIVE_INFINITY;
  #lockStateSinceMs = Number.NEGATIVE_INFINITY;
  #powerSinceMs = Number.NEGATIVE_INFINITY;
  #windowSinceMs = Number.NEGATIVE_INFINITY;
  #batteryPercent: number | null = null;
  #isBatteryTrue = false;
  #highWindow: HighWindow;
  readonly #model: PowerModel;

  constructor(model: PowerModel, { power, lockState, highWindow }: TraceLock) {
    this.#model = model;
    this.power = power;
    this.lockState = lockState;
    this.#highWindow = highWindow ?? model.highWindow;
    this.row = stateRow(model, power, null);
  }

  /** Applies a change of the world. */
  change(atMs: number, change: TruthChange): void {
    switch (change.type) {
      case 'motion':
        this.isMoving = change.moving;
        break;
      case 'lock-state':
        this.lockState = change.lockState;
        this.#lockStateSinceMs = atMs;
        this.shackleMovedMs = atMs;
        break;
      case 'coverage':
        if (this.isCovered !== change.covered) this.coveredSinceMs = atMs;
        this.isCovered = change.covered;
        break;
      case 'sky':
        if (this.isSkyOpen !== change.open) this.skySinceMs = atMs;
        this.isSkyOpen = change.open;
        break;
      case 'battery':
        this.#batteryPercent = change.percent;
        this.#isBatteryTrue = true;
        break;
      case 'settings': {
        const { mode = this.power.mode, rideTracking = this.power.rideTracking } = change.change;
        const { airplane = this.power.airplane, recovery = this.power.recovery } = change.change;
        this.power = { mode, rideTracking, airplane, recovery };
        this.#powerSinceMs = atMs;
        if (change.change.airplane !== undefined) this.#isAirplaneAsked = false;
        break;
      }
      default:
        break;
    }
    this.#settleRow(atMs);
  }

  /** A command was sent. Until the lock shows the outcome, it may have carried out a set-power. */
  asked(atMs: number, command: Command): void {
    if (command.type !== 'set-power') return;
    this.hasOpenSetPower = true;
    this.#askedMs = atMs;
    if (command.airplane) this.#isAirplaneAsked = true;
    this.#settleRow(atMs);
  }

  /**
   * Believes what an uplink says of settings, and of a battery that the world does not know.
   *
   * @param connectedMs when its connection began
   */
  believe({ timeMs, power, body }: Uplink, connectedMs: number): void {
    const isLater = timeMs > this.#askedMs && connectedMs > this.#askedMs;
    if (isLater || (body.kind === 'ack' && body.highWindow !== null)) {
      this.hasOpenSetPower = false;
      this.#isAirplaneAsked = false;
    }
    if (timeMs >= this.#powerSinceMs) {
      this.power = power;
      this.#powerSinceMs = timeMs;
    }
    if (body.kind === 'ack' && body.highWindow !== null && timeMs >= this.#windowSinceMs) {
      this.#highWindow = body.highWindow;
      this.#windowSinceMs = timeMs;
    }
    if (!this.#isBatteryTrue && body.kind !== 'ack') this.#batteryPercent = body.batteryPercent;
    this.#settleRow(timeMs);
  }

  /** Whether an uplink shows a lock state that no event of the world explains: a command moved the shackle. */
  believeLockState({ timeMs, body }: Uplink): boolean {
    if (body.kind === 'ack' || body.lockState === 'unknown' || body.lockState === this.lockState) return false;
    if (timeMs <= this.#lockStateSinceMs) return false;
    this.lockState = body.lockState;
    this.#lockStateSinceMs = timeMs;
    return true;
  }

  /** Since when the connection must be kept, by the state alone; null if it need not be at `atMs`. */
  keptSinceMs(atMs: number): number | null {
    const { connectionKept } = this.row;
    if (connectionKept === 'never' || this.hasOpenSetPower) return null;
    if (connectionKept === 'always') return this.rowSinceMs;
    const { isInside, changesIn, closedFor } = windowPhase(this.#highWindow, atMs);
    if (!isInside) return null;
    if (closedFor === 0) return this.rowSinceMs;
    return Math.max(this.rowSinceMs, atMs + changesIn + closedFor - DAY_MS);
  }

  #settleRow(atMs: number): void {
    const power = this.#isAirplaneAsked ? { ...this.power, airplane: true } : this.power;
    const row = stateRow(this.#model, power, this.#batteryPercent);
    if (row === this.row) return;
    this.row = row;
    this.rowSinceMs = atMs;
  }
}

const DAY_MS = Days(1);
