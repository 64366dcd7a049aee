/** A lock's GPS pings as a line with times: as a GeoJSON feature (RFC 7946) or as GPX 1.1. Does no I/O. */
import { Type } from 'typebox';
import { formatMac } from '../../../../../proto/wire/mac.js';
import { formatDate, isDatable } from '../../../../../proto/wire/ping-json.js';
import type { Device } from '../../../../store/contract/devices/device.js';
import type { ReadPing } from './ping-read.js';

export const TRACK_FORMATS = ['geojson', 'gpx'] as const;
export type TrackFormat = (typeof TRACK_FORMATS)[number];

/** Maximum number of points. The oldest points of a longer track are left out. */
const MAX_POINTS = 10_000;

/** Digits after the point: pings have positions in 10⁻⁷ degrees. */
const POSITION_DIGITS = 7;

interface Point {
  readonly timeMs: number;
  readonly latitude: number;
  readonly longitude: number;
  /** In metres. */
  readonly uncertainty: number;
  /** In m/s. */
  readonly speed: number;
  /** In degrees. */
  readonly direction: number;
}

const Numbers = Type.Array(Type.Number());

export const TrackSchema = Type.Object(
  {
    type: Type.Unsafe<string>({ type: 'string', enum: ['Feature'] }),
    geometry: Type.Unsafe<object | null>({
      anyOf: [
        {
          type: 'object',
          properties: { type: { type: 'string', enum: ['LineString', 'Point'] }, coordinates: { type: 'array' } },
          required: ['type', 'coordinates'],
        },
        { type: 'null' },
      ],
      description: 'Longitude and latitude of each ping; a point if there is only one, null if there is none.',
    }),
    properties: Type.Object({
      mac_addr: Type.String(),
      name: Type.Unsafe<string | null>({ anyOf: [{ type: 'string' }, { type: 'null' }] }),
      coordTimes: Type.Array(Type.String({ format: 'date-time' }), { description: 'When each ping was made.' }),
      uncertainties: Type.Array(Type.Number(), { description: 'In metres.' }),
      speeds: Type.Array(Type.Number(), { description: 'In m/s.' }),
      directions: Numbers,
      complete_from: Type.Unsafe<string | null>({
        anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }],
        description: 'Null if all pings of the span are there; otherwise ask for those before it with `to`.',
      }),
    }),
  },
  { title: 'Track' },
);

export const TRACK_EXAMPLE = {
  type: 'Feature',
  geometry: {
    type: 'LineString',
    coordinates: [
      [13.404954, 52.520008],
      [13.405954, 52.520108],
    ],
  },
  properties: {
    mac_addr: 'A4:C1:38:F0:E1:D2',
    name: 'Harbour 7',
    coordTimes: ['2026-11-20T06:29:57.000Z', '2026-11-20T06:29:58.000Z'],
    uncertainties: [6, 6],
    speeds: [4, 4],
    directions: [84, 86],
    complete_from: null,
  },
};

export class Track {
  readonly #device: Device;
  readonly #points: Point[] = [];

  constructor(device: Device) {
    this.#device = device;
  }

  /** Adds a ping if it is a GPS ping of the lock itself. Returns false if the track is too long for another point. */
  add({ stored, uplink: { timeMs, body } }: ReadPing): boolean {
    if (body.kind !== 'gps' || stored.source !== 'lock' || body.reason === 'PHONE' || body.position === null)
      return true;
    if (!isDatable(timeMs)) return true;
    if (this.#points.length === MAX_POINTS) return false;
    const { latitudeDegrees: latitude, longitudeDegrees: longitude, uncertaintyMeters: uncertainty } = body.position;
    const { speedMetersPerSecond: speed, directionDegrees: direction } = body;
    this.#points.push({ timeMs, latitude, longitude, uncertainty, speed, direction });
    return true;
  }

  /**
   * Returns the track as text with its content type.
   *
   * @param cutAtMs as for {@link feature}
   */
  finish(format: TrackFormat, cutAtMs: number | null): { readonly type: string; readonly content: string } {
    if (format === 'gpx')
      return { type: 'application/gpx+xml; charset=utf-8', content: this.#gpx(this.#finish(cutAtMs)) };
    return { type: 'application/geo+json; charset=utf-8', content: JSON.stringify(this.feature(cutAtMs)) };
  }

  /**
   * Returns the track as a GeoJSON feature.
   *
   * @param cutAtMs if older pings of the span were not read, when the last one that was read was received
   */
  feature(cutAtMs: number | null) {
    const completeFrom = this.#finish(cutAtMs);
    const { mac, name } = this.#device;
    const coordinates = this.#points.map(({ longitude, latitude }) => [longitude, latitude]);
    const line = { type: 'LineString', coordinates };
    const geometry = coordinates.length > 1 ? line : { type: 'Point', coordinates: coordinates[0] };
    return {
      type: 'Feature',
      geometry: coordinates.length === 0 ? null : geometry,
      properties: {
        mac_addr: formatMac(mac),
        name,
        coordTimes: this.#points.map(({ timeMs }) => formatDate(timeMs)),
        uncertainties: this.#points.map(({ uncertainty }) => uncertainty),
        speeds: this.#points.map(({ speed }) => speed),
        directions: this.#points.map(({ direction }) => direction),
        complete_from: completeFrom,
      },
    };
  }

  /** Puts the points into their order. Returns from when on the track is complete; null if it is in all. */
  #finish(cutAtMs: number | null): string | null {
    this.#points.sort((a, b) => a.timeMs - b.timeMs);
    // A cut track without a point is complete from the time of the last uplink that was read.
    return cutAtMs === null ? null : formatDate(this.#points[0]?.timeMs ?? cutAtMs);
  }

  #gpx(completeFrom: string | null): string {
    const { mac, name } = this.#device;
    const desc = completeFrom === null ? '' : `<desc>complete from ${completeFrom}</desc>`;
    const points = this.#points.map(({ latitude, longitude, timeMs }) => {
      const time = `<time>${formatDate(timeMs)}</time>`;
      return `<trkpt lat="${degrees(latitude)}" lon="${degrees(longitude)}">${time}</trkpt>\n`;
    });
    return (
      '<?xml version="1.0" encoding="UTF-8"?>\n' +
      '<gpx version="1.1" creator="lockgate" xmlns="http://www.topografix.com/GPX/1/1">\n' +
      `<trk><name>${escapeXml(name ?? formatMac(mac))}</name>${desc}\n` +
      `<trkseg>\n${points.join('')}</trkseg>\n</trk>\n</gpx>\n`
    );
  }
}

/** Decimal digits, as XML Schema's `decimal` requires: JavaScript writes numbers below 10⁻⁶ with an exponent. */
function degrees(value: number): string {
  return String(value).includes('e') ? value.toFixed(POSITION_DIGITS) : String(value);
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escapeXml(text: string): string {
  // XML allows neither control characters, which names can't have, nor these two.
  return text.replace(/[\uFFFE\uFFFF]/g, '\uFFFD').replace(/[&<>"]/g, (letter) => ENTITIES[letter] ?? letter);
}
