/**
 * What is true of one lock at a moment. It follows from the `world` events, which record what truly happened around the
 * lock, and from the lock's uplinks where only they show it: settings and a shackle that a command changed. Whatever
 * neither says is assumed to be as usual: the lock is covered by the network, receives GPS (its *sky* is open), has
 * enough battery and stands still. Does no I/O.
 */
import { Days } from '../../clock.js';
import { stateRow, windowPhase } from '../../power/judge/state.js';
import type { PowerModel, StateRow } from '../../power/model.js';
import type { Command, HighWindow, LockState, PowerSettings, Uplink } from '../../wire/ping.js';
import type { TruthChange } from '../ground-truth.js';
import type { TraceLock } from '../trace.js';

/** See the top of this file. Times are ms since the epoch; minus infinity for what has not happened. */
export class LockTruth {
  isMoving = false;
  lockState: LockState;
  /** Since when the lock has been in it, ms since the epoch. */
  lockStateSinceMs = Number.NEGATIVE_INFINITY;
  /** When a `world` event last moved the shackle, which locks and unlocks. */
  shackleMovedMs = Number.NEGATIVE_INFINITY;
  isCovered = true;
  /** When the coverage last changed. */
  coveredSinceMs = Number.NEGATIVE_INFINITY;
  isSkyOpen = true;
  /** When GPS reception last changed. */
  skySinceMs = Number.NEGATIVE_INFINITY;
  /** The power model's row for the effective state. */
  row: StateRow;
  /** Since when the effective state is in force. */
  rowSinceMs = Number.NEGATIVE_INFINITY;
  power: PowerSettings;
  /** Whether a set-power was sent of which no uplink has shown yet whether the lock has carried it out. */
  hasOpenSetPower = false;
  /** Whether such a set-power switches airplane mode on. */
  #isAirplaneAsked = false;
  /** When the last set-power was sent. */
  #askedMs = Number.NEGATIVE_INFINITY;
  /** When the newest uplink or `world` event with settings was made; and the newest acknowledgement with a window. */
  #powerSinceMs = Number.NEGATIVE_INFINITY;
  #windowSinceMs = Number.NEGATIVE_INFINITY;
  #batteryPercent: number | null = null;
  /** Whether the battery level is from a `world` event, not from an uplink. */
  #isBatteryTrue = false;
  #highWindow: HighWindow;
  readonly #model: PowerModel;

  constructor(model: PowerModel, { power, lockState, highWindow }: TraceLock) {
    this.#model = model;
    this.power = power;
    this.lockState = lockState;
    this.#highWindow = highWindow ?? model.highWindow;
    const unknownBattery = null;
    this.row = stateRow(model, power, unknownBattery);
  }

  /** Applies a change that a `world` event records. */
  change(atMs: number, change: TruthChange): void {
    switch (change.type) {
      case 'motion':
        this.isMoving = change.moving;
        break;
      case 'lock-state':
        this.lockState = change.lockState;
        this.lockStateSinceMs = atMs;
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

  /**
   * A command was sent. Only a set-power matters: until an uplink shows the outcome, the lock may have carried it out.
   */
  asked(atMs: number, command: Command): void {
    if (command.type !== 'set-power') return;
    this.hasOpenSetPower = true;
    this.#askedMs = atMs;
    if (command.airplane) this.#isAirplaneAsked = true;
    this.#settleRow(atMs);
  }

  /**
   * Takes over an uplink's settings, and its battery level if no `world` event has one.
   *
   * @param connectedMs when the uplink's connection was opened
   */
  believe({ timeMs, power, body }: Uplink, connectedMs: number): void {
    // An uplink on a later connection shows whether the set-power was carried out, as does its acknowledgement.
    const isOnLaterConnection = timeMs > this.#askedMs && connectedMs > this.#askedMs;
    if (isOnLaterConnection || (body.kind === 'ack' && body.highWindow !== null)) {
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

  /**
   * Takes over an uplink's lock state. Returns whether it is a new one: then a command moved the shackle, since no
   * `world` event explains the change.
   */
  believeLockState({ timeMs, body }: Uplink): boolean {
    if (body.kind === 'ack' || body.lockState === 'unknown' || body.lockState === this.lockState) return false;
    if (timeMs <= this.lockStateSinceMs) return false;
    this.lockState = body.lockState;
    this.lockStateSinceMs = timeMs;
    return true;
  }

  /** Since when the effective state requires a connection; null if it requires none at `atMs`. */
  keptSinceMs(atMs: number): number | null {
    const { connectionKept } = this.row;
    // An open set-power may have switched to a state that keeps no connection.
    if (connectionKept === 'never' || this.hasOpenSetPower) return null;
    if (connectionKept === 'always') return this.rowSinceMs;
    const { isInside, changesIn, closedFor } = windowPhase(this.#highWindow, atMs);
    if (!isInside) return null;
    // A window that never closes.
    if (closedFor === 0) return this.rowSinceMs;
    // It closes `changesIn` from now and opens again `closedFor` later, a day after it opened last.
    const windowOpenedMs = atMs + changesIn + closedFor - Days(1);
    return Math.max(this.rowSinceMs, windowOpenedMs);
  }

  /** Determines the effective state. */
  #settleRow(atMs: number): void {
    const power = this.#isAirplaneAsked ? { ...this.power, airplane: true } : this.power;
    const row = stateRow(this.#model, power, this.#batteryPercent);
    if (row === this.row) return;
    this.row = row;
    this.rowSinceMs = atMs;
  }
}
