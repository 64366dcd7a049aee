/**
 * Reads GeoJSON (RFC 7946): the points of its lines, one after another. Each point is [longitude, latitude]; the format
 * has no times. Other geometries are ignored.
 */
import { findJsonError } from './json-error.js';
import { WaypointList, type Waypoints } from './waypoints.js';

const EXPECTED = 'a LineString or MultiLineString with at least two points, or Features of them';

/**
 * Reads the text of a GeoJSON file.
 *
 * @throws LockgateError `input-route` that says what was expected, with the line if the text is not JSON, otherwise
 * with a JSON pointer
 */
export function parseGeoJson(text: string, name: string): Waypoints {
  const points = new WaypointList(name);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    const { line, expected } = findJsonError(text);
    throw points.errorAt(`:${line}`, 'this is not JSON', expected);
  }
  new GeoJsonReader(points).object(json, '');
  return points.finish('', EXPECTED);
}

class GeoJsonReader {
  readonly #points: WaypointList;

  constructor(points: WaypointList) {
    this.#points = points;
  }

  /** Reads the top level. Collections are read only at the top, so that the nesting is limited. */
  object(json: unknown, at: string): void {
    const { type, features } = this.#members(json, at);
    if (type !== 'FeatureCollection') {
      this.#feature(json, at);
      return;
    }
    this.#list(features, `${at}/features`).forEach((feature, index) => {
      this.#feature(feature, `${at}/features/${index}`);
    });
  }

  #feature(json: unknown, at: string): void {
    const { type, geometry } = this.#members(json, at);
    if (type !== 'Feature') this.#geometry(json, at);
    else if (geometry !== null) this.#geometry(geometry, `${at}/geometry`);
  }

  #geometry(json: unknown, at: string): void {
    const { type, coordinates } = this.#members(json, at);
    if (type === 'LineString') this.#line(coordinates, `${at}/coordinates`);
    else if (type === 'MultiLineString')
      this.#list(coordinates, `${at}/coordinates`).forEach((line, index) => {
        this.#line(line, `${at}/coordinates/${index}`);
      });
    else if (!IGNORED_GEOMETRIES.has(String(type)))
      throw this.#points.errorAt(where(`${at}/type`), `the type is ${JSON.stringify(type) ?? 'missing'}`, EXPECTED);
  }

  #line(json: unknown, at: string): void {
    this.#list(json, at).forEach((point, index) => {
      const pointer = `${at}/${index}`;
      const [longitudeDegrees, latitudeDegrees] = this.#list(point, pointer);
      if (typeof longitudeDegrees !== 'number' || typeof latitudeDegrees !== 'number')
        throw this.#points.errorAt(where(pointer), 'this is not a point', '[longitude, latitude] in degrees');
      this.#points.add({ latitudeDegrees, longitudeDegrees, atMs: null }, where(pointer));
    });
  }

  #members(json: unknown, at: string): Readonly<Record<string, unknown>> {
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as Record<string, unknown>;
    throw this.#points.errorAt(where(at), 'this is not an object', 'a GeoJSON object with a type');
  }

  #list(json: unknown, at: string): readonly unknown[] {
    if (Array.isArray(json)) return json;
    throw this.#points.errorAt(where(at), 'this is not a list', 'a list in square brackets');
  }
}

/** Valid geometries that are not lines. */
const IGNORED_GEOMETRIES = new Set(['Point', 'MultiPoint', 'Polygon', 'MultiPolygon', 'GeometryCollection']);

function where(pointer: string): string {
  return pointer === '' ? '' : `: ${pointer}`;
}
