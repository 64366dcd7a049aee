/**
 * Merges one lock's uplinks (its messages) and connection events into one sequence, in the order of arrival. Each
 * stored event has the id of the newest uplink at its time, so all uplinks up to that id come before the event. An
 * uplink is not visible until its commit is answered. Until then an event after that uplink is left out too, since the
 * event would appear before the uplink.
 */

import type { LockEvent, LogEntry } from '../../contract/log/log-entry.js';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';
import type { LockUplinks } from './lock-uplinks.js';
import type { LogEventRow, LogReader } from './log-reader.js';

/** A part of a lock's log. */
export interface MergedPart {
  readonly entries: readonly LogEntry[];
  /** How many entries the part has with those that were left out. */
  readonly examined: number;
}

/** The log of one lock, read entry by entry. */
export class LogMerge {
  readonly #log: LogReader;
  readonly #lockUplinks: LockUplinks;
  readonly #deviceId: number;
  readonly #limit: number;
  /** Uplinks (of those that are left out, the id) and events that were read and not returned yet, latest first. */
  #uplinks: (StoredUplink | number)[] = [];
  #events: LogEventRow[] = [];
  /** The last ones that were read. */
  #lastUplinkId: number;
  #lastEventId: number;
  /** The last ones that were returned. */
  #takenUplinkId: number;
  #takenEventId: number;
  /** Whether another read may find more; false once a read in this call of {@link next} reached the end. */
  #hasMoreUplinks = true;
  #hasMoreEvents = true;

  /** @param start the uplink and the event after which to start; by default the beginning of the log */
  constructor(
    log: LogReader,
    lockUplinks: LockUplinks,
    deviceId: number,
    limit: number,
    start?: { readonly afterUplinkId: number; readonly afterEventId: number },
  ) {
    this.#log = log;
    this.#lockUplinks = lockUplinks;
    this.#deviceId = deviceId;
    this.#limit = limit;
    this.#lastUplinkId = start?.afterUplinkId ?? 0;
    this.#lastEventId = start?.afterEventId ?? 0;
    this.#takenUplinkId = this.#lastUplinkId;
    this.#takenEventId = this.#lastEventId;
  }

  /** After which uplink and event the next entry comes. */
  get place(): { readonly afterUplinkId: number; readonly afterEventId: number } {
    return { afterUplinkId: this.#takenUplinkId, afterEventId: this.#takenEventId };
  }

  /** Returns the next entries, at most `limit`; none at the end of the log. */
  next(): LogEntry[] {
    return this.#merge((afterId) => this.#lockUplinks.read(this.#deviceId, afterId, this.#limit)).entries;
  }

  /** Returns the next entries like {@link next}; uplinks that repeat the state of the one before may be left out. */
  nextChanges(): MergedPart {
    return this.#merge((afterId) => this.#lockUplinks.readChanges(this.#deviceId, afterId, this.#limit));
  }

  #merge(readUplinks: (afterId: number) => (StoredUplink | number)[]): { entries: LogEntry[]; examined: number } {
    const entries: LogEntry[] = [];
    this.#hasMoreUplinks = true;
    this.#hasMoreEvents = true;
    let examined = 0;
    for (; examined < this.#limit; examined += 1) {
      this.#refill(readUplinks);
      const entry = this.#take();
      if (entry === undefined) break;
      if (entry !== 'left-out') entries.push(entry);
    }
    return { entries, examined };
  }

  /** Reads more uplinks or events where a list is empty. None become visible while {@link next} runs. */
  #refill(readUplinks: (afterId: number) => (StoredUplink | number)[]): void {
    if (this.#uplinks.length === 0 && this.#hasMoreUplinks) {
      this.#uplinks = readUplinks(this.#lastUplinkId);
      this.#hasMoreUplinks = this.#uplinks.length === this.#limit;
      this.#lastUplinkId = idOf(this.#uplinks.at(-1)) ?? this.#lastUplinkId;
      this.#uplinks.reverse();
    }
    if (this.#events.length === 0 && this.#hasMoreEvents) {
      this.#events = this.#log.readConnectionEvents(
        this.#deviceId,
        this.#lastEventId,
        this.#lockUplinks.lastId,
        this.#limit,
      );
      this.#hasMoreEvents = this.#events.length === this.#limit;
      this.#lastEventId = this.#events.at(-1)?.id ?? this.#lastEventId;
      this.#events.reverse();
    }
  }

  /** Removes and returns the next entry. Both lists are reversed, so the next entry of a list is its last. */
  #take(): LogEntry | 'left-out' | undefined {
    const uplink = this.#uplinks.at(-1);
    const uplinkId = idOf(uplink);
    const event = this.#events.at(-1);
    if (uplinkId !== undefined && (event === undefined || uplinkId <= event.after_uplink_id)) {
      this.#uplinks.pop();
      this.#takenUplinkId = uplinkId;
      return typeof uplink === 'object' ? { type: 'uplink', uplink } : 'left-out';
    }
    if (event === undefined) return undefined;
    this.#events.pop();
    this.#takenEventId = event.id;
    return { type: 'lock-event', atMs: event.at_ms, event: JSON.parse(event.event) as LockEvent };
  }
}

function idOf(uplink: StoredUplink | number | undefined): number | undefined {
  return typeof uplink === 'object' ? uplink.id : uplink;
}
