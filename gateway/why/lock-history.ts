/**
 * Replays a lock's log (its stored uplinks and other events) through the judge, which checks them against the
 * protocol's rules, up to the uplink or the time that a "why" question is about. The number of entries is limited, and
 * they are read in batches, with a turn of the event loop between two. Only reads.
 */
import { afterThisTurn } from '../../proto/clock.js';
import type { JudgeEvent, UplinkEvent } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { HistoryReplay, type JudgedHistory } from '../../proto/why/history.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import type { VersionedJudge } from '../ingest/judging.js';
import { judgeEventOf } from '../locks/log-entry.js';
import type { LogEntry } from '../store/contract/log/log-entry.js';
import type { StoredUplink } from '../store/contract/log/stored-uplink.js';
import type { Store } from '../store/contract/store.js';

/** Maximum number of uplinks to replay, and the same for connection events: weeks of a busy lock. */
export const MAX_REPLAYED_UPLINKS = 2_500;
/** Maximum number of entries read after a time; after an uplink, none are. */
const MAX_ENTRIES_AFTER = 500;
/**
 * A batch takes two ms of the gateway’s thread: each uplink some 3 µs to decode and judge, and about 1 to unpack.
 */
const READ_BATCH_ENTRIES = 500;

/** The lock whose log is replayed. */
export interface HistoryLock {
  readonly deviceId: number;
  readonly mac: Mac;
}

/**
 * Where the history ends: at an uplink (`event` is the same uplink, for the judge), or at a time in ms since the epoch.
 * `withAfter`: whether later entries are read too. Nothing that explains an uplink is in them.
 */
export type Target =
  | { readonly uplink: StoredUplink; readonly event: UplinkEvent }
  | { readonly atMs: number; readonly withAfter: boolean };

/** The judged history, and what was left out of it. */
export interface ReadHistory extends JudgedHistory {
  /** The number of entries that are left out because their stored bytes are damaged. */
  readonly damaged: number;
  /**
   * Whether the target uplink is among the entries read; true for a time. False if the lock belonged to another
   * merchant then.
   */
  readonly isComplete: boolean;
}

export interface HistoryParts {
  readonly store: Store;
  readonly locks: { readonly judging: VersionedJudge };
}

/** Reads and judges a lock's log up to the target. */
export async function readHistory(
  { store, locks: { judging } }: HistoryParts,
  { deviceId, mac }: HistoryLock,
  target: Target,
): Promise<ReadHistory> {
  const toMs = 'uplink' in target ? target.uplink.receivedAtMs : target.atMs;
  // For a time: the last id before the first uplink received after it.
  const toId = 'uplink' in target ? target.uplink.id : (await store.webhooks.findFirstUplinkFrom(toMs + 1)) - 1;
  const start = await store.why.findLogStart(deviceId, toId, toMs, MAX_REPLAYED_UPLINKS);
  const marks = await store.marks.read(deviceId);
  const maxAfter = 'atMs' in target && target.withAfter ? MAX_ENTRIES_AFTER : 0;
  const throughId = maxAfter === 0 ? toId : undefined;
  const after: JudgeEvent[] = [];
  // No belief about the lock (the judge's estimate of its state) is given, so that the replay starts with a new one.
  const replayFrom = (beginMs: number) =>
    new HistoryReplay(POWER_MODEL, formatMac(mac), beginMs, start.isCut, undefined, judging.judge);
  let replay: HistoryReplay | undefined;
  let [damaged, isPastTarget] = [0, false];
  reading: for await (const batch of store.why.readLogFrom(deviceId, start, READ_BATCH_ENTRIES, throughId)) {
    for (const entry of batch) {
      if (isPastTarget || isAfterTarget(entry, target)) {
        // The first entry after a time is past it. A target uplink must be met itself (below): if a later uplink comes
        // first, the log lacks it, and the reading ends.
        isPastTarget ||= !('uplink' in target);
        if (!isPastTarget || after.length >= maxAfter) break reading;
      }
      const event = eventOf(entry, marks);
      if (event === undefined) damaged += 1;
      else if (isPastTarget) after.push(event);
      else if (isTarget(entry, target)) isPastTarget = true;
      else {
        replay ??= replayFrom(event.atMs);
        replay.take(event);
      }
    }
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  }
  replay ??= replayFrom(toMs);
  const history = 'uplink' in target ? replay.endAt(target.event, after) : replay.endAtTime(toMs, after);
  return { ...history, damaged, isComplete: isPastTarget || !('uplink' in target) };
}

/** The entry as an event for the judge; undefined if the stored bytes are damaged. */
function eventOf(entry: LogEntry, marks: readonly number[]): JudgeEvent | undefined {
  try {
    return judgeEventOf(entry, marks);
  } catch {
    return undefined;
  }
}

function isTarget(entry: LogEntry, target: Target): boolean {
  return 'uplink' in target && entry.type === 'uplink' && entry.uplink.id === target.uplink.id;
}

function isAfterTarget(entry: LogEntry, target: Target): boolean {
  if ('uplink' in target) return entry.type === 'uplink' && entry.uplink.id > target.uplink.id;
  return (entry.type === 'uplink' ? entry.uplink.receivedAtMs : entry.atMs) > target.atMs;
}
