/**
 * Rebuilds a lock's state from its log after it was marked as reflashed: the whole log is judged again in the order of
 * arrival, with the lives that the marks define (protocol.md §1). What rests only on times of receipt does not depend
 * on lives, and stays as it was. What the judge finds on the way is in the store already and not reported again.
 */
import { afterThisTurn } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { Belief } from '../../proto/power/judge/belief.js';
import { silenceLapses } from '../../proto/power/judge/lapse.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { RuleName } from '../../proto/power/rules.js';
import type { Mac } from '../../proto/wire/mac.js';
import { JudgeFailure, type Judging, messageOf } from '../ingest/judging.js';
import type { LogEntry, Store } from '../store/contract/store.js';
import { type DeviceState, newDeviceState } from './device-state.js';
import { judgeEventOf } from './log-entry.js';
import { judgeAgain } from './log-replay.js';

/** How many entries are judged in one turn of the event loop: some 5 ms. */
const PIECE = 250;

export interface LivesReplayParts {
  readonly store: Pick<Store, 'readLogChunks'>;
  readonly judging: Judging;
}

export class LivesReplay {
  readonly #log: { next(): Promise<LogEntry[]> };
  readonly #judging: Judging;
  readonly #mac: Mac;
  readonly #marks: readonly number[];
  #state: DeviceState | undefined;

  /** @param marks all of the lock's, the new one among them */
  constructor({ store, judging }: LivesReplayParts, deviceId: number, mac: Mac, marks: readonly number[]) {
    this.#judging = judging;
    this.#log = store.readLogChunks(deviceId, PIECE);
    this.#mac = mac;
    this.#marks = marks;
  }

  /**
   * Judges the part of the log that has not been judged yet. May be called again for what has arrived since.
   *
   * @throws LockgateError `judge-failed`
   */
  async catchUp(): Promise<void> {
    for (let piece = await this.#log.next(); piece.length > 0; piece = await this.#log.next()) {
      for (const entry of piece) this.#judgeEntry(entry);
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
      throw new LockgateError('judge-failed', `nothing was marked: the judge failed at what it has sent (${why})`);
    }
  }

  /** The rebuilt state, to replace `known`, the lock's state until now. Where the log has nothing, `known` itself. */
  replace(known: DeviceState): DeviceState {
    const state = this.#state;
    // A lock that is not judged keeps its state until it is judged again.
    if (state === undefined || known.unjudged !== undefined) return known;
    keepReceipt(state.belief, known.belief);
    const { usedTo } = known;
    return { ...state, receivedAtMs: known.receivedAtMs, ...(usedTo !== undefined && { usedTo }) };
  }
}

/** Beliefs about the connection, commands and time follow receipt, and the log may lack part of that. */
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
  // A silence that was reported is not reported again while it is the same one.
  belief.isOverdueReported = known.isOverdueReported && isSameSilence('period-overdue', belief, known);
  belief.isWindowReported = known.isWindowReported && isSameSilence('window-offline', belief, known);
  belief.isRecoveryReported = known.isRecoveryReported && isSameSilence('recovery-offline', belief, known);
  // What has lapsed by now is found with the next tick.
  belief.dueMs = known.nowMs;
}

function isSameSilence(rule: RuleName, belief: Belief, known: Belief): boolean {
  const since = (of: Belief) => silenceLapses(POWER_MODEL, of).find((lapse) => lapse.rule === rule)?.sinceMs;
  return since(belief) === since(known);
}
