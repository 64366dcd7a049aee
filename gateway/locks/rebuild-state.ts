/**
 * Loads states from the store and brings them up to the log. Where a stored state is only old (dirty-states.ts), the
 * uplinks after it are judged again. Where its row is damaged, the lock's whole log is. Where the judge throws, the
 * lock gets its previous state and a mark that it is not judged (ingest/judging.ts).
 */
import type { StateRebuilt } from '../events.js';
import { JudgeFailure, type Judging, messageOf, type Unjudged } from '../ingest/judging.js';
import { StoreFailure } from '../store/contract/errors.js';
import type { Store, StoredState } from '../store/contract/store.js';
import { type DeviceState, newDeviceState, readDeviceState } from './device-state.js';
import { MAX_DIRTY_UPLINKS } from './dirty-states.js';
import { judgeStored, type ReplayedLock, replayLog } from './log-replay.js';

/** How many uplinks are read at once. */
const PIECE = 500;

/** What is reported about a row that does not fit its checksum. */
const DAMAGED_STATE = 'the stored state does not fit its checksum';

/** A lock's state as the store and the log have it. */
export interface LoadedState extends ReplayedLock {
  state: DeviceState;
  /** Uplinks that arrived after it was stored were judged again. */
  isReplayed: boolean;
  /** Why it was rebuilt and from what; undefined where it was not. */
  rebuilt: { readonly why: string; readonly from: StateRebuilt['from'] } | undefined;
}

interface Loading {
  readonly store: Store;
  readonly judging: Judging;
  /** The run's clock, ms since the epoch. */
  readonly nowMs: number;
}

/**
 * The states of all locks that have one, or of those with these ids.
 *
 * @throws StoreFailure where the store can't be read
 */
export async function loadStates(
  loading: Loading,
  deviceIds?: readonly number[],
): Promise<ReadonlyMap<number, LoadedState>> {
  const { store, judging } = loading;
  const loaded = new Map<number, LoadedState>();
  const behindLog = new Map<number, LoadedState>();
  for (const row of await store.readDeviceStates(deviceIds)) {
    const each = await loadState(loading, row);
    loaded.set(row.deviceId, each);
    if (each.rebuilt === undefined && each.state.unjudged === undefined) behindLog.set(row.deviceId, each);
  }
  const failed = await replayUnflushed(store, judging, behindLog, deviceIds);
  if (failed.size === 0) return loaded;
  // States that the judge left half written are discarded: their rows are read again, and judged up to where it fails.
  const ids = [...failed.keys()];
  const again = new Map<number, LoadedState>();
  for (const row of await store.readDeviceStates(ids)) again.set(row.deviceId, await loadState(loading, row));
  await replayUnflushed(store, judging, again, ids, failed);
  for (const [deviceId, each] of again) {
    const { why = '' } = failed.get(deviceId) ?? {};
    loaded.set(deviceId, { ...each, state: { ...each.state, unjudged: unjudgedNow(loading, why) } });
  }
  return loaded;
}

async function loadState(loading: Loading, row: StoredState): Promise<LoadedState> {
  const { deviceId, mac } = row;
  const read = readDeviceState(row.state);
  const fault = row.isDamaged === true ? DAMAGED_STATE : read.ok ? undefined : read.error.message;
  if (fault !== undefined || !read.ok) {
    const { state, from } = await rebuildState(loading, row);
    return { deviceId, mac, state, isReplayed: false, rebuilt: { why: fault ?? '', from } };
  }
  const { unjudged } = read.value;
  const state =
    unjudged === undefined || unjudged.version === loading.judging.version
      ? read.value
      : await tryAgain(loading, row, read.value);
  return { deviceId, mac, state, isReplayed: false, rebuilt: undefined };
}

/** Rebuilds a state from the log; where that can't be read either, the lock starts as a new one. */
async function rebuildState(
  loading: Loading,
  lock: ReplayedLock,
): Promise<{ readonly state: DeviceState; readonly from: StateRebuilt['from'] }> {
  const { store, judging, nowMs } = loading;
  const nothing = newDeviceState(lock.mac, nowMs, nowMs);
  try {
    const state = await replayLog(store, judging, lock);
    if (state !== undefined) return { state, from: 'log' };
  } catch (error) {
    if (error instanceof JudgeFailure)
      return { state: { ...nothing, unjudged: unjudgedNow(loading, messageOf(error.cause)) }, from: 'nothing' };
    // The log is damaged too. A lock that starts as new is better than none.
  }
  return { state: nothing, from: 'nothing' };
}

/** Another version failed to judge the lock: this one tries once. */
async function tryAgain(loading: Loading, lock: ReplayedLock, before: DeviceState): Promise<DeviceState> {
  try {
    return (await replayLog(loading.store, loading.judging, lock)) ?? withoutMark(before);
  } catch (error) {
    if (error instanceof StoreFailure) throw error;
    const why = messageOf(error instanceof JudgeFailure ? error.cause : error);
    return {
      ...before,
      unjudged: { ...unjudgedNow(loading, why), sinceMs: before.unjudged?.sinceMs ?? loading.nowMs },
    };
  }
}

function withoutMark({ unjudged: _mark, ...state }: DeviceState): DeviceState {
  return state;
}

function unjudgedNow({ judging, nowMs }: Loading, why: string): Unjudged {
  return { sinceMs: nowMs, why, version: judging.version };
}

/** Where the judge failed in a replay: how many uplinks it had judged before, and what it threw. */
interface ReplayFailure {
  readonly judged: number;
  readonly why: string;
}

/**
 * Brings states up to the log: judges the uplinks after each was stored. Damaged uplinks are skipped. Returns where the
 * judge failed.
 *
 * @param until stops before these failures
 */
async function replayUnflushed(
  store: Store,
  judging: Judging,
  states: ReadonlyMap<number, LoadedState>,
  deviceIds?: readonly number[],
  until: ReadonlyMap<number, ReplayFailure> = new Map(),
): Promise<Map<number, ReplayFailure>> {
  const failed = new Map<number, ReplayFailure>();
  const judged = new Map<number, number>();
  const marks = await store.marks.readAll();
  for await (const piece of store.readUplinksAfterStates(MAX_DIRTY_UPLINKS, PIECE, deviceIds)) {
    for (const uplink of piece) {
      const { deviceId } = uplink;
      const loaded = states.get(deviceId);
      const count = judged.get(deviceId) ?? 0;
      if (loaded === undefined || failed.has(deviceId) || count === until.get(deviceId)?.judged) continue;
      loaded.isReplayed = true;
      judged.set(deviceId, count + 1);
      try {
        judgeStored(judging, loaded.state, uplink, marks.get(deviceId));
      } catch (error) {
        if (error instanceof JudgeFailure) failed.set(deviceId, { judged: count, why: messageOf(error.cause) });
        else loaded.rebuilt ??= { why: (error as Error).message, from: 'log' };
      }
    }
  }
  return failed;
}
