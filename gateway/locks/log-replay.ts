/**
 * Replays a lock's log: judges its stored uplinks and other events again, in the order of arrival. The store already
 * has the findings, except for the time in which the lock was not judged. Writes nothing.
 */
import { type Finding, type JudgeEvent, newVerdict, type Verdict } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { Mac } from '../../proto/wire/mac.js';
import { NO_MARKS } from '../../proto/wire/uplink-life.js';
import { JudgeFailure, type VersionedJudge } from '../ingest/judging.js';
import type { Judged } from '../store/contract/log/commit.js';
import type { StoredUplink } from '../store/contract/log/stored-uplink.js';
import type { Store } from '../store/contract/store.js';
import { type DeviceState, newDeviceState, noteUplink, withUnlogged } from './device-state.js';
import { isIntact, judgeEventOf } from './log-entry.js';

/** How many entries of the log are read at once. */
const ENTRIES_PER_READ = 500;
/** How many of a lock's newest stored findings are compared with those of the replay. */
const COMPARED_FINDINGS = 1000;

/** A lock whose log is replayed. */
export interface ReplayedLock {
  readonly deviceId: number;
  readonly mac: Mac;
}

/**
 * The state that results from judging a lock's whole log; undefined if the log has no entries of the lock.
 *
 * The store's marks are times after which the lock was reflashed: its boots count from 1 again.
 *
 * @param onVerdict called with the verdict on each event; if given, damaged entries are skipped, since the caller wants
 *   the findings that there are. A state alone is not made from a damaged log
 * @throws JudgeFailure
 * @throws Error if the log can't be read or, without `onVerdict`, an entry is damaged
 */
export async function replayLog(
  store: Pick<Store, 'readLog' | 'marks'>,
  judging: VersionedJudge,
  { deviceId, mac }: ReplayedLock,
  onVerdict?: (event: JudgeEvent, verdict: Verdict) => void,
): Promise<DeviceState | undefined> {
  const marks = await store.marks.read(deviceId);
  let state: DeviceState | undefined;
  for await (const entries of store.readLog(deviceId, ENTRIES_PER_READ)) {
    for (const entry of entries) {
      if (onVerdict !== undefined && !isIntact(entry)) continue;
      const event = judgeEventOf(entry, marks);
      state ??= newDeviceState(mac, event.atMs, event.atMs);
      const verdict = judgeAgain(judging, state, event);
      onVerdict?.(event, verdict);
    }
  }
  return state;
}

/**
 * The state that results from judging a lock's whole log, and the findings of the time in which the lock was not
 * judged; the store has earlier findings.
 *
 * @param before the state whose `reported` and `usedTo` are kept, since the log can't restore them
 * @throws JudgeFailure
 * @throws StoreFailure
 */
export async function replayState<Lock extends ReplayedLock & { readonly state: DeviceState }>(
  store: Pick<Store, 'readLog' | 'readFindings' | 'marks'>,
  judging: VersionedJudge,
  lock: Lock,
  before: DeviceState = lock.state,
): Promise<{ readonly lock: Lock; readonly state: DeviceState; readonly judged: readonly Judged[] }> {
  const { deviceId } = lock;
  const sinceMs = lock.state.unjudged?.sinceMs ?? Number.POSITIVE_INFINITY;
  // The findings of earlier events in the very millisecond of the stop may be stored already.
  const stored = await store.readFindings(deviceId, COMPARED_FINDINGS);
  const storedKeys = new Set(stored.map(({ finding }) => findingKey(finding)));
  const judged: Judged[] = [];
  const state = await replayLog(store, judging, lock, ({ atMs }, { withdrawn, findings }) => {
    if (atMs < sinceMs) return;
    const newFindings = findings.filter((finding) => !storedKeys.has(findingKey(finding)));
    if (newFindings.length > 0 || withdrawn.length > 0) judged.push({ deviceId, withdrawn, findings: newFindings });
  });
  // If the log has no entries, the state stays, but no longer says that the lock is not judged.
  const { unjudged: _stop, ...stateBefore } = before;
  return { lock, state: state === undefined ? stateBefore : withUnlogged(state, before), judged };
}

/** A text that identifies a finding. */
function findingKey({ rule, about, atMs }: Finding): string {
  return JSON.stringify([rule, about, atMs]);
}

/** Judges an event of the log. @throws JudgeFailure; then the state must not be used */
export function judgeAgain({ judge }: VersionedJudge, state: DeviceState, event: JudgeEvent): Verdict {
  const verdict = newVerdict();
  try {
    judge(POWER_MODEL, state.belief, event, verdict);
    // A phone nearby sends pings for the lock too, which say nothing about the lock's own firmware and connection.
    if (event.type === 'uplink' && event.source === 'lock')
      noteUplink(state, event.credential, event.uplink, event.atMs, event.life);
  } catch (error) {
    throw new JudgeFailure(error);
  }
  return verdict;
}

/** Judges a stored uplink. @throws JudgeFailure; Error if its bytes are damaged, and then the state is unchanged */
export function judgeStored(
  judging: VersionedJudge,
  state: DeviceState,
  uplink: StoredUplink,
  marks: readonly number[] = NO_MARKS,
): void {
  judgeAgain(judging, state, judgeEventOf({ type: 'uplink', uplink }, marks));
}
