/**
 * Loads lock states from the store and updates them from the store's log of uplinks. If a stored state is older than
 * the log (dirty-states.ts), the uplinks after it are judged again. If the stored state is damaged, or another
 * version of lockgate failed to judge the lock, the lock's whole log is judged instead, which has those uplinks too. If
 * the judge throws, the lock gets its previous state and a mark that it is not judged (ingest/judging.ts).
 *
 * Of the uplinks after a stored state, only the lock's own are judged again. Where the state is in memory, a phone's
 * uplink advances the belief's time, so that a silence may become a finding, and the state is stored with the uplink's
 * commit (`isReplayable` in ingest/draft-judge.ts). So a phone's uplink after the stored state was never judged with
 * it: it came at another gateway, or while no gateway had the state. If it advanced the time here, a silence would
 * count as reported, although its finding was dropped like all findings of a replay.
 */

import { JudgeFailure, type JudgingStop, messageOf, type VersionedJudge } from '../ingest/judging.js';
import type { StateRebuilt } from '../lock-events.js';
import type { StoredState } from '../store/contract/devices/device.js';
import { StoreFailure } from '../store/contract/errors.js';
import type { Store } from '../store/contract/store.js';
import { type DeviceState, newDeviceState, readDeviceState, withUnlogged } from './device-state.js';
import { MAX_DIRTY_UPLINKS } from './dirty-states.js';
import { judgeStored, type ReplayedLock, replayLog } from './log-replay.js';

/** How many uplinks are read at once. */
const UPLINKS_PER_READ = 500;

/** Why the state of a damaged row is rebuilt. */
const DAMAGED_STATE = 'the stored state does not match its checksum';

/** A lock's state, loaded from the store and updated from the log. */
export interface LoadedState extends ReplayedLock {
  state: DeviceState;
  /**
   * Whether the uplinks after the stored state must be judged with this state. False if it was made from the whole log,
   * which has them, and if the lock was not judged when the state was stored.
   */
  readonly isBehindLog: boolean;
  /**
   * How many of the newest uplinks of all locks have come since the first one that the stored state lacks; undefined if
   * it lacks none. 0 if this state was made from the whole log.
   */
  lackedUplinks: number | undefined;
  /** Why the state was rebuilt, and from what; undefined if it was not rebuilt. */
  rebuilt: { readonly why: string; readonly from: StateRebuilt['from'] } | undefined;
}

/** The states of locks, and their reflash marks, both by device id. */
export interface LoadedStates {
  readonly states: ReadonlyMap<number, LoadedState>;
  readonly marks: ReadonlyMap<number, readonly number[]>;
}

interface Loading {
  readonly store: Store;
  readonly judging: VersionedJudge;
  /** The run's clock (wall-clock time, except in a sped-up simulation), ms since the epoch. */
  readonly nowMs: number;
}

/**
 * The states and the marks of all locks that have some; only of `deviceIds` if given.
 *
 * @throws StoreFailure if the store can't be read
 */
export async function loadStates(loading: Loading, deviceIds?: readonly number[]): Promise<LoadedStates> {
  const { store, judging } = loading;
  const states = new Map<number, LoadedState>();
  const [marks, rows] = await Promise.all([store.marks.readAll(deviceIds), store.readDeviceStates(deviceIds)]);
  for (const row of rows) states.set(row.deviceId, await loadState(loading, row));
  const replay: Replay = { store, judging, marks };
  const failed = await replayAfterStates(replay, states, deviceIds);
  if (failed.size === 0) return { states, marks };
  // States that the judge left half changed are dropped: the stored ones are read again and judged up to the failure.
  const failedIds = [...failed.keys()];
  const reloaded = new Map<number, LoadedState>();
  for (const row of await store.readDeviceStates(failedIds)) reloaded.set(row.deviceId, await loadState(loading, row));
  await replayAfterStates(replay, reloaded, failedIds, failed);
  for (const [deviceId, lock] of reloaded) {
    const { why = '' } = failed.get(deviceId) ?? {};
    states.set(deviceId, { ...lock, state: { ...lock.state, unjudged: judgingStop(loading, why) } });
  }
  return { states, marks };
}

async function loadState(loading: Loading, row: StoredState): Promise<LoadedState> {
  const { deviceId, mac } = row;
  const parsed = readDeviceState(row.state);
  const fault = row.isDamaged === true ? DAMAGED_STATE : parsed.ok ? undefined : parsed.error.message;
  if (fault !== undefined || !parsed.ok) {
    const { state: fromLog, from } = await rebuildState(loading, row);
    // If only the checksum is wrong, the members that the log can't restore are probably intact. Without `reported` the
    // merchant would get an event twice; without `usedTo` an uplink from before an erasure could be stored again.
    const state = parsed.ok ? withUnlogged(fromLog, parsed.value) : fromLog;
    const rebuilt = { why: fault ?? '', from };
    return { deviceId, mac, state, isBehindLog: false, lackedUplinks: from === 'log' ? 0 : undefined, rebuilt };
  }
  const { unjudged } = parsed.value;
  if (unjudged === undefined || unjudged.version === loading.judging.version) {
    const isBehindLog = unjudged === undefined;
    return { deviceId, mac, state: parsed.value, isBehindLog, lackedUplinks: undefined, rebuilt: undefined };
  }
  const state = await judgeAnew(loading, row, parsed.value);
  const lackedUplinks = state.unjudged === undefined ? 0 : undefined;
  return { deviceId, mac, state, isBehindLog: false, lackedUplinks, rebuilt: undefined };
}

/** Rebuilds a state from the log; if the log can't be read either, the lock gets the state of a new lock. */
async function rebuildState(
  loading: Loading,
  lock: ReplayedLock,
): Promise<{ readonly state: DeviceState; readonly from: StateRebuilt['from'] }> {
  const { store, judging, nowMs } = loading;
  const newState = newDeviceState(lock.mac, nowMs, nowMs);
  try {
    const state = await replayLog(store, judging, lock);
    if (state !== undefined) return { state, from: 'log' };
  } catch (error) {
    if (error instanceof JudgeFailure)
      return { state: { ...newState, unjudged: judgingStop(loading, messageOf(error.cause)) }, from: 'nothing' };
    // The log is damaged too: the lock gets a new state.
  }
  return { state: newState, from: 'nothing' };
}

/** Judges the log of a lock at which another version of lockgate failed; if this version fails too, keeps the state. */
async function judgeAnew(loading: Loading, lock: ReplayedLock, before: DeviceState): Promise<DeviceState> {
  try {
    const state = await replayLog(loading.store, loading.judging, lock);
    return state === undefined ? withoutStop(before) : withUnlogged(state, before);
  } catch (error) {
    if (error instanceof StoreFailure) throw error;
    const why = messageOf(error instanceof JudgeFailure ? error.cause : error);
    return {
      ...before,
      unjudged: { ...judgingStop(loading, why), sinceMs: before.unjudged?.sinceMs ?? loading.nowMs },
    };
  }
}

/** The state without the mark that the lock is not judged. */
function withoutStop({ unjudged: _stop, ...state }: DeviceState): DeviceState {
  return state;
}

/** The mark of a lock that is not judged from now on. */
function judgingStop({ judging, nowMs }: Loading, why: string): JudgingStop {
  return { sinceMs: nowMs, why, version: judging.version };
}

/** A failure of the judge in a replay: how many uplinks of the lock it had judged before, and why it failed. */
interface ReplayFailure {
  readonly judged: number;
  readonly why: string;
}

interface Replay extends Pick<Loading, 'store' | 'judging'>, Pick<LoadedStates, 'marks'> {}

/**
 * Updates those states from the log that are behind it: judges the locks' own uplinks that arrived after each state was
 * stored. Skips damaged uplinks. Returns the locks at which the judge failed.
 *
 * @param until for locks at which the judge failed earlier: stops before that failure
 */
async function replayAfterStates(
  { store, judging, marks }: Replay,
  states: ReadonlyMap<number, LoadedState>,
  deviceIds?: readonly number[],
  until: ReadonlyMap<number, ReplayFailure> = new Map(),
): Promise<Map<number, ReplayFailure>> {
  const failed = new Map<number, ReplayFailure>();
  /** How many uplinks of each lock were judged. */
  const judgedCounts = new Map<number, number>();
  /** The locks whose uplinks were judged, with how many uplinks had been read before the first of them. */
  const firstAt = new Map<LoadedState, number>();
  let readCount = 0;
  // What a stored state lacks is always among the newest uplinks of this number that its gateway stored.
  for await (const uplinks of store.readUplinksAfterStates(MAX_DIRTY_UPLINKS, UPLINKS_PER_READ, deviceIds)) {
    for (const uplink of uplinks) {
      const { deviceId, source } = uplink;
      readCount += 1;
      if (source === 'phone') continue;
      const loaded = states.get(deviceId);
      const count = judgedCounts.get(deviceId) ?? 0;
      if (!loaded?.isBehindLog || failed.has(deviceId) || count === until.get(deviceId)?.judged) continue;
      if (!firstAt.has(loaded)) firstAt.set(loaded, readCount - 1);
      judgedCounts.set(deviceId, count + 1);
      try {
        judgeStored(judging, loaded.state, uplink, marks.get(deviceId));
      } catch (error) {
        if (error instanceof JudgeFailure) failed.set(deviceId, { judged: count, why: messageOf(error.cause) });
        // A damaged uplink: the state without it is reported as rebuilt.
        else loaded.rebuilt ??= { why: (error as Error).message, from: 'log' };
      }
    }
  }
  for (const [loaded, before] of firstAt) loaded.lackedUplinks = readCount - before;
  return failed;
}
