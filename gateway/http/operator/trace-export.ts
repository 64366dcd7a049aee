/**
 * Traces (protocol.md §4) out of the store: what the log has of some locks, in the order of receipt. The header says
 * what was known of each lock when the range begins, so that the piece is judged as it was when it happened.
 *
 * An uplink whose stored bytes are damaged is left out, and a line says so: a tick with a note.
 */

import { Deadlines } from '../../../proto/deadlines.js';
import type { Belief } from '../../../proto/power/judge/belief.js';
import { type JudgeEvent, newVerdict } from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { lastSequenceMs } from '../../../proto/power/judge/period.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { type TraceEvent, type TraceLock, UNNAMED_LOCK } from '../../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import { decodeUplink } from '../../../proto/wire/codec.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { type CommandAck, isPingUplink, type Source, type Uplink } from '../../../proto/wire/ping.js';
import { toDate } from '../../../proto/wire/ping-json.js';
import { FIRST_LIFE, lifeOf, NO_MARKS } from '../../../proto/wire/uplink-life.js';
import { newDeviceState } from '../../locks/device-state.js';
import { UNNOTED_SET_POWER_LIFE } from '../../locks/stored-belief.js';
import type { LockEvent, LogEntry, Store, StoredUplink } from '../../store/contract/store.js';

/** Entries of a lock's log read at once. */
const PIECE = 500;

export interface ExportRange {
  readonly devices: readonly { readonly id: number; readonly mac: Mac }[];
  /** By receipt, ms since the epoch: from this time on … */
  readonly sinceMs: number;
  /** … and before this one. */
  readonly untilMs: number;
}

/** The lines of the trace, without their ends. */
export async function* exportTrace(
  store: Store,
  range: ExportRange,
  judge: typeof judgeInPlace = judgeInPlace,
): AsyncGenerator<string> {
  const marks = await store.marks.readAll();
  const walks = range.devices.map(({ id, mac }) => new LogWalk(store, id, mac, marks.get(id) ?? NO_MARKS));
  const header = new Map<Mac, TraceLock>();
  const next = new Deadlines<LogWalk>();
  for (const walk of walks) {
    header.set(walk.mac, await walk.skipTo(range.sinceMs, judge));
    if (walk.current !== undefined) next.set(walk, atOf(walk.current));
  }
  const leftOut = walks.reduce((sum, walk) => sum + walk.leftOut, 0);
  const note = leftOut === 0 ? '' : `${leftOut} damaged uplinks before this trace begins were left out`;
  yield traceHeaderLine({ note, locks: header });
  let lastGateway = '';
  for (let walk = next.take(range.untilMs); walk !== undefined; walk = next.take(range.untilMs)) {
    const entry = walk.current as LogEntry;
    const line = lineOf(walk.mac, entry);
    // Each lock was told that the gateway listens; a trace is told once.
    const isGateway = entry.type === 'lock-event' && entry.event.event === 'gateway';
    if (!isGateway || line !== lastGateway) yield line;
    if (isGateway) lastGateway = line;
    await walk.step();
    if (walk.current !== undefined) next.set(walk, atOf(walk.current));
  }
}

/** One lock's log, an entry at a time. */
class LogWalk {
  readonly mac: Mac;
  /** The entry at which it stands; undefined at the end. */
  current: LogEntry | undefined;
  dueMs = 0;
  /** Damaged uplinks that were passed by {@link skipTo}. */
  leftOut = 0;
  readonly #pieces: AsyncIterator<LogEntry[]>;
  readonly #marks: readonly number[];
  #piece: LogEntry[] = [];

  constructor(store: Store, deviceId: number, mac: Mac, marks: readonly number[]) {
    this.mac = mac;
    this.#marks = marks;
    this.#pieces = store.readLog(deviceId, PIECE)[Symbol.asyncIterator]();
  }

  async step(): Promise<void> {
    if (this.#piece.length === 0) {
      const { done, value } = await this.#pieces.next();
      this.#piece = done === true ? [] : value.reverse();
    }
    this.current = this.#piece.pop();
  }

  /**
   * Goes to the first entry from `sinceMs` on, and tells what is known of the lock by then: nothing where the judge
   * fails on the way.
   */
  async skipTo(sinceMs: number, judge: typeof judgeInPlace): Promise<TraceLock> {
    await this.step();
    const reflashed = this.#marks.length === 0 ? {} : { reflashed: this.#marks };
    if (this.current === undefined || atOf(this.current) >= sinceMs) return { ...UNNAMED_LOCK, ...reflashed };
    const { belief } = newDeviceState(this.mac, atOf(this.current), atOf(this.current));
    let isJudged = true;
    while (this.current !== undefined && atOf(this.current) < sinceMs) {
      if (!isLegible(this.current)) this.leftOut += 1;
      else if (isJudged) isJudged = isWellJudged(judge, belief, judgeEventOf(this.current, this.#marks));
      await this.step();
    }
    return isJudged ? traceLockOf(belief, this.#marks) : { ...UNNAMED_LOCK, ...reflashed };
  }
}

/** Judges an event. False where the judge throws, and then the belief is not to be used. */
function isWellJudged(judge: typeof judgeInPlace, belief: Belief, event: JudgeEvent): boolean {
  try {
    judge(POWER_MODEL, belief, event, newVerdict());
    return true;
  } catch {
    return false;
  }
}

/** What a trace's header says of a lock of which this is believed, and that has these marks. */
export function traceLockOf(belief: Belief, marks: readonly number[]): TraceLock {
  const { power, highWindow, lockState, isConnected: connected } = belief;
  const lastPeriodMs = lastSequenceMs(POWER_MODEL, belief);
  return { power, highWindow, lockState, connected, lastPeriodMs, ...(marks.length > 0 && { reflashed: marks }) };
}

function atOf(entry: LogEntry): number {
  return entry.type === 'uplink' ? entry.uplink.receivedAtMs : entry.atMs;
}

/**
 * What the judge was told when the entry was made, and would be told with these marks of its lock.
 *
 * @throws Error where an uplink's bytes are damaged
 */
export function judgeEventOf(entry: LogEntry, marks: readonly number[] = NO_MARKS): JudgeEvent {
  if (entry.type === 'lock-event') return lockEventOf(entry.event, entry.atMs);
  const { credentialId: credential, source, receivedAtMs: atMs } = entry.uplink;
  const uplink = decodeStored(entry.uplink);
  const life = source === 'lock' && marks.length > 0 ? lifeOf(marks, uplink.timeMs, atMs) : FIRST_LIFE;
  return { type: 'uplink', source, credential, life, copy: 'new', uplink, atMs };
}

function lockEventOf(event: LockEvent, atMs: number): JudgeEvent {
  if (event.event === 'gateway') return { type: 'gateway', state: event.state, atMs };
  if (event.event === 'command') {
    const { id, command, expiresMs = atMs + UNNOTED_SET_POWER_LIFE } = event;
    return { type: 'command', id, command, expiresMs, atMs };
  }
  const { source = 'lock' } = event;
  if (event.event === 'connect') return { type: 'connect', source, atMs };
  return { type: 'disconnect', source, cause: event.cause, atMs };
}

/** Whether the entry can be believed: false of an uplink whose stored bytes are damaged. */
export function isLegible(entry: LogEntry): boolean {
  if (entry.type !== 'uplink') return true;
  return !entry.uplink.isDamaged && decodeUplink(entry.uplink.bytes).ok;
}

/** In place of an uplink that is left out; `judge` reads no more of it than that time passed. */
function leftOutLine(mac: Mac, { boot, sequence, receivedAtMs }: StoredUplink): string {
  const note = `left out: uplink ${boot}/${sequence} of ${formatMac(mac)}, which does not fit its checksum`;
  return JSON.stringify({ at: toDate(receivedAtMs), event: 'tick', note });
}

function lineOf(mac: Mac, entry: LogEntry): string {
  if (entry.type === 'uplink' && !isLegible(entry)) return leftOutLine(mac, entry.uplink);
  if (entry.type === 'uplink')
    return uplinkLine({ ...entry.uplink, mac, atMs: entry.uplink.receivedAtMs, uplink: decodeStored(entry.uplink) });
  const { atMs, event } = entry;
  if (event.event === 'gateway') return traceEventLine({ atMs, ...event });
  if (event.event === 'command') return traceEventLine({ atMs, mac, ...event });
  return traceEventLine({ atMs, mac, source: 'lock', ...event });
}

/** An uplink that was received. */
interface Received {
  readonly mac: Mac;
  readonly atMs: number;
  readonly source: Source;
  readonly uplink: Uplink;
  readonly bytes: Uint8Array;
}

/** The line of an uplink, its bytes beside its JSON. */
export function uplinkLine({ mac, atMs, source, uplink, bytes }: Received): string {
  const event: TraceEvent = isPingUplink(uplink)
    ? { event: 'ping', atMs, mac, source, uplink }
    : { event: 'ack', atMs, mac, source, uplink: uplink as Uplink<CommandAck> };
  return traceEventLine(event, bytes);
}

/** @throws Error where the stored bytes are not what was written */
function decodeStored({ id, bytes, isDamaged }: StoredUplink): Uplink {
  if (isDamaged) throw new Error(`uplink ${id} in the log does not fit its checksum`);
  const decoded = decodeUplink(bytes);
  if (!decoded.ok) throw new Error(`uplink ${id} in the log can't be decoded: ${decoded.error.message}`);
  return decoded.value;
}
