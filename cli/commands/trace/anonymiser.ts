/**
 * `lockgate trace anonymise`: copies a trace so that the copy reveals no lock, place or day. The copy has the same
 * findings in the same lines.
 *
 * - Each MAC gets one replacement, used throughout the copy.
 * - All places are shifted by the same offset, if need be over a pole. Distances from south to north do not change, but
 *   those from west to east are greater nearer to the equator. A value that is no latitude or longitude on Earth is
 *   copied unchanged.
 * - All times are shifted by the same number of whole days, because daily pings and the hours in which a lock stays
 *   connected depend on the time of day. A time is copied unchanged if it is, or would then be, outside the years
 *   1970–9999. So is a time before 2020: such a lock's clock was not set, and rules ignore its times (protocol.md §3).
 * - Text that people typed (notes, details) is removed or becomes a meaningless word. Raw bytes are dropped, because
 *   they contain everything. An event of the simulated world becomes a tick (a line that only has a time), so that line
 *   numbers do not change.
 */

import { createHmac, randomBytes } from 'node:crypto';
import { Days } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import type { EarlierCommand } from '../../../proto/power/judge/belief.js';
import type { TraceEvent, TraceHeader } from '../../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { CommandAck, Ping, Position } from '../../../proto/wire/ping.js';
import { isDatable } from '../../../proto/wire/ping-json.js';
import { PLAUSIBLE_FROM_MS } from '../../../proto/wire/uplink-life.js';
import { LineSink } from '../../terminal/line-sink.js';
import { readTraceFile } from './trace-file.js';

/** The flags of `lockgate trace anonymise`. */
export interface AnonymiseFlags {
  readonly out?: string;
  readonly seed?: string;
}

/** Times are shifted forward only, so that none becomes earlier than 1970. */
const MAX_SHIFT_DAYS = 3650;

/** Places are shifted north or south by at most this. */
const MAX_LATITUDE_SHIFT_DEGREES = 20;

/** Uplinks (messages of locks) carry degrees as an integer: degrees × 10⁷. */
const UNITS_PER_DEGREE = 1e7;

/**
 * Writes the copy.
 *
 * @throws LockgateError `input-…` for a file that can't be read or written
 */
export async function anonymiseTrace(file: string, flags: AnonymiseFlags): Promise<void> {
  const anonymiser = new TraceAnonymiser(flags.seed ?? randomBytes(16).toString('hex'));
  const lines = new LineSink(flags.out);
  try {
    await readTraceFile(file, {
      header: (header) => lines.write(traceHeaderLine(anonymiser.header(header))),
      event: (event, line) => {
        const anonymised = anonymiser.event(event);
        if (!isDatable(anonymised.atMs))
          throw new LockgateError('input-time', `${file}:${line}: "at" can’t be shifted past the year 9999`);
        lines.write(traceEventLine(anonymised));
      },
      empty: () => lines.write(''),
    });
  } finally {
    lines.end();
  }
}

/** Anonymises headers and events, without reading or writing files. The same seed gives the same result. */
export class TraceAnonymiser {
  readonly #seed: string;
  readonly #timeShiftMs: number;
  readonly #latitudeShiftDegrees: number;
  readonly #longitudeShiftDegrees: number;
  readonly #replacements = new Map<Mac, Mac>();
  readonly #usedMacs = new Set<Mac>();

  constructor(seed: string) {
    this.#seed = seed;
    this.#timeShiftMs = Days(1 + (this.#seededNumber('days') % MAX_SHIFT_DAYS));
    // A factor from -1 to 1.
    this.#latitudeShiftDegrees = ((this.#seededNumber('latitude') % 2001) / 1000 - 1) * MAX_LATITUDE_SHIFT_DEGREES;
    // From 0° to 360°, in steps of a thousandth.
    this.#longitudeShiftDegrees = (this.#seededNumber('longitude') % 360_000) / 1000;
  }

  header(header: TraceHeader): TraceHeader {
    const locks = new Map(
      [...header.locks].map(([mac, lock]) => [
        this.mac(mac),
        {
          ...lock,
          // When the lock last began its daily pings; null if unknown.
          lastPeriodMs: lock.lastPeriodMs === null ? null : this.time(lock.lastPeriodMs),
          // When the lock's memory was wiped.
          ...(lock.reflashed !== undefined && { reflashed: lock.reflashed.map((timeMs) => this.time(timeMs)) }),
          ...(lock.commands !== undefined && { commands: lock.commands.map((each) => this.#earlierCommand(each)) }),
        },
      ]),
    );
    return { note: '', locks };
  }

  event(event: TraceEvent): TraceEvent {
    const atMs = event.atMs + this.#timeShiftMs;
    switch (event.event) {
      case 'tick':
      case 'gateway':
        return { ...event, atMs };
      case 'world':
        return { event: 'tick', atMs };
      case 'ping': {
        const { uplink } = event;
        const anonymised = { ...uplink, timeMs: this.time(uplink.timeMs), body: this.#ping(uplink.body) };
        return { ...event, atMs, mac: this.mac(event.mac), uplink: anonymised };
      }
      case 'ack': {
        const { uplink } = event;
        const anonymised = { ...uplink, timeMs: this.time(uplink.timeMs), body: this.#ack(uplink.body) };
        return { ...event, atMs, mac: this.mac(event.mac), uplink: anonymised };
      }
      case 'command': {
        const { expiresMs } = event;
        const expiry = expiresMs === undefined ? {} : { expiresMs: this.time(expiresMs) };
        return { ...event, atMs, mac: this.mac(event.mac), ...expiry };
      }
      case 'connect':
      case 'disconnect':
        return { ...event, atMs, mac: this.mac(event.mac) };
    }
  }

  /** The MAC's replacement: unique, and locally administered, so that it belongs to no vendor. */
  mac(mac: Mac): Mac {
    const known = this.#replacements.get(mac);
    if (known !== undefined) return known;
    let digest = this.#seededDigest(`mac ${mac}`);
    // Two MACs may have digests that start with the same six bytes.
    while (this.#usedMacs.has(macFromDigest(digest))) digest = this.#seededDigest(`again ${digest.toString('hex')}`);
    const replacement = macFromDigest(digest);
    this.#replacements.set(mac, replacement);
    this.#usedMacs.add(replacement);
    return replacement;
  }

  /**
   * A lock's time, shifted. It is unchanged if it is, or would then be, outside the range of dates, or if the lock's
   * clock was never set.
   */
  time(timeMs: number): number {
    if (timeMs < PLAUSIBLE_FROM_MS) return timeMs;
    return isDatable(timeMs) && isDatable(timeMs + this.#timeShiftMs) ? timeMs + this.#timeShiftMs : timeMs;
  }

  /** A command that was sent before the trace starts; the header lists it. */
  #earlierCommand({ id, command, atMs, expiresMs }: EarlierCommand): EarlierCommand {
    const expires = expiresMs === undefined ? {} : { expiresMs: this.time(expiresMs) };
    return { id, command, atMs: this.time(atMs), ...expires };
  }

  #ping(ping: Ping): Ping {
    if (ping.kind === 'close_connection' || ping.position === null) return ping;
    return { ...ping, position: this.#position(ping.position) };
  }

  #position(position: Position): Position {
    const { latitudeDegrees: latitude, longitudeDegrees: longitude, uncertaintyMeters } = position;
    const isLatitude = Math.abs(latitude) <= 90;
    const isLongitude = Math.abs(longitude) <= 180;
    const shiftedLatitude = latitude + this.#latitudeShiftDegrees;
    const shiftedLongitude = longitude + this.#longitudeShiftDegrees;
    // What is shifted beyond a pole is on the other side of Earth.
    const isBeyondPole = isLatitude && Math.abs(shiftedLatitude) > 90;
    return {
      latitudeDegrees: isLatitude ? roundToWirePrecision(reflectAtPole(shiftedLatitude)) : latitude,
      longitudeDegrees: isLongitude
        ? roundToWirePrecision(wrapLongitude(isBeyondPole ? shiftedLongitude + 180 : shiftedLongitude))
        : longitude,
      uncertaintyMeters,
    };
  }

  /**
   * Different details become different words. Two uplinks with the same numbers but different content are a finding,
   * which the copy must have too.
   */
  #ack(ack: CommandAck): CommandAck {
    if (ack.detail === '') return ack;
    // Four bytes are enough for the few details of a trace.
    return { ...ack, detail: this.#seededDigest(`detail ${ack.detail}`).toString('hex', 0, 4) };
  }

  /** A number of 32 bits that depends on the seed and the label. */
  #seededNumber(label: string): number {
    return this.#seededDigest(label).readUInt32BE(0);
  }

  #seededDigest(text: string): Buffer {
    return createHmac('sha256', this.#seed).update(text).digest();
  }
}

function macFromDigest(digest: Buffer): Mac {
  const bytes = Buffer.from(digest.subarray(0, 6));
  // Bit 1 set: locally administered. Bit 0 clear: not a group address.
  bytes[0] = ((bytes[0] as number) | 2) & 0xfe;
  return bytes.toString('hex').toUpperCase() as Mac;
}

/** A latitude beyond a pole continues down the other side of Earth, where the longitude differs by 180°. */
function reflectAtPole(latitude: number): number {
  if (latitude > 90) return 180 - latitude;
  return latitude < -90 ? -180 - latitude : latitude;
}

/** Takes whole turns off, so that the longitude is at most 180°. */
function wrapLongitude(longitude: number): number {
  return longitude > 180 ? longitude - 360 * Math.ceil((longitude - 180) / 360) : longitude;
}

function roundToWirePrecision(degrees: number): number {
  return Math.round(degrees * UNITS_PER_DEGREE) / UNITS_PER_DEGREE;
}
