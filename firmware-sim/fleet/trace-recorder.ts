/** Writes what a gateway sees of simulated locks as a trace (protocol.md §4), a line as each thing happens. */

import type { StepState } from '../../proto/power/step/state.js';
import type { TraceEvent, TraceLock } from '../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../proto/trace/writer.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { type Downlink, isPingUplink, type Uplink } from '../../proto/wire/ping.js';
import { toDate } from '../../proto/wire/ping-json.js';
import type { LinkEnd } from '../link/memory-link.js';
import type { DiaryEntry } from '../lock/diary.js';
import { worldMembers } from '../world/world-members.js';
import type { VirtualSink } from './virtual.js';

/** See the head of this file. */
export class TraceRecorder implements VirtualSink {
  connections = 0;
  uplinks = 0;
  readonly #write: ((line: string) => void) | null;

  /** @param write takes a line without its end of line; null where only the counts are wanted */
  constructor(write: ((line: string) => void) | null) {
    this.#write = write;
  }

  /** The header, with how each lock is found, and that listening began. */
  begin(note: string, atMs: number, locks: ReadonlyMap<Mac, TraceLock>): void {
    this.#write?.(traceHeaderLine({ note, locks }));
    this.event({ event: 'gateway', atMs, state: 'start' });
  }

  connect(mac: Mac, atMs: number): void {
    this.connections += 1;
    this.event({ event: 'connect', atMs, mac, source: 'lock' });
  }

  uplink(mac: Mac, atMs: number, uplink: Uplink): void {
    this.uplinks += 1;
    if (isPingUplink(uplink)) this.event({ event: 'ping', atMs, mac, source: 'lock', uplink });
    else if (uplink.body.kind === 'ack')
      this.event({ event: 'ack', atMs, mac, source: 'lock', uplink: { ...uplink, body: uplink.body } });
  }

  command(mac: Mac, atMs: number, { id, command, expiresMs }: Downlink): void {
    this.event({ event: 'command', atMs, mac, id, command, expiresMs });
  }

  disconnect(mac: Mac, atMs: number, cause: LinkEnd): void {
    this.event({ event: 'disconnect', atMs, mac, source: 'lock', cause });
  }

  /** What truly happened, where the entry of a lock's diary tells of it. */
  world(mac: Mac, atMs: number, entry: DiaryEntry): void {
    const happened = worldMembers(entry);
    if (happened === undefined) return;
    const members = { at: toDate(atMs), mac: formatMac(mac), event: 'world', ...happened };
    this.event({ event: 'world', atMs, mac, members });
  }

  tick(atMs: number): void {
    this.event({ event: 'tick', atMs });
  }

  event(event: TraceEvent): void {
    if (this.#write !== null) this.#write(traceEventLine(event));
  }
}

/** A new lock as the header of a trace has it. */
export function asNew({ power, lockState }: Pick<StepState, 'power' | 'lockState'>): TraceLock {
  return { power, highWindow: null, lockState, connected: false, lastPeriodMs: null };
}
