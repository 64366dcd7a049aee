/**
 * Merges one lock's uplinks and connection events into one sequence, in the order of arrival. Each stored event has the
 * id of the newest uplink at its time, so all uplinks up to that id come before the event.
 */
import type { LockEvent, LogEntry } from '../../contract/log/log-entry.js';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';
import type { LogEventRow, LogReads } from './log-reads.js';

/** The log of one lock, read entry by entry. */
export class LogMerge {
  readonly #log: LogReads;
  readonly #deviceId: number;
  readonly #limit: number;
  /** What was read and not returned yet, latest first. */
  #uplinks: StoredUplink[] = [];
  #events: LogEventRow[] = [];
  #lastUplinkId: number;
  #lastEventId: number;

  /** @param start the uplink and the event after which to start; by default the beginning of the log */
  constructor(
    log: LogReads,
    deviceId: number,
    limit: number,
    start: { readonly afterUplinkId: number; readonly afterEventId: number } = { afterUplinkId: 0, afterEventId: 0 },
  ) {
    this.#log = log;
    this.#deviceId = deviceId;
    this.#limit = limit;
    this.#lastUplinkId = start.afterUplinkId;
    this.#lastEventId = start.afterEventId;
  }

  /** Returns the next entries, at most `limit`; none at the end of the log. */
  async next(): Promise<LogEntry[]> {
    const entries: LogEntry[] = [];
    const more = { uplinks: true, events: true };
    while (entries.length < this.#limit) {
      await this.#refill(more);
      const entry = this.#take();
      if (entry === undefined) break;
      entries.push(entry);
    }
    return entries;
  }

  /**
   * Reads more uplinks or events where a list is empty. Events are read first: then the uplinks before them, which were
   * stored earlier, are there when the uplinks are read.
   */
  async #refill(more: { uplinks: boolean; events: boolean }): Promise<void> {
    if (this.#events.length === 0 && more.events) {
      this.#events = await this.#log.readConnectionEvents(this.#deviceId, this.#lastEventId, this.#limit);
      more.events = this.#events.length === this.#limit;
      this.#lastEventId = this.#events.at(-1)?.id ?? this.#lastEventId;
      this.#events.reverse();
    }
    if (this.#uplinks.length === 0 && more.uplinks) {
      this.#uplinks = await this.#log.readOfDevice(this.#deviceId, this.#lastUplinkId, this.#limit);
      more.uplinks = this.#uplinks.length === this.#limit;
      this.#lastUplinkId = this.#uplinks.at(-1)?.id ?? this.#lastUplinkId;
      this.#uplinks.reverse();
    }
  }

  /** Removes and returns the next entry. Both lists are reversed, so the next entry of a list is its last. */
  #take(): LogEntry | undefined {
    const uplink = this.#uplinks.at(-1);
    const event = this.#events.at(-1);
    if (uplink !== undefined && (event === undefined || uplink.id <= event.after_uplink_id)) {
      this.#uplinks.pop();
      return { type: 'uplink', uplink };
    }
    if (event === undefined) return undefined;
    this.#events.pop();
    return { type: 'lock-event', atMs: event.at_ms, event: JSON.parse(event.event) as LockEvent };
  }
}
