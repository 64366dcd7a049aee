/**
 * What `lockgate trace anonymise` does: a copy of a trace that names no lock, no place and no day, in which the same is
 * found in the same lines.
 *
 * - A MAC becomes another one, the same wherever it stands.
 * - All places move by the same way, so that a ride keeps its shape. What is no latitude or longitude on Earth stays.
 * - All times move by the same number of whole days: windows and daily pings rest on the time of the day. A time that
 *   is outside the years 1970–9999, or would leave them, stays as it is, and so does one before 2020: a lock's clock
 *   was not set then, and rules leave such times out (protocol.md §3).
 * - What people typed (notes, details) is left out or becomes a meaningless word; bytes are dropped, because they hold
 *   it all; a world event becomes a tick, so that lines keep their numbers.
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

/** The most days that times move. Only forward: nothing then leaves 1970 backwards. */
const SHIFT_DAYS_MOST = 3650;

/** The most degrees that places move to the north or south. */
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
        if (!isDatable(other.atMs)) throw new LockgateError('input-time', `${file}:${line}: at can’t move past 9999`);
        lines.write(traceEventLine(other));
      },
      empty: () => lines.write(''),
    });
  } finally {
    lines.end();
  }
}

/** Makes headers and events anonymous: the same seed makes the same of the same. Pure but for what it remembers. */
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

  /** Another MAC, of those that no maker owns (locally administered), and never one for two. */
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

  /** A lock's time, moved by days unless it is, or would be, no date, or is of a clock that was never set. */
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

  /** Two different details stay different: a name that is used twice with other content is a finding. */
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
  // The second-lowest bit says that nobody assigned it, the lowest that it is one device's.
  bytes[0] = ((bytes[0] as number) | 2) & 0xfe;
  return bytes.toString('hex').toUpperCase() as Mac;
}

/** Over a pole one comes down on the other side. */
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
