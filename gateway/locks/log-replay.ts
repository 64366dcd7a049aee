/**
 * A lock's log, judged once more in the order in which it came. What the judge finds on the way is in the store
 * already, but for the time in which the lock was not judged.
 */

import { type Finding, type JudgeEvent, newVerdict, type Verdict } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { Mac } from '../../proto/wire/mac.js';
import { NO_MARKS } from '../../proto/wire/uplink-life.js';
import { JudgeFailure, type Judging } from '../ingest/judging.js';
import type { Judged, Store, StoredUplink } from '../store/contract/store.js';
import { type DeviceState, newDeviceState, noteUplink } from './device-state.js';
import { isLegible, judgeEventOf } from './log-entry.js';

/** Entries of the log read at once. */
const PIECE = 500;
/** The newest findings of a lock, which are looked through for what the judge finds anew. */
const FINDINGS_LOOKED_AT = 1000;

export interface ReplayedLock {
  readonly deviceId: number;
  readonly mac: Mac;
}

/**
 * All that is stored of a lock; undefined where nothing is.
 *
 * @param onVerdict told what the judge makes of each event; with it, entries that are damaged are left out
 * @throws JudgeFailure
 * @throws Error where the log can't be read, or an entry of it is damaged
 */
export async function replayLog(
  store: Pick<Store, 'readLog' | 'marks'>,
  judging: Judging,
  { deviceId, mac }: ReplayedLock,
  onVerdict?: (event: JudgeEvent, verdict: Verdict) => void,
): Promise<DeviceState | undefined> {
  const marks = await store.marks.read(deviceId);
  let state: DeviceState | undefined;
  for await (const piece of store.readLog(deviceId, PIECE)) {
    for (const entry of piece) {
      if (onVerdict !== undefined && !isLegible(entry)) continue;
      const event = judgeEventOf(entry, marks);
      state ??= newDeviceState(mac, event.atMs, event.atMs);
      const verdict = judgeAgain(judging, state, event);
      onVerdict?.(event, verdict);
    }
  }
  return state;
}

/**
 * A lock's state as the whole log makes it, and what is found of the time in which it was not judged: what was found
 * before is in the store.
 *
 * @throws JudgeFailure
 * @throws StoreFailure
 */
export async function remakeState<Lock extends ReplayedLock & { readonly state: DeviceState }>(
  store: Pick<Store, 'readLog' | 'readFindings' | 'marks'>,
  judging: Judging,
  lock: Lock,
): Promise<{ readonly lock: Lock; readonly state: DeviceState; readonly judged: readonly Judged[] }> {
  const { deviceId } = lock;
  const sinceMs = lock.state.unjudged?.sinceMs ?? Number.POSITIVE_INFINITY;
  const known = await store.readFindings(deviceId, FINDINGS_LOOKED_AT);
  const names = new Set(known.map(({ finding }) => nameOf(finding)));
  const judged: Judged[] = [];
  const state = await replayLog(store, judging, lock, ({ atMs }, { withdrawn, findings }) => {
    if (atMs < sinceMs) return;
    const news = findings.filter((finding) => !names.has(nameOf(finding)));
    if (news.length > 0 || withdrawn.length > 0) judged.push({ deviceId, withdrawn, findings: news });
  });
  const { unjudged: _mark, ...before } = lock.state;
  return { lock, state: state ?? before, judged };
}

/** What tells findings apart. */
function nameOf({ rule, about, atMs }: Finding): string {
  return JSON.stringify([rule, about, atMs]);
}

/** Judges an event of the log. @throws JudgeFailure, and then the state is not to be used */
export function judgeAgain({ judge }: Judging, state: DeviceState, event: JudgeEvent): Verdict {
  const verdict = newVerdict();
  try {
    judge(POWER_MODEL, state.belief, event, verdict);
    if (event.type === 'uplink' && event.source === 'lock')
      noteUplink(state, event.credential, event.uplink, event.atMs, event.life);
  } catch (error) {
    throw new JudgeFailure(error);
  }
  return verdict;
}

/** Judges a stored uplink. @throws JudgeFailure; Error where its bytes are damaged, and then the state is as it was */
export function judgeStored(
  judging: Judging,
  state: DeviceState,
  uplink: StoredUplink,
  marks: readonly number[] = NO_MARKS,
): void {
  judgeAgain(judging, state, judgeEventOf({ type: 'uplink', uplink }, marks));
}
