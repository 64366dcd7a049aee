/**
 * Exports traces (recordings of locks' messages, protocol.md §4) from the store: the logs of some locks in order of
 * receipt. The header contains the state of each lock at the start of the range, so that the judge, which checks
 * uplinks by the firmware's rules, has the same findings for the trace as it had on receipt.
 *
 * An uplink whose stored bytes are damaged is replaced by a tick (an event that only says what time it is) with a note.
 */

import { Deadlines } from '../../../proto/deadlines.js';
import type { Belief, EarlierCommand } from '../../../proto/power/judge/belief.js';
import { type JudgeEvent, newVerdict } from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { lastSequenceStartMs } from '../../../proto/power/judge/period.js';
import type { SentCommand } from '../../../proto/power/judge/sent-command.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { type TraceEvent, type TraceLock, UNNAMED_LOCK } from '../../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { type CommandAck, isPingUplink, type Source, type Uplink } from '../../../proto/wire/ping.js';
import { formatDate } from '../../../proto/wire/ping-json.js';
import { NO_MARKS } from '../../../proto/wire/uplink-life.js';
import { newDeviceState } from '../../locks/device-state.js';
import { decodeStored, entryTimeMs, isIntact, judgeEventOf } from '../../locks/log-entry.js';
import type { LogEntry } from '../../store/contract/log/log-entry.js';
import type { StoredUplink } from '../../store/contract/log/stored-uplink.js';
import type { Store } from '../../store/contract/store.js';
import { CredentialNumbers } from './credential-numbers.js';

/** How many log entries of a lock are read at once. */
const READ_BATCH_ENTRIES = 500;

export interface ExportRange {
  readonly devices: readonly { readonly id: number; readonly mac: Mac }[];
  /** Entries received from this time on, ms since the epoch. */
  readonly sinceMs: number;
  /** Entries received before this time, ms since the epoch. */
  readonly untilMs: number;
}

/** The lines of the trace, without line ends. */
export async function* exportTrace(
  store: Store,
  range: ExportRange,
  judge: typeof judgeInPlace = judgeInPlace,
): AsyncGenerator<string> {
  const marks = await store.marks.readAll();
  const numbers = new CredentialNumbers(await store.listCredentials());
  const walks = range.devices.map(({ id, mac }) => new LogWalk(store, id, mac, marks.get(id) ?? NO_MARKS));
  const header = new Map<Mac, TraceLock>();
  const next = new Deadlines<LogWalk>();
  for (const walk of walks) {
    header.set(walk.mac, await walk.skipTo(range.sinceMs, judge));
    if (walk.current !== undefined) next.set(walk, entryTimeMs(walk.current));
  }
  const leftOut = walks.reduce((sum, walk) => sum + walk.leftOut, 0);
  const note = leftOut === 0 ? '' : `${leftOut} damaged uplinks before the start of this trace were left out`;
  yield traceHeaderLine({ note, locks: header });
  let lastGatewayLine = '';
  for (let walk = next.take(range.untilMs); walk !== undefined; walk = next.take(range.untilMs)) {
    // A walk is in the queue only while it has a current entry.
    const entry = walk.current as LogEntry;
    const line = lineOf(walk.mac, entry, numbers);
    // The gateway's starts and stops are in every lock's log, but are written to the trace only once.
    const isGatewayEvent = entry.type === 'lock-event' && entry.event.event === 'gateway';
    if (!isGatewayEvent || line !== lastGatewayLine) yield line;
    if (isGatewayEvent) lastGatewayLine = line;
    await walk.step();
    if (walk.current !== undefined) next.set(walk, entryTimeMs(walk.current));
  }
}

/** Steps through one lock's log. */
class LogWalk {
  readonly mac: Mac;
  /** The current entry; undefined at the end. */
  current: LogEntry | undefined;
  /** The time of the current entry; `Deadlines` orders the walks by it. */
  dueMs = 0;
  /** Damaged uplinks that {@link skipTo} passed. */
  leftOut = 0;
  readonly #batches: AsyncIterator<LogEntry[]>;
  readonly #marks: readonly number[];
  /** The entries after the current one that were read, latest first: `step` takes the last. */
  #batch: LogEntry[] = [];

  constructor(store: Store, deviceId: number, mac: Mac, marks: readonly number[]) {
    this.mac = mac;
    this.#marks = marks;
    this.#batches = store.readLog(deviceId, READ_BATCH_ENTRIES)[Symbol.asyncIterator]();
  }

  /** Goes to the next entry. */
  async step(): Promise<void> {
    if (this.#batch.length === 0) {
      const { done, value } = await this.#batches.next();
      this.#batch = done === true ? [] : value.reverse();
    }
    this.current = this.#batch.pop();
  }

  /**
   * Goes to the first entry from `sinceMs` on and returns the lock's state at that point; an unknown state if the judge
   * fails.
   */
  async skipTo(sinceMs: number, judge: typeof judgeInPlace): Promise<TraceLock> {
    await this.step();
    const reflashed = this.#marks.length === 0 ? {} : { reflashed: this.#marks };
    if (this.current === undefined || entryTimeMs(this.current) >= sinceMs) return { ...UNNAMED_LOCK, ...reflashed };
    // The lock is new at its first entry, and the gateway listens for it from then on.
    const firstAtMs = entryTimeMs(this.current);
    const { belief } = newDeviceState(this.mac, firstAtMs, firstAtMs);
    let isJudged = true;
    while (this.current !== undefined && entryTimeMs(this.current) < sinceMs) {
      if (!isIntact(this.current)) this.leftOut += 1;
      else if (isJudged) isJudged = isWellJudged(judge, belief, judgeEventOf(this.current, this.#marks));
      await this.step();
    }
    return isJudged ? traceLockOf(belief, this.#marks) : { ...UNNAMED_LOCK, ...reflashed };
  }
}

/**
 * Judges an event, which updates the belief (what the judge concludes about the lock's state). Returns false if the
 * judge throws; the belief must not be used then.
 */
function isWellJudged(judge: typeof judgeInPlace, belief: Belief, event: JudgeEvent): boolean {
  try {
    judge(POWER_MODEL, belief, event, newVerdict());
    return true;
  } catch {
    return false;
  }
}

/** A lock in a trace's header: its state by this belief, and its reflash marks (times when its flash was wiped). */
export function traceLockOf(belief: Belief, marks: readonly number[]): TraceLock {
  const { power, highWindow, lockState, isConnected: connected } = belief;
  const lastPeriodMs = lastSequenceStartMs(POWER_MODEL, belief);
  return {
    ...{ power, highWindow, lockState, connected, lastPeriodMs },
    ...(marks.length > 0 && { reflashed: marks }),
    ...(areCommandsKnown(belief) && { commands: belief.commands.map(earlierCommand) }),
  };
}

/**
 * Whether the belief has all commands that a trace's header lists: those that were sent within the longest time in
 * which a lock may act on one.
 */
function areCommandsKnown({ commandsSinceMs, nowMs }: Belief): boolean {
  const { locateWithin, locateSlack } = POWER_MODEL.bounds;
  return commandsSinceMs <= nowMs - locateWithin - locateSlack;
}

function earlierCommand({ id, command, sentMs, expiresMs }: SentCommand): EarlierCommand {
  return { id, command, atMs: sentMs, expiresMs };
}

/** The line that replaces a damaged uplink; for the judge, only time passes. */
function leftOutLine(mac: Mac, { boot, sequence, receivedAtMs }: StoredUplink): string {
  const note = `left out: uplink ${boot}/${sequence} of ${formatMac(mac)}, which does not match its checksum`;
  return JSON.stringify({ at: formatDate(receivedAtMs), event: 'tick', note });
}

/** The line of a log entry. */
function lineOf(mac: Mac, entry: LogEntry, numbers: CredentialNumbers): string {
  if (entry.type === 'uplink' && !isIntact(entry)) return leftOutLine(mac, entry.uplink);
  if (entry.type === 'uplink') {
    const { credentialId, source, receivedAtMs: atMs, bytes } = entry.uplink;
    const credential = numbers.numberOf(credentialId, mac, source);
    return uplinkLine({ mac, atMs, source, credential, uplink: decodeStored(entry.uplink), bytes });
  }
  const { atMs, event } = entry;
  if (event.event === 'gateway') return traceEventLine({ atMs, ...event });
  if (event.event === 'command') return traceEventLine({ atMs, mac, ...event });
  return traceEventLine({ atMs, mac, source: 'lock', ...event });
}

/** A received uplink. */
interface Received {
  readonly mac: Mac;
  readonly atMs: number;
  readonly source: Source;
  /** The number of the uplink's credential in the trace; undefined if the source has only one credential. */
  readonly credential: number | undefined;
  readonly uplink: Uplink;
  readonly bytes: Uint8Array;
}

/** The line of an uplink, with its bytes. */
export function uplinkLine({ mac, atMs, source, credential, uplink, bytes }: Received): string {
  const from = credential === undefined ? { source } : { source, credential };
  const event: TraceEvent = isPingUplink(uplink)
    ? { event: 'ping', atMs, mac, ...from, uplink }
    : { event: 'ack', atMs, mac, ...from, uplink: uplink as Uplink<CommandAck> };
  return traceEventLine(event, bytes);
}
