/**
 * Rebuilds a lock's state from its log after the lock was marked as reflashed. Each mark is a time at which the lock's
 * flash was wiped; the marks divide the lock's uplinks into lives, in each of which boots count from 1 (protocol.md
 * §1). The whole log is judged again with them, in the order of arrival. The members of the judge's belief that follow
 * only from times of receipt do not depend on lives and stay unchanged. Findings are not reported again.
 */
import { afterThisTurn } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { Belief } from '../../proto/power/judge/belief.js';
import { silenceLapses } from '../../proto/power/judge/lapse.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { RuleName } from '../../proto/power/rules.js';
import type { Mac } from '../../proto/wire/mac.js';
import { JudgeFailure, messageOf, type VersionedJudge } from '../ingest/judging.js';
import type { LogEntry } from '../store/contract/log/log-entry.js';
import type { Store } from '../store/contract/store.js';
import { type DeviceState, newDeviceState, withUnlogged } from './device-state.js';
import { judgeEventOf } from './log-entry.js';
import { judgeAgain } from './log-replay.js';

/** How many entries are judged in one turn of the event loop: some 5 ms. */
const ENTRIES_PER_TURN = 250;

export interface LivesReplayParts {
  readonly store: Pick<Store, 'readLogChunks'>;
  readonly judging: VersionedJudge;
}

export class LivesReplay {
  readonly #log: { next(): Promise<LogEntry[]> };
  readonly #judging: VersionedJudge;
  readonly #mac: Mac;
  readonly #marks: readonly number[];
  #state: DeviceState | undefined;

  /** @param marks all reflash marks of the lock, including the new one */
  constructor({ store, judging }: LivesReplayParts, deviceId: number, mac: Mac, marks: readonly number[]) {
    this.#judging = judging;
    this.#log = store.readLogChunks(deviceId, ENTRIES_PER_TURN);
    this.#mac = mac;
    this.#marks = marks;
  }

  /**
   * Judges the entries of the log that this replay has not judged yet. May be called again after more have arrived.
   *
   * @throws LockgateError `judge-failed`
   */
  async catchUp(): Promise<void> {
    for (let entries = await this.#log.next(); entries.length > 0; entries = await this.#log.next()) {
      for (const entry of entries) this.#judgeEntry(entry);
      await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
  }

  /** Judges one entry; an uplink whose stored bytes are damaged is skipped. */
  #judgeEntry(entry: LogEntry): void {
    let event: ReturnType<typeof judgeEventOf>;
    try {
      event = judgeEventOf(entry, this.#marks);
    } catch {
      return;
    }
    this.#state ??= newDeviceState(this.#mac, event.atMs, event.atMs);
    try {
      judgeAgain(this.#judging, this.#state, event);
    } catch (error) {
      if (!(error instanceof JudgeFailure)) throw error;
      const why = messageOf(error.cause);
      throw new LockgateError('judge-failed', `nothing was marked: the judge failed at the lock's log (${why})`);
    }
  }

  /**
   * The state that replaces the lock's present state: the rebuilt one, or the present one if the log has no entries.
   */
  replace(present: DeviceState): DeviceState {
    const state = this.#state;
    // The state of a lock that is not judged stays unchanged.
    if (state === undefined || present.unjudged !== undefined) return present;
    copyReceiptBeliefs(state.belief, present.belief);
    return withUnlogged({ ...state, receivedAtMs: present.receivedAtMs }, present);
  }
}

/**
 * Copies from the present belief the members that follow from times of receipt (connection, commands, time): the log
 * may lack some of the events that led to them.
 */
function copyReceiptBeliefs(belief: Belief, present: Belief): void {
  belief.nowMs = present.nowMs;
  belief.isConnected = present.isConnected;
  belief.firstConnectionMs = present.firstConnectionMs;
  belief.connectedSinceMs = present.connectedSinceMs;
  belief.offlineSinceMs = present.offlineSinceMs;
  belief.activityMs = present.activityMs;
  belief.hasUplinks = present.hasUplinks;
  belief.closeSeen = present.closeSeen;
  belief.listeningSinceMs = present.listeningSinceMs;
  belief.isUnexplainedReported = present.isUnexplainedReported;
  belief.airplaneSwitches = present.airplaneSwitches;
  belief.suspendedSinceMs = present.suspendedSinceMs;
  // A silence that was reported must not be reported again while it lasts.
  belief.isOverdueReported = present.isOverdueReported && isSameSilence('period-overdue', belief, present);
  belief.isWindowReported = present.isWindowReported && isSameSilence('window-offline', belief, present);
  belief.isRecoveryReported = present.isRecoveryReported && isSameSilence('recovery-offline', belief, present);
  // A tick (an event that only says what time it is) is due at once: it finds what is overdue by now.
  belief.dueMs = present.nowMs;
}

/** Whether the lock has been silent, in the sense of the rule, since the same time in both beliefs. */
function isSameSilence(rule: RuleName, belief: Belief, present: Belief): boolean {
  const silentSinceMs = (each: Belief) =>
    silenceLapses(POWER_MODEL, each).find((lapse) => lapse.rule === rule)?.sinceMs;
  return silentSinceMs(belief) === silentSinceMs(present);
}
