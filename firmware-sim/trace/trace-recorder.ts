/**
 * Makes the lines of a trace (protocol.md §4) from a simulated run: the events that a gateway would see of the locks,
 * and `world` events, which record what truly happened. Does no I/O.
 */
import type { StepState } from '../../proto/power/step/state.js';
import type { TraceEvent, TraceLock } from '../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../proto/trace/writer.js';
import type { Mac } from '../../proto/wire/mac.js';
import { type Downlink, isPingUplink, type Uplink } from '../../proto/wire/ping.js';
import type { VirtualSink } from '../fleet/virtual-sink.js';
import type { DisconnectReason } from '../link/memory-link.js';
import type { DiaryEntry } from '../lock/diary.js';
import { worldMembers } from './ground-truth.js';

/** See the top of this file. Also counts connections and uplinks. */
export class TraceRecorder implements VirtualSink {
  connections = 0;
  uplinks = 0;
  readonly #write: ((line: string) => void) | null;
  readonly #onEvent: ((event: TraceEvent) => void) | undefined;

  /**
   * @param write is called with each line, without its line break; null if the lines are not wanted
   * @param onEvent is called with each event before its line is written
   */
  constructor(write: ((line: string) => void) | null, onEvent?: (event: TraceEvent) => void) {
    this.#write = write;
    this.#onEvent = onEvent;
  }

  /** Writes the header with each lock's first state, and the event that the gateway starts. */
  start(note: string, atMs: number, locks: ReadonlyMap<Mac, TraceLock>): void {
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
    // The spread tells the compiler that this uplink's body is an acknowledgement.
    else if (uplink.body.kind === 'ack')
      this.event({ event: 'ack', atMs, mac, source: 'lock', uplink: { ...uplink, body: uplink.body } });
  }

  command(mac: Mac, atMs: number, { id, command, expiresMs }: Downlink): void {
    this.event({ event: 'command', atMs, mac, id, command, expiresMs });
  }

  disconnect(mac: Mac, atMs: number, cause: DisconnectReason): void {
    this.event({ event: 'disconnect', atMs, mac, source: 'lock', cause });
  }

  /** Writes a `world` event if the entry of the lock's diary, its own log, is about the world. */
  world(mac: Mac, atMs: number, entry: DiaryEntry): void {
    const members = worldMembers(mac, atMs, entry);
    if (members !== undefined) this.event({ event: 'world', atMs, mac, members });
  }

  /** Writes an event that only states the time, such as the end of the run. */
  tick(atMs: number): void {
    this.event({ event: 'tick', atMs });
  }

  event(event: TraceEvent): void {
    this.#onEvent?.(event);
    if (this.#write !== null) this.#write(traceEventLine(event));
  }
}

/**
 * A new lock's entry in the header of a trace: it has reported no high window (the daily hours in which mode HIGH stays
 * connected) and made no daily ping (`lastPeriodMs`).
 */
export function headerLockOf({ power, lockState }: Pick<StepState, 'power' | 'lockState'>): TraceLock {
  return { power, highWindow: null, lockState, connected: false, lastPeriodMs: null };
}
