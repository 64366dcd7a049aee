/**
 * A virtual run as a trace (protocol.md §4): a header with how each lock begins, so that `trace check` is right from
 * the first line; what a gateway would have seen; where it is asked for, what truly happened around the locks; and a
 * tick at the end, so that what was due by then counts.
 */
import { formatMac, type Mac } from '../proto/mac.js';
import { isPingUplink, type Uplink } from '../proto/ping.js';
import { toDate } from '../proto/ping-json.js';
import type { TraceEvent, TraceLock } from '../proto/trace.js';
import { traceEventLine, traceHeaderLine } from '../proto/trace-writer.js';
import type { DiaryEntry } from './diary.js';
import type { LinkEnd } from './link-memory.js';
import { type VirtualOptions, VirtualRun } from './virtual.js';
import { worldMembers } from './world-members.js';

export interface VirtualTraceOptions extends Omit<VirtualOptions, 'sink' | 'diary'> {
  /** For people; the same options must give the same note. */
  readonly note: string;
  /** Whether to tell what truly happened, which the judge never reads. */
  readonly world: boolean;
}

/** Tells itself as it goes, one line at a time, in order. */
export class VirtualTrace {
  readonly #run: VirtualRun;
  readonly #write: ((line: string) => void) | null;
  connections = 0;
  uplinks = 0;

  /** @param write takes a line without its end of line; null where nobody wants them and only the counts do */
  constructor(options: VirtualTraceOptions, write: ((line: string) => void) | null) {
    this.#write = write;
    this.#run = new VirtualRun({
      ...options,
      sink: {
        connect: (mac, atMs) => this.#connect(mac, atMs),
        uplink: (mac, atMs, uplink) => this.#uplink(mac, atMs, uplink),
        command: (mac, atMs, { id, command }) => this.#event({ event: 'command', atMs, mac, id, command }),
        disconnect: (mac, atMs, cause) => this.#disconnect(mac, atMs, cause),
      },
      ...(options.world && write !== null && { diary: (mac, _atMs, entry) => this.#world(mac, entry) }),
    });
    const locks = new Map(this.#run.locks.map(({ mac, state }): [Mac, TraceLock] => [mac, firstState(state)]));
    write?.(traceHeaderLine({ note: options.note, locks }));
    this.#event({ event: 'gateway', atMs: this.nowMs, state: 'start' });
  }

  get nowMs(): number {
    return this.#run.nowMs;
  }

  get endMs(): number {
    return this.#run.endMs;
  }

  /** Goes on to `untilMs`; at the end of the run it writes the last line. */
  advance(untilMs: number): void {
    this.#run.advance(untilMs);
    if (this.nowMs >= this.endMs) this.#event({ event: 'tick', atMs: this.endMs });
  }

  #event(event: TraceEvent): void {
    if (this.#write !== null) this.#write(traceEventLine(event));
  }

  #connect(mac: Mac, atMs: number): void {
    this.connections += 1;
    this.#event({ event: 'connect', atMs, mac, source: 'lock' });
  }

  #uplink(mac: Mac, atMs: number, uplink: Uplink): void {
    this.uplinks += 1;
    if (isPingUplink(uplink)) this.#event({ event: 'ping', atMs, mac, source: 'lock', uplink });
    else if (uplink.body.kind === 'ack')
      this.#event({ event: 'ack', atMs, mac, source: 'lock', uplink: { ...uplink, body: uplink.body } });
  }

  #disconnect(mac: Mac, atMs: number, cause: LinkEnd): void {
    this.#event({ event: 'disconnect', atMs, mac, source: 'lock', cause });
  }

  #world(mac: Mac, entry: DiaryEntry): void {
    const happened = worldMembers(entry);
    if (happened === undefined) return;
    const atMs = this.nowMs;
    const members = { at: toDate(atMs), mac: formatMac(mac), event: 'world', ...happened };
    this.#event({ event: 'world', atMs, mac, members });
  }
}

function firstState({ power, lockState }: VirtualRun['locks'][number]['state']): TraceLock {
  return { power, highWindow: null, lockState, connected: false, lastPeriodMs: null };
}
