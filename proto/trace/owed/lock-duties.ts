/**
 * What one lock must send by the power model, given the `world` events (what truly happened around it), and which of
 * that it did not send (protocol.md §3, `owed`). A *duty* (duty.ts) is an uplink that must be made by some time. The
 * caller passes `world` events and events of the trace in order of time. The *sky* is open where GPS can be received.
 * Does no I/O, is bounded in memory and never throws on input.
 */
import type { PowerModel, StateRow, TriggerName } from '../../power/model.js';
import type { Command, Uplink } from '../../wire/ping.js';
import type { GroundTruth, TruthChange } from '../ground-truth.js';
import type { TraceLock } from '../trace.js';
import { DropReports } from './drop-reports.js';
import {
  type Duty,
  fulfils,
  isNoChange,
  PATIENCE,
  RESET_WITHIN,
  type ShackleChange,
  SLACK,
  type WorldCause,
} from './duty.js';
import { LockTruth } from './lock-truth.js';
import { Run } from './run.js';
import { SingleFix } from './single-fix.js';
import { Tracking } from './tracking.js';
import { Whereabouts, type WrongPlace } from './whereabouts.js';

/** The maximum number of overdue duties whose uplinks may still arrive: twice the 256 uplinks that a lock buffers. */
const MAX_WAITING = 512;

/** What is missing: an uplink, or the lock's connection since `sinceMs` (ms since the epoch). */
export type Missing =
  | { readonly type: 'uplink'; readonly duty: Duty }
  | { readonly type: 'connection'; readonly cause: WorldCause; readonly sinceMs: number; readonly state: string };

/** See the top of this file. */
export class LockDuties {
  /** What is true of the lock now. Its `row` is the power model's row for the effective state. */
  readonly truth: LockTruth;
  readonly #model: PowerModel;
  readonly #report: (missing: Missing) => void;
  readonly #whereabouts = new Whereabouts();
  readonly #drops = new DropReports();
  /**
   * The duties of each kind: of a theft, of a ride, of the daily ping, and of the GPS pings that follow a single time.
   */
  readonly #theft: Tracking;
  readonly #ride: Tracking;
  readonly #period: Run;
  readonly #stateFix: SingleFix;
  readonly #periodFix: SingleFix;
  /** Duties without their uplink so far, in the order in which they became due. The uplink may still arrive. */
  #waiting: Duty[] = [];
  /** Whether the lock state last changed in a state without state-change pings, so that no ping reported it. */
  #isLockStateHidden = false;
  /** When the lock connected; null while it is not connected. */
  #connectedMs: number | null;
  /** When the lock last connected or disconnected. */
  #linkChangedMs: number;
  #isOfflineReported = false;
  /** The last `world` event; null before the first, when nothing is expected yet. */
  #cause: WorldCause | null = null;
  /** The last `world` event that changed the coverage or the effective state. */
  #reachableCause: WorldCause | null = null;
  /** When the trace begins. It can't have uplinks that were due earlier. */
  readonly #beginMs: number;

  /**
   * @param beginMs when the trace begins, ms since the epoch
   * @param report is called with each missing uplink or connection
   */
  constructor(model: PowerModel, lock: TraceLock, beginMs: number, report: (missing: Missing) => void) {
    const owe = (duty: Duty): void => this.#owe(duty);
    this.#model = model;
    this.#report = report;
    this.#beginMs = beginMs;
    this.truth = new LockTruth(model, lock);
    this.#theft = new Tracking(model, 'theft', owe);
    this.#ride = new Tracking(model, 'ride', owe);
    const every = model.bounds.periodOverdueAfter;
    const plan = { reasons: ['REASON_PERIOD_TRACKING'], every, isReportedEachTime: true } as const;
    this.#period = new Run({ trigger: 'period', kind: 'cellular', ...plan }, owe);
    // The GPS ping of a trigger may have the reason of a trigger that outranks it.
    this.#stateFix = new SingleFix(model, 'state-change', ['REASON_STATE_PING', 'REASON_THEFT'], owe);
    const outranking = ['REASON_STATE_PING', 'REASON_THEFT', 'REASON_UNLOCKED_PING'];
    this.#periodFix = new SingleFix(model, 'period', ['REASON_PERIOD_TRACKING', ...outranking], owe);
    this.#connectedMs = lock.connected ? beginMs : null;
    this.#linkChangedMs = beginMs;
  }

  /** Takes a `world` event, read as changes and a true position. */
  world({ atMs, changes, fix }: GroundTruth, cause: WorldCause): void {
    this.#advance(atMs);
    this.#cause = cause;
    const { row, isCovered } = this.truth;
    for (const change of changes) this.#change(atMs, change, cause);
    if (this.#reachableCause === null || row !== this.truth.row || isCovered !== this.truth.isCovered)
      this.#reachableCause = cause;
    if (fix !== null) this.#whereabouts.fix(atMs, fix.position, cause);
    this.#update(atMs);
  }

  /** The lock connected. It must now report a restart of its modem, if there was one. */
  connected(atMs: number): void {
    this.#advance(atMs);
    this.#connectedMs = atMs;
    this.#linkChangedMs = atMs;
    this.#isOfflineReported = false;
    // LOW_BATTERY and AIRPLANE, the states that take no commands, report no restart either.
    if (!this.truth.row.commands) return;
    for (const duty of this.#waiting) {
      if (duty.trigger === 'reset') duty.byMs = Math.min(duty.byMs, atMs + RESET_WITHIN);
    }
  }

  disconnected(atMs: number): void {
    this.#advance(atMs);
    this.#connectedMs = null;
    this.#linkChangedMs = atMs;
  }

  command(atMs: number, command: Command): void {
    this.#advance(atMs);
    this.truth.asked(atMs, command);
    this.#update(atMs);
  }

  /** An uplink of the lock arrived. */
  uplink(atMs: number, uplink: Uplink): void {
    this.#advance(atMs);
    this.#believe(uplink);
    this.#drops.see(uplink);
    this.#theft.see(uplink);
    this.#ride.see(uplink);
    this.#period.see(uplink);
    this.#stateFix.see(uplink);
    this.#periodFix.see(uplink);
    if (this.#waiting.length > 0)
      this.#waiting = this.#waiting.filter(
        (duty) =>
          !fulfils(uplink, duty) && !isNoChange(uplink, duty) && !contradicts(uplink, duty, this.truth.shackleMovedMs),
      );
    this.#expectPeriodFix(uplink);
    if (uplink.kept > 0) return;
    // Nothing waits in the lock: everything that it made before this uplink has arrived.
    this.#whereabouts.forgetBefore(uplink.timeMs);
    this.#giveUp((duty) => duty.byMs < uplink.timeMs);
  }

  /** Compares the position of a GPS ping. Null if it can be true; undefined if no true position is known. */
  comparePosition({ timeMs, body }: Uplink): WrongPlace | null | undefined {
    return body.kind === 'gps' ? this.#whereabouts.compare(timeMs, body.position) : undefined;
  }

  /**
   * Reports what is missing at `atMs` although the lock could have sent it for long enough.
   *
   * @param listeningSinceMs since when the gateway listens, ms since the epoch; null if it does not
   */
  tick(atMs: number, listeningSinceMs: number | null): void {
    this.#advance(atMs);
    const { truth } = this;
    if (listeningSinceMs === null || !truth.isCovered) return;
    const reachableMs = Math.max(listeningSinceMs, truth.coveredSinceMs);
    // States differ in two ways: some send pings of a theft, some send all other pings.
    const couldSend = ({ theft, period }: StateRow, trigger: TriggerName): boolean =>
      trigger === 'theft' ? theft : period;
    this.#giveUp((duty) => {
      if (!couldSend(truth.row, duty.trigger)) return false;
      const dueMs = Number.isFinite(duty.byMs) ? duty.byMs : duty.fromMs;
      return Math.max(reachableMs, truth.rowSinceMs, dueMs) + PATIENCE < atMs;
    });
    this.#judgeConnection(atMs, reachableMs);
  }

  /** Reports a missing connection, once, if the lock should have had one for long enough. */
  #judgeConnection(atMs: number, reachableMs: number): void {
    const keptMs = this.truth.keptSinceMs(atMs);
    if (keptMs === null) this.#isOfflineReported = false;
    const cause = this.#reachableCause;
    if (keptMs === null || cause === null || this.#connectedMs !== null || this.#isOfflineReported) return;
    const sinceMs = Math.max(keptMs, reachableMs, this.#linkChangedMs);
    if (sinceMs + PATIENCE >= atMs) return;
    this.#isOfflineReported = true;
    this.#report({ type: 'connection', cause, sinceMs, state: this.truth.row.state });
  }

  #advance(nowMs: number): void {
    this.#theft.advance(nowMs);
    this.#ride.advance(nowMs);
    this.#period.advance(nowMs);
    this.#stateFix.advance(nowMs);
    this.#periodFix.advance(nowMs);
  }

  #change(atMs: number, change: TruthChange, cause: WorldCause): void {
    const { truth } = this;
    const { lockState, lockStateSinceMs, isSkyOpen } = truth;
    truth.change(atMs, change);
    if (change.type === 'motion') this.#whereabouts.moved(atMs, change.moving);
    else if (change.type === 'boot') this.#boot(atMs);
    else if (change.type === 'modem-reset') this.#expectReset(atMs, cause);
    else if (change.type === 'lock-state' && truth.lockState !== lockState)
      this.#changeLockState(atMs, lockState === 'unknown', { to: truth.lockState, sinceMs: lockStateSinceMs }, cause);
    if (truth.isSkyOpen === isSkyOpen) return;
    this.#stateFix.sky(atMs, truth.isSkyOpen);
    this.#periodFix.sky(atMs, truth.isSkyOpen);
  }

  /** A boot ends every search, theft and ride. If the lock still moves, the theft or ride starts again. */
  #boot(atMs: number): void {
    this.#theft.reset(atMs);
    this.#ride.reset(atMs);
    this.#stateFix.cancel(atMs);
    this.#periodFix.cancel(atMs);
    this.#waiting = this.#waiting.filter(({ trigger }) => trigger !== 'reset');
  }

  /** After a restart of the modem, a REASON_RESET ping is due once the lock connects. */
  #expectReset(atMs: number, cause: WorldCause): void {
    const reasons = ['REASON_RESET'];
    // `maturesMs`: how long the cause must last for the ping to be due; a restart is over at once.
    const times = { fromMs: atMs, byMs: Number.POSITIVE_INFINITY, maturesMs: atMs };
    const group = { isReported: false };
    this.#owe({ trigger: 'reset', kind: 'cellular', reasons, lockState: null, ...times, cause, group });
  }

  /** The shackle moved. @param wasUnknown whether the lock state before is not known, so that this may be no change */
  #changeLockState(atMs: number, wasUnknown: boolean, change: ShackleChange, cause: WorldCause): void {
    const { row, lockState, isSkyOpen } = this.truth;
    // If the change before was not reported, this one may restore the lock state that was last reported.
    const isOwed = row.stateChange && !this.#isLockStateHidden && !wasUnknown;
    this.#isLockStateHidden = !row.stateChange;
    this.#stateFix.cancel(atMs);
    if (!isOwed) return;
    const times = { fromMs: atMs, byMs: atMs + SLACK, maturesMs: atMs };
    const ping = { trigger: 'state-change', kind: 'cellular', reasons: ['REASON_STATE_PING'] } as const;
    this.#owe({ ...ping, lockState, ...times, cause, change, group: { isReported: false } });
    this.#stateFix.begin(atMs, isSkyOpen, cause, change);
  }

  /** Starts and ends the duties of all triggers as the truth requires from `atMs` on. */
  #update(atMs: number): void {
    const { row, isMoving, lockState, isSkyOpen, power } = this.truth;
    const cause = this.#cause;
    if (cause === null) return;
    const now = { atMs, isMoving, isSkyOpen, cause };
    this.#theft.update({ ...now, isPossible: row.theft && lockState === 'locked', hasGpsPings: true });
    const hasGpsPings = row.rideTracking && power.rideTracking;
    this.#ride.update({ ...now, isPossible: row.cellOnInRide && lockState === 'unlocked', hasGpsPings });
    if (!row.stateChange) this.#stateFix.cancel(atMs);
    if (row.period === this.#period.isOpen) return;
    const byMs = atMs + this.#model.bounds.periodOverdueAfter;
    if (row.period) this.#period.begin({ fromMs: atMs, byMs, maturesMs: byMs, cause, isOwedInPause: false });
    else {
      this.#period.end(atMs);
      this.#periodFix.cancel(atMs);
    }
  }

  /** Takes over what only an uplink shows: settings, and a shackle that a command moved. */
  #believe(uplink: Uplink): void {
    const { truth } = this;
    const { row, power } = truth;
    truth.believe(uplink, this.#connectedMs ?? Number.NEGATIVE_INFINITY);
    const hasMoved = truth.believeLockState(uplink);
    if (!hasMoved && row === truth.row && power === truth.power) return;
    if (hasMoved) this.#isLockStateHidden = false;
    const { timeMs } = uplink;
    this.#update(timeMs);
    const { lockState, power: newPower, row: newRow } = truth;
    // Duties that start after the uplink was made, and that its settings or lock state exclude, never were due.
    this.#waiting = this.#waiting.filter(({ trigger, kind, fromMs, byMs, lockState: dueLockState }) => {
      if (trigger === 'theft') return fromMs < timeMs || (lockState === 'locked' && newRow.theft);
      if (trigger === 'state-change') return dueLockState === null || fromMs < timeMs || dueLockState !== lockState;
      if (trigger !== 'ride') return true;
      if (kind === 'gps' && !newPower.rideTracking && byMs > timeMs) return false;
      return fromMs < timeMs || (lockState === 'unlocked' && newRow.cellOnInRide);
    });
  }

  /** A cellular daily ping must be followed by a GPS ping. */
  #expectPeriodFix({ body, timeMs }: Uplink): void {
    if (body.kind !== 'cellular' || body.reason !== 'REASON_PERIOD_TRACKING') return;
    const { row, isSkyOpen, skySinceMs, rowSinceMs } = this.truth;
    // For a late ping it is no longer known whether GPS could be received when it was made.
    const cause = this.#cause;
    if (cause === null || !row.period || timeMs < Math.max(skySinceMs, rowSinceMs, cause.atMs)) return;
    this.#periodFix.begin(timeMs, isSkyOpen, cause);
  }

  /**
   * Notes a duty whose uplink has not come in time, unless its group (one theft or ride) has already been reported.
   */
  #owe(duty: Duty): void {
    if (duty.fromMs < this.#beginMs || duty.group.isReported || this.#waiting.length >= MAX_WAITING) return;
    this.#waiting.push(duty);
  }

  /** Reports the duties whose uplink can no longer arrive, unless the lock reports that it dropped the uplink. */
  #giveUp(isHopeless: (duty: Duty) => boolean): void {
    if (this.#waiting.length === 0) return;
    const stillWaiting: Duty[] = [];
    for (const duty of this.#waiting) {
      if (!isHopeless(duty)) stillWaiting.push(duty);
      else if (!duty.group.isReported && !this.#drops.explain(duty.fromMs)) {
        duty.group.isReported = true;
        this.#report({ type: 'uplink', duty });
      }
    }
    this.#waiting = stillWaiting.filter(({ group }) => !group.isReported);
  }
}

/**
 * Whether an uplink shows that a command had moved the shackle, so that there was no such theft or ride.
 *
 * @param shackleMovedMs when a `world` event last moved the shackle, ms since the epoch
 */
function contradicts({ timeMs, body }: Uplink, { trigger, fromMs, maturesMs }: Duty, shackleMovedMs: number): boolean {
  // `+ 1`: the uplink must have been made after the movement.
  if (body.kind === 'ack' || timeMs > maturesMs || timeMs < Math.min(fromMs, shackleMovedMs + 1)) return false;
  return (trigger === 'theft' && body.lockState === 'unlocked') || (trigger === 'ride' && body.lockState === 'locked');
}
