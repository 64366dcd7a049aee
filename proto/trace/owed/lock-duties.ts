/**
 * What the model owes for the events of one lock's world, and which of it the lock did not send (protocol.md §3). The
 * caller passes events of the world and of the trace in order of time. Bounded in memory; never throws on input.
 */
import type { PowerModel, StateRow, TriggerName } from '../../power/model.js';
import type { Command, Uplink } from '../../wire/ping.js';
import type { GroundTruth, TruthChange } from '../ground-truth.js';
import type { TraceLock } from '../trace.js';
import { DropReports } from './drop-reports.js';
import { type Duty, fulfils, PATIENCE, RESET_WITHIN, SLACK, type WorldCause } from './duty.js';
import { LockTruth } from './lock-truth.js';
import { Run } from './run.js';
import { SingleFix } from './single-fix.js';
import { Tracking } from './tracking.js';
import { Whereabouts, type WrongPlace } from './whereabouts.js';

/** How many missing uplinks of a lock are waited for. A lock can buffer 256. */
const MAX_WAITING = 512;

/** What a lock owed and did not send: an uplink, or its connection since a moment (ms since the epoch). */
export type Missing =
  | { readonly type: 'uplink'; readonly duty: Duty }
  | { readonly type: 'connection'; readonly cause: WorldCause; readonly sinceMs: number; readonly state: string };

export class LockDuties {
  readonly truth: LockTruth;
  readonly #model: PowerModel;
  readonly #report: (missing: Missing) => void;
  readonly #whereabouts = new Whereabouts();
  readonly #drops = new DropReports();
  readonly #theft: Tracking;
  readonly #ride: Tracking;
  readonly #period: Run;
  readonly #stateFix: SingleFix;
  readonly #periodFix: SingleFix;
  /** Duties that are due, in the order in which they became due. Their uplinks may still arrive. */
  #waiting: Duty[] = [];
  #isLockStateHidden = false;
  #connectedMs: number | null;
  /** When the last connection began or ended; for the time without one. */
  #linkChangedMs: number;
  #isOfflineReported = false;
  /** The last event of the world; null before the first, while nothing is owed. */
  #cause: WorldCause | null = null;
  /** The last event that let the lock connect, or changed its effective state. */
  #reachableCause: WorldCause | null = null;
  /** What was due earlier is not in the trace. */
  readonly #beginMs: number;

  /** @param beginMs when the trace begins, ms since the epoch */
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
    this.#stateFix = new SingleFix(model, 'state-change', ['REASON_STATE_PING', 'REASON_THEFT'], owe);
    const outranking = ['REASON_STATE_PING', 'REASON_THEFT', 'REASON_UNLOCKED_PING'];
    this.#periodFix = new SingleFix(model, 'period', ['REASON_PERIOD_TRACKING', ...outranking], owe);
    this.#connectedMs = lock.connected ? beginMs : null;
    this.#linkChangedMs = beginMs;
  }

  /** An event of the world. */
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

  connected(atMs: number): void {
    this.#advance(atMs);
    this.#connectedMs = atMs;
    this.#linkChangedMs = atMs;
    this.#isOfflineReported = false;
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
        (duty) => !fulfils(uplink, duty) && !contradicts(uplink, duty, this.truth.shackleMovedMs),
      );
    this.#expectPeriodFix(uplink);
    if (uplink.kept > 0) return;
    // Nothing waits in the lock: everything that it made before this uplink has arrived.
    this.#whereabouts.forgetBefore(uplink.timeMs);
    this.#giveUp((duty) => duty.byMs < uplink.timeMs);
  }

  /** Compares the position of a GPS ping. Null if it can be true; undefined if the truth is not known. */
  comparePosition({ timeMs, body }: Uplink): WrongPlace | null | undefined {
    return body.kind === 'gps' ? this.#whereabouts.compare(timeMs, body.position) : undefined;
  }

  /**
   * Time passed, and no event of the lock came.
   *
   * @param listeningSinceMs since when the gateway listens, ms since the epoch; null if it does not
   */
  tick(atMs: number, listeningSinceMs: number | null): void {
    this.#advance(atMs);
    const { truth } = this;
    if (listeningSinceMs === null || !truth.isCovered) return;
    const reachableMs = Math.max(listeningSinceMs, truth.coveredSinceMs);
    const couldSend = ({ theft, period }: StateRow, trigger: TriggerName): boolean =>
      trigger === 'theft' ? theft : period;
    this.#giveUp((duty) => {
      if (!couldSend(truth.row, duty.trigger)) return false;
      const dueMs = Number.isFinite(duty.byMs) ? duty.byMs : duty.fromMs;
      return Math.max(reachableMs, truth.rowSinceMs, dueMs) + PATIENCE < atMs;
    });
    this.#judgeConnection(atMs, reachableMs);
  }

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
    const { lockState, isSkyOpen } = truth;
    truth.change(atMs, change);
    if (change.type === 'motion') this.#whereabouts.moved(atMs, change.moving);
    else if (change.type === 'boot') this.#boot(atMs);
    else if (change.type === 'modem-reset') this.#expectReset(atMs, cause);
    else if (change.type === 'lock-state' && truth.lockState !== lockState)
      this.#changeLockState(atMs, lockState === 'unknown', cause);
    if (truth.isSkyOpen === isSkyOpen) return;
    this.#stateFix.sky(atMs, truth.isSkyOpen);
    this.#periodFix.sky(atMs, truth.isSkyOpen);
  }

  /** A boot ends every search and every theft or ride; one that goes on begins again. */
  #boot(atMs: number): void {
    this.#theft.reset(atMs);
    this.#ride.reset(atMs);
    this.#stateFix.cancel(atMs);
    this.#periodFix.cancel(atMs);
    this.#waiting = this.#waiting.filter(({ trigger }) => trigger !== 'reset');
  }

  #expectReset(atMs: number, cause: WorldCause): void {
    const reasons = ['REASON_RESET'];
    const times = { fromMs: atMs, byMs: Number.POSITIVE_INFINITY, maturesMs: atMs };
    const group = { isReported: false };
    this.#owe({ trigger: 'reset', kind: 'cellular', reasons, lockState: null, ...times, cause, group });
  }

  /**
   * @param wasUnknown whether the lock state before is not known, so that this may be no change
   */
  #changeLockState(atMs: number, wasUnknown: boolean, cause: WorldCause): void {
    const { row, lockState, isSkyOpen } = this.truth;
    // A change that a silent state hides may make the next change one back to what was last reported.
    const isOwed = row.stateChange && !this.#isLockStateHidden && !wasUnknown;
    this.#isLockStateHidden = !row.stateChange;
    this.#stateFix.cancel(atMs);
    if (!isOwed) return;
    const times = { fromMs: atMs, byMs: atMs + SLACK, maturesMs: atMs };
    const what = { trigger: 'state-change', kind: 'cellular', reasons: ['REASON_STATE_PING'] } as const;
    this.#owe({ ...what, lockState, ...times, cause, group: { isReported: false } });
    this.#stateFix.begin(atMs, isSkyOpen, cause);
  }

  /** Lets the conditions of all triggers follow the truth. */
  #update(atMs: number): void {
    const { row, isMoving, lockState, isSkyOpen, power } = this.truth;
    const cause = this.#cause;
    if (cause === null) return;
    const now = { atMs, isMoving, isSkyOpen, cause };
    this.#theft.update({ ...now, isPossible: row.theft && lockState === 'locked', hasGps: true });
    const hasGps = row.rideTracking && power.rideTracking;
    this.#ride.update({ ...now, isPossible: row.cellOnInRide && lockState === 'unlocked', hasGps });
    if (!row.stateChange) this.#stateFix.cancel(atMs);
    if (row.period === this.#period.isOpen) return;
    const byMs = atMs + this.#model.bounds.periodOverdueAfter;
    if (row.period) this.#period.begin({ fromMs: atMs, byMs, maturesMs: byMs, cause, isOwedInPause: false });
    else {
      this.#period.end(atMs);
      this.#periodFix.cancel(atMs);
    }
  }

  /** What only an uplink says: settings, and a shackle that a command moved. */
  #believe(uplink: Uplink): void {
    const { truth } = this;
    const { row, power } = truth;
    truth.believe(uplink, this.#connectedMs ?? Number.NEGATIVE_INFINITY);
    const hasMoved = truth.believeLockState(uplink);
    if (!hasMoved && row === truth.row && power === truth.power) return;
    if (hasMoved) this.#isLockStateHidden = false;
    const { timeMs } = uplink;
    this.#update(timeMs);
    const { lockState, power: now, row: inForce } = truth;
    // What the truth of now excludes was not owed from then on.
    this.#waiting = this.#waiting.filter(({ trigger, kind, fromMs, byMs, lockState: owed }) => {
      if (trigger === 'theft') return fromMs < timeMs || (lockState === 'locked' && inForce.theft);
      if (trigger === 'state-change') return owed === null || fromMs < timeMs || owed !== lockState;
      if (trigger !== 'ride') return true;
      if (kind === 'gps' && !now.rideTracking && byMs > timeMs) return false;
      return fromMs < timeMs || (lockState === 'unlocked' && inForce.cellOnInRide);
    });
  }

  #expectPeriodFix({ body, timeMs }: Uplink): void {
    if (body.kind !== 'cellular' || body.reason !== 'REASON_PERIOD_TRACKING') return;
    const { row, isSkyOpen, skySinceMs, rowSinceMs } = this.truth;
    // A late ping says nothing here: the sky at its time is not known any more.
    const cause = this.#cause;
    if (cause === null || !row.period || timeMs < Math.max(skySinceMs, rowSinceMs, cause.atMs)) return;
    this.#periodFix.begin(timeMs, isSkyOpen, cause);
  }

  #owe(duty: Duty): void {
    if (duty.fromMs < this.#beginMs || duty.group.isReported || this.#waiting.length >= MAX_WAITING) return;
    this.#waiting.push(duty);
  }

  #giveUp(isHopeless: (duty: Duty) => boolean): void {
    if (this.#waiting.length === 0) return;
    const rest: Duty[] = [];
    for (const duty of this.#waiting) {
      if (!isHopeless(duty)) rest.push(duty);
      else if (!duty.group.isReported && !this.#drops.explain(duty.fromMs)) {
        duty.group.isReported = true;
        this.#report({ type: 'uplink', duty });
      }
    }
    this.#waiting = rest.filter(({ group }) => !group.isReported);
  }
}

/**
 * Whether an uplink shows that a command had moved the shackle, so that there was no such theft or ride.
 *
 * @param shackleMovedMs when an event of the world last moved it, ms since the epoch
 */
function contradicts({ timeMs, body }: Uplink, { trigger, fromMs, maturesMs }: Duty, shackleMovedMs: number): boolean {
  if (body.kind === 'ack' || timeMs > maturesMs || timeMs < Math.min(fromMs, shackleMovedMs + 1)) return false;
  return (trigger === 'theft' && body.lockState === 'unlocked') || (trigger === 'ride' && body.lockState === 'locked');
}
