/**
 * The fast path for writing trace lines. It writes the lines of a lock's pings, connects and disconnects as bytes, with
 * the same bytes as writer.ts, which writes all other lines here too. Generated code writes the members of the ping
 * itself (gen/ping-line-writer.ts). Pure: writes no file.
 */
import { writePingLine } from '../gen/ping-line-writer.js';
import type { DisconnectCause } from '../power/judge/event.js';
import type { Mac } from '../wire/mac.js';
import type { PingUplink, PowerSettings } from '../wire/ping.js';
import { isDatable, powerToJson } from '../wire/ping-json.js';
import { LineBuilder, type LinePart, linePart } from './line-builder.js';
import type { TraceEvent } from './trace.js';
import { traceEventLine } from './writer.js';

// The bytes between the values, in the order of ping-json.ts: each `TO_…` is what comes before a value.
const TO_AT = linePart('{"at":"');
const TO_MAC = linePart('","mac":"');
const TO_PING = linePart('","event":"ping","source":"lock","ping":{"ping_type":');
const TO_BOOT = linePart(',"boot":');
const TO_SEQUENCE = linePart(',"sequence":');
const TO_DATE = linePart(',"date":"');
const TO_TIME = linePart(',"time_ms":');
const TO_KEPT = linePart(',"kept":');
const TO_DROPPED = linePart(',"dropped":');
const QUOTE = linePart('"');
const END_OF_PING = linePart('}}');
const END_OF_CONNECT = linePart('","event":"connect","source":"lock"}');
const DISCONNECT_ENDS: Readonly<Record<DisconnectCause, LinePart>> = {
  closed: disconnectEnd('closed'),
  dropped: disconnectEnd('dropped'),
  keepalive: disconnectEnd('keepalive'),
  takeover: disconnectEnd('takeover'),
  gateway: disconnectEnd('gateway'),
};

function disconnectEnd(cause: DisconnectCause): LinePart {
  return linePart(`","event":"disconnect","source":"lock","cause":"${cause}"}`);
}

/** See the top of this file. */
export class TraceLines {
  readonly builder: LineBuilder;

  /** @param capacity the expected number of bytes of the lines */
  constructor(capacity?: number) {
    this.builder = new LineBuilder(capacity);
  }

  /** A line that is complete except for its line break. */
  line(line: string): void {
    this.builder.raw(line);
    this.builder.endLine();
  }

  /** Any event. */
  event(event: TraceEvent): void {
    this.line(traceEventLine(event));
  }

  connect(mac: Mac, atMs: number): void {
    this.#start(mac, atMs);
    this.builder.part(END_OF_CONNECT);
    this.builder.endLine();
  }

  disconnect(mac: Mac, atMs: number, cause: DisconnectCause): void {
    this.#start(mac, atMs);
    this.builder.part(DISCONNECT_ENDS[cause]);
    this.builder.endLine();
  }

  ping(mac: Mac, atMs: number, uplink: PingUplink): void {
    const { builder } = this;
    this.#start(mac, atMs);
    builder.part(TO_PING);
    writePingLine(builder, uplink.body);
    builder.part(TO_BOOT);
    builder.number(uplink.boot);
    builder.part(TO_SEQUENCE);
    builder.number(uplink.sequence);
    this.#time(uplink.timeMs);
    builder.part(powerPart(uplink.power));
    if (uplink.kept !== 0) {
      builder.part(TO_KEPT);
      builder.number(uplink.kept);
    }
    if (uplink.dropped !== 0) {
      builder.part(TO_DROPPED);
      builder.number(uplink.dropped);
    }
    builder.part(END_OF_PING);
    builder.endLine();
  }

  #start(mac: Mac, atMs: number): void {
    const { builder } = this;
    builder.part(TO_AT);
    builder.date(atMs);
    builder.part(TO_MAC);
    builder.mac(mac);
  }

  /** When the ping was made: a date, or a number if it is outside the years 1970–9999, which a date can't express. */
  #time(timeMs: number): void {
    const { builder } = this;
    if (isDatable(timeMs)) {
      builder.part(TO_DATE);
      builder.date(timeMs);
      builder.part(QUOTE);
    } else {
      builder.part(TO_TIME);
      builder.number(timeMs);
    }
  }
}

/** The parts of the 16 possible settings, each made when it is first written. */
const POWER_PARTS: (LinePart | undefined)[] = [];

function powerPart(power: PowerSettings): LinePart {
  const { mode, rideTracking, airplane, recovery } = power;
  const key = (mode === 'HIGH' ? 8 : 0) + (rideTracking ? 4 : 0) + (airplane ? 2 : 0) + (recovery ? 1 : 0);
  POWER_PARTS[key] ??= linePart(`,"power":${JSON.stringify(powerToJson(power))}`);
  return POWER_PARTS[key];
}
