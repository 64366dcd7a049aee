/**
 * Makes the lines of a virtual run's trace (a simulation without a gateway) as bytes: the same lines as
 * trace-recorder.ts, without an object or a string for each line. Also counts connections and uplinks. Does no I/O.
 */
import { TraceLines } from '../../proto/trace/line-writer.js';
import type { TraceLock } from '../../proto/trace/trace.js';
import { traceHeaderLine } from '../../proto/trace/writer.js';
import type { Mac } from '../../proto/wire/mac.js';
import { type Downlink, isPingUplink, type Uplink } from '../../proto/wire/ping.js';
import type { VirtualSink } from '../fleet/virtual-sink.js';
import type { DisconnectReason } from '../link/memory-link.js';
import type { DiaryEntry } from '../lock/diary.js';
import { worldMembers } from './ground-truth.js';

/** See the top of this file. */
export class LineRecorder implements VirtualSink {
  connections = 0;
  uplinks = 0;
  /** The lines; null if they are not wanted. */
  readonly lines: TraceLines | null;

  /** @param capacity the expected number of bytes of the lines; null if lines are not wanted */
  constructor(capacity: number | null) {
    this.lines = capacity === null ? null : new TraceLines(capacity);
  }

  /** Writes the header with each lock's first state, and the event that the gateway starts. */
  start(note: string, atMs: number, locks: ReadonlyMap<Mac, TraceLock>): void {
    this.lines?.line(traceHeaderLine({ note, locks }));
    this.lines?.event({ event: 'gateway', atMs, state: 'start' });
  }

  connect(mac: Mac, atMs: number): void {
    this.connections += 1;
    this.lines?.connect(mac, atMs);
  }

  uplink(mac: Mac, atMs: number, uplink: Uplink): void {
    this.uplinks += 1;
    if (this.lines === null) return;
    if (isPingUplink(uplink)) this.lines.ping(mac, atMs, uplink);
    // The spread tells the compiler that this uplink's body is an acknowledgement.
    else if (uplink.body.kind === 'ack')
      this.lines.event({ event: 'ack', atMs, mac, source: 'lock', uplink: { ...uplink, body: uplink.body } });
  }

  command(mac: Mac, atMs: number, { id, command, expiresMs }: Downlink): void {
    this.lines?.event({ event: 'command', atMs, mac, id, command, expiresMs });
  }

  disconnect(mac: Mac, atMs: number, cause: DisconnectReason): void {
    this.lines?.disconnect(mac, atMs, cause);
  }

  /** Writes a `world` event if the entry of the lock's diary, its own log, is about the world. */
  world(mac: Mac, atMs: number, entry: DiaryEntry): void {
    const members = worldMembers(mac, atMs, entry);
    if (members !== undefined) this.lines?.event({ event: 'world', atMs, mac, members });
  }

  /** Writes an event that only states the time, such as the end of the run. */
  tick(atMs: number): void {
    this.lines?.event({ event: 'tick', atMs });
  }
}
