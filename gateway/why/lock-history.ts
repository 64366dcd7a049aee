/**
 * A lock's stored log, judged once more up to the uplink or the moment that somebody asks about. What is read is
 * bounded, and read in pieces between which the gateway goes on with its work.
 */
import { afterThisTurn } from '../../proto/clock.js';
import type { JudgeEvent, UplinkEvent } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { HistoryReplay, type JudgedHistory } from '../../proto/why/history.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import type { Judging } from '../ingest/judging.js';
import { judgeEventOf } from '../locks/log-entry.js';
import type { LogEntry, Store, StoredUplink } from '../store/contract/store.js';

/** Uplinks that are judged once more, at the most, and as many events of connections: weeks of a busy lock. */
export const REPLAYED_MOST = 2_500;
/** Entries behind the moment that are looked at. */
const AFTER_MOST = 500;
/** Entries read at once: some 5 ms of the gateway's thread. */
const PIECE = 250;

/** The lock whose log it is. */
export interface HistoryLock {
  readonly deviceId: number;
  readonly mac: Mac;
}

/** What the history is to end at. */
export type Target = { readonly uplink: StoredUplink; readonly event: UplinkEvent } | { readonly atMs: number };

/** The history, and what is to be said of how it was read. */
export interface ReadHistory extends JudgedHistory {
  /** Entries whose stored bytes are damaged: they are left out. */
  readonly damaged: number;
  /** Whether the uplink asked about stands in what was read; it doesn't where the lock was another merchant's then. */
  readonly isComplete: boolean;
}

export interface HistoryParts {
  readonly store: Store;
  readonly locks: { readonly judging: Judging };
}

/** Reads and judges. */
export async function readHistory(
  { store, locks: { judging } }: HistoryParts,
  { deviceId, mac }: HistoryLock,
  aim: Target,
): Promise<ReadHistory> {
  const toMs = 'uplink' in aim ? aim.uplink.receivedAtMs : aim.atMs;
  const toId = 'uplink' in aim ? aim.uplink.id : (await store.webhooks.findFirstUplinkFrom(toMs + 1)) - 1;
  const start = await store.why.findLogStart(deviceId, toId, toMs, REPLAYED_MOST);
  const marks = await store.marks.read(deviceId);
  const after: JudgeEvent[] = [];
  let replay: HistoryReplay | undefined;
  let [damaged, isReached] = [0, false];
  reading: for await (const piece of store.why.readLogFrom(deviceId, start, PIECE)) {
    for (const entry of piece) {
      if (isReached || isBehind(entry, aim)) {
        isReached ||= !('uplink' in aim);
        if (!isReached || after.length >= AFTER_MOST) break reading;
      }
      const event = eventOf(entry, marks);
      if (event === undefined) damaged += 1;
      else if (isReached) after.push(event);
      else if (isTarget(entry, aim)) isReached = true;
      else {
        replay ??= new HistoryReplay(POWER_MODEL, formatMac(mac), event.atMs, start.isCut, undefined, judging.judge);
        replay.take(event);
      }
    }
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  }
  replay ??= new HistoryReplay(POWER_MODEL, formatMac(mac), toMs, start.isCut, undefined, judging.judge);
  const history = 'uplink' in aim ? replay.endAt(aim.event, after) : replay.endAtTime(toMs, after);
  return { ...history, damaged, isComplete: isReached || !('uplink' in aim) };
}

/** Undefined where the stored bytes are damaged. */
function eventOf(entry: LogEntry, marks: readonly number[]): JudgeEvent | undefined {
  try {
    return judgeEventOf(entry, marks);
  } catch {
    return undefined;
  }
}

function isTarget(entry: LogEntry, aim: Target): boolean {
  return 'uplink' in aim && entry.type === 'uplink' && entry.uplink.id === aim.uplink.id;
}

function isBehind(entry: LogEntry, aim: Target): boolean {
  if ('uplink' in aim) return entry.type === 'uplink' && entry.uplink.id > aim.uplink.id;
  return (entry.type === 'uplink' ? entry.uplink.receivedAtMs : entry.atMs) > aim.atMs;
}
