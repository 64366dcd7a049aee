/**
 * What is known of a lock, made again from its log after it was marked as reflashed: all of the log is judged once
 * more, in the order of arrival, with the lives that the marks make (protocol.md §1). What rests on receipt alone does
 * not depend on lives, and stays as it was. What the judge finds on the way is in the store already, and is not
 * reported again.
 */
import { afterThisTurn } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { Belief } from '../../proto/power/judge/belief.js';
import { silences } from '../../proto/power/judge/lapse.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { RuleName } from '../../proto/power/rules.js';
import type { Mac } from '../../proto/wire/mac.js';
import { JudgeFailure, type Judging, messageOf } from '../ingest/judging.js';
import type { LogEntry, Store } from '../store/contract/store.js';
import { type DeviceState, newDeviceState } from './device-state.js';
import { judgeEventOf } from './log-entry.js';
import { judgeAgain } from './log-replay.js';

/** Entries of the log that are judged between two turns of the event loop: some 5 ms. */
const PIECE = 250;

export interface RelivedParts {
  readonly store: Pick<Store, 'readLogPieces'>;
  readonly judging: Judging;
}

export class RelivedState {
  readonly #log: { next(): Promise<LogEntry[]> };
  readonly #judging: Judging;
  readonly #mac: Mac;
  readonly #marks: readonly number[];
  #state: DeviceState | undefined;

  /** @param marks all of the lock's, the new one among them */
  constructor({ store, judging }: RelivedParts, deviceId: number, mac: Mac, marks: readonly number[]) {
    this.#judging = judging;
    this.#log = store.readLogPieces(deviceId, PIECE);
    this.#mac = mac;
    this.#marks = marks;
  }

  /**
   * Judges what of the log has not been judged yet. May be called again, for what has come since.
   *
   * @throws LockgateError `judge-failed`
   */
  async catchUp(): Promise<void> {
    for (let piece = await this.#log.next(); piece.length > 0; piece = await this.#log.next()) {
      for (const entry of piece) this.#take(entry);
      await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
  }

  /** An uplink whose stored bytes are damaged is left out. */
  #take(entry: LogEntry): void {
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
      throw new LockgateError('judge-failed', `nothing was marked: the judge failed at what it has sent (${why})`);
    }
  }

  /** The state instead of `known`, which is the lock's until now. Where the log has nothing, that is what it was. */
  instead(known: DeviceState): DeviceState {
    const state = this.#state;
    // One that is not judged stays as it is until it is judged again.
    if (state === undefined || known.unjudged !== undefined) return known;
    keepReceipt(state.belief, known.belief);
    const { usedTo } = known;
    return { ...state, receivedAtMs: known.receivedAtMs, ...(usedTo !== undefined && { usedTo }) };
  }
}

/** What is believed of the connection, of commands and of time follows receipt, of which the log may lack a part. */
function keepReceipt(belief: Belief, known: Belief): void {
  belief.nowMs = known.nowMs;
  belief.isConnected = known.isConnected;
  belief.firstConnectionMs = known.firstConnectionMs;
  belief.connectedSinceMs = known.connectedSinceMs;
  belief.offlineSinceMs = known.offlineSinceMs;
  belief.activityMs = known.activityMs;
  belief.hasUplinks = known.hasUplinks;
  belief.closeSeen = known.closeSeen;
  belief.listeningSinceMs = known.listeningSinceMs;
  belief.isUnexplainedReported = known.isUnexplainedReported;
  belief.airplaneSwitches = known.airplaneSwitches;
  belief.suspendedSinceMs = known.suspendedSinceMs;
  // A silence that was reported, and is still the same one, is not reported again.
  belief.isOverdueReported = known.isOverdueReported && isSameSilence('period-overdue', belief, known);
  belief.isWindowReported = known.isWindowReported && isSameSilence('window-offline', belief, known);
  belief.isRecoveryReported = known.isRecoveryReported && isSameSilence('recovery-offline', belief, known);
  // Whatever has lapsed by now is found with the next tick.
  belief.dueMs = known.nowMs;
}

function isSameSilence(rule: RuleName, belief: Belief, known: Belief): boolean {
  const since = (of: Belief) => silences(POWER_MODEL, of).find((lapse) => lapse.rule === rule)?.sinceMs;
  return since(belief) === since(known);
}
