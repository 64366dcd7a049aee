/**
 * One lock's uplinks and connection events as one sequence, in the order of arrival. Each event has the newest uplink
 * at its time: all up to that came before it. An event after an uplink that does not show yet, since its commit is not
 * answered, does not show either: it would come out before that uplink.
 */

import type { LockEvent, LogEntry, StoredUplink } from '../../contract/store.js';
import type { LogEventRow, LogReader } from './log-reader.js';
import type { UplinkLookup } from './uplink-lookup.js';

export class LogMerge {
  readonly #log: LogReader;
  readonly #lookup: UplinkLookup;
  readonly #deviceId: number;
  readonly #limit: number;
  #uplinks: StoredUplink[] = [];
  #events: LogEventRow[] = [];
  #lastUplinkId = 0;
  #lastEventId = 0;

  /** @param start the uplink and the event after which to start; left out, from the beginning */
  constructor(
    log: LogReader,
    lookup: UplinkLookup,
    deviceId: number,
    limit: number,
    start?: { readonly afterUplinkId: number; readonly afterEventId: number },
  ) {
    this.#log = log;
    this.#lookup = lookup;
    this.#deviceId = deviceId;
    this.#limit = limit;
    this.#lastUplinkId = start?.afterUplinkId ?? 0;
    this.#lastEventId = start?.afterEventId ?? 0;
  }

  /** The next entries, at most `limit`; none where the log ends. */
  next(): LogEntry[] {
    const entries: LogEntry[] = [];
    while (entries.length < this.#limit) {
      this.#refill();
      const entry = this.#take();
      if (entry === undefined) break;
      entries.push(entry);
    }
    return entries;
  }

  #refill(): void {
    if (this.#uplinks.length === 0) {
      this.#uplinks = this.#lookup.ofDevice(this.#deviceId, this.#lastUplinkId, this.#limit);
      this.#lastUplinkId = this.#uplinks.at(-1)?.id ?? this.#lastUplinkId;
      this.#uplinks.reverse();
    }
    if (this.#events.length === 0) {
      this.#events = this.#log.logEvents(this.#deviceId, this.#lastEventId, this.#lookup.memtable.lastId, this.#limit);
      this.#lastEventId = this.#events.at(-1)?.id ?? this.#lastEventId;
      this.#events.reverse();
    }
  }

  /** Both lists are reversed, so that the next of each is the last. */
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
