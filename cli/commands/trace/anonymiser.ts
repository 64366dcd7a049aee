/**
 * `lockgate trace anonymise`: a copy of a trace that reveals no lock, place or day, with the same findings in the same
 * lines.
 *
 * - A MAC becomes another one, consistently.
 * - All places are shifted by the same offset, so that a ride keeps its shape. What is not a latitude or longitude on
 *   Earth stays.
 * - All times are shifted by the same number of whole days: windows and daily pings depend on the time of day. A time
 *   outside the years 1970–9999, or that would leave them, stays, and so does one before 2020: the lock's clock was not
 *   set then, and rules ignore such times (protocol.md §3).
 * - Text that people typed (notes, details) is removed or becomes a meaningless word. Raw bytes are dropped, because
 *   they contain everything. A world event becomes a tick, so that line numbers stay.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { Days } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import type { TraceEvent, TraceHeader } from '../../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { CommandAck, Ping, Position } from '../../../proto/wire/ping.js';
import { isDatable } from '../../../proto/wire/ping-json.js';
import { PLAUSIBLE_FROM_MS } from '../../../proto/wire/uplink-life.js';
import { LineSink } from '../../terminal/line-sink.js';
import { readTraceFile } from './trace-file.js';

export interface AnonymiseFlags {
  readonly out?: string;
  readonly seed?: string;
}

/** The most days by which times are shifted. Only forward, so that no time becomes earlier than 1970. */
const SHIFT_DAYS_MOST = 3650;

/** The most degrees by which places are shifted north or south. */
const SHIFT_LATITUDE_MOST = 20;

/** The wire carries degrees × 10⁷. */
const DEGREES_E7 = 1e7;

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
        const other = anonymiser.event(event);
        if (!isDatable(other.atMs))
          throw new LockgateError('input-time', `${file}:${line}: at can’t be shifted past the year 9999`);
        lines.write(traceEventLine(other));
      },
      empty: () => lines.write(''),
    });
  } finally {
    lines.end();
  }
}

/** Anonymises headers and events, deterministically for a seed. Its only state is the MACs already assigned. */
export class TraceAnonymiser {
  readonly #seed: string;
  readonly #shiftMs: number;
  readonly #latitudeShift: number;
  readonly #longitudeShift: number;
  readonly #macs = new Map<Mac, Mac>();
  readonly #taken = new Set<Mac>();

  constructor(seed: string) {
    this.#seed = seed;
    this.#shiftMs = Days(1 + (this.#number('days') % SHIFT_DAYS_MOST));
    this.#latitudeShift = ((this.#number('latitude') % 2001) / 1000 - 1) * SHIFT_LATITUDE_MOST;
    this.#longitudeShift = (this.#number('longitude') % 360_000) / 1000;
  }

  header(header: TraceHeader): TraceHeader {
    const locks = new Map(
      [...header.locks].map(([mac, lock]) => [
        this.mac(mac),
        {
          ...lock,
          lastPeriodMs: lock.lastPeriodMs === null ? null : this.time(lock.lastPeriodMs),
          ...(lock.reflashed !== undefined && { reflashed: lock.reflashed.map((markMs) => this.time(markMs)) }),
        },
      ]),
    );
    return { note: '', locks };
  }

  event(event: TraceEvent): TraceEvent {
    const atMs = event.atMs + this.#shiftMs;
    switch (event.event) {
      case 'tick':
      case 'gateway':
        return { ...event, atMs };
      case 'world':
        return { event: 'tick', atMs };
      case 'ping': {
        const { uplink } = event;
        const other = { ...uplink, timeMs: this.time(uplink.timeMs), body: this.#ping(uplink.body) };
        return { ...event, atMs, mac: this.mac(event.mac), uplink: other };
      }
      case 'ack': {
        const { uplink } = event;
        const other = { ...uplink, timeMs: this.time(uplink.timeMs), body: this.#ack(uplink.body) };
        return { ...event, atMs, mac: this.mac(event.mac), uplink: other };
      }
      case 'command': {
        const { expiresMs } = event;
        const expiry = expiresMs === undefined ? {} : { expiresMs: this.time(expiresMs) };
        return { ...event, atMs, mac: this.mac(event.mac), ...expiry };
      }
      default:
        return { ...event, atMs, mac: this.mac(event.mac) };
    }
  }

  /** Another MAC, locally administered (assigned by no vendor), and unique. */
  mac(mac: Mac): Mac {
    const known = this.#macs.get(mac);
    if (known !== undefined) return known;
    let other = this.#digest(`mac ${mac}`);
    while (this.#taken.has(macOf(other))) other = this.#digest(`again ${other.toString('hex')}`);
    const made = macOf(other);
    this.#macs.set(mac, made);
    this.#taken.add(made);
    return made;
  }

  /**
   * A lock's time, shifted by days unless it is, or would be, outside the range of dates, or comes from a clock that
   * was never set.
   */
  time(timeMs: number): number {
    if (timeMs < PLAUSIBLE_FROM_MS) return timeMs;
    return isDatable(timeMs) && isDatable(timeMs + this.#shiftMs) ? timeMs + this.#shiftMs : timeMs;
  }

  #ping(ping: Ping): Ping {
    if (ping.kind === 'close_connection' || ping.position === null) return ping;
    return { ...ping, position: this.#position(ping.position) };
  }

  #position(position: Position): Position {
    const { latitudeDegrees: latitude, longitudeDegrees: longitude, uncertaintyMeters } = position;
    const isLatitude = Math.abs(latitude) <= 90;
    const isLongitude = Math.abs(longitude) <= 180;
    return {
      latitudeDegrees: isLatitude ? rounded(reflected(latitude + this.#latitudeShift)) : latitude,
      longitudeDegrees: isLongitude ? rounded(wrapped(longitude + this.#longitudeShift)) : longitude,
      uncertaintyMeters,
    };
  }

  /** Different details stay different: an uplink key that is used twice with different content is a finding. */
  #ack(ack: CommandAck): CommandAck {
    if (ack.detail === '') return ack;
    return { ...ack, detail: this.#digest(`detail ${ack.detail}`).toString('hex', 0, 4) };
  }

  #number(what: string): number {
    return this.#digest(what).readUInt32BE(0);
  }

  #digest(what: string): Buffer {
    return createHmac('sha256', this.#seed).update(what).digest();
  }
}

function macOf(digest: Buffer): Mac {
  const bytes = Buffer.from(digest.subarray(0, 6));
  // The second-lowest bit marks it as locally administered, the lowest as not a group address.
  bytes[0] = ((bytes[0] as number) | 2) & 0xfe;
  return bytes.toString('hex').toUpperCase() as Mac;
}

/** Crossing a pole leads down the other side. */
function reflected(latitude: number): number {
  if (latitude > 90) return 180 - latitude;
  return latitude < -90 ? -180 - latitude : latitude;
}

function wrapped(longitude: number): number {
  return longitude > 180 ? longitude - 360 : longitude;
}

function rounded(degrees: number): number {
  return Math.round(degrees * DEGREES_E7) / DEGREES_E7;
}
