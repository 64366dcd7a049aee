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

/** Reads the objects of one file. A `pointer` is the JSON pointer (RFC 6901) of the value, for errors. */
class GeoJsonReader {
  readonly #points: WaypointList;

  constructor(points: WaypointList) {
    this.#points = points;
  }

  /** Reads the top level. Collections are read only at the top, so that the nesting is limited. */
  object(json: unknown, pointer: string): void {
    const { type, features } = this.#members(json, pointer);
    if (type !== 'FeatureCollection') {
      this.#feature(json, pointer);
      return;
    }
    this.#list(features, `${pointer}/features`).forEach((feature, index) => {
      this.#feature(feature, `${pointer}/features/${index}`);
    });
  }

  #feature(json: unknown, pointer: string): void {
    const { type, geometry } = this.#members(json, pointer);
    if (type !== 'Feature') this.#geometry(json, pointer);
    else if (geometry !== null) this.#geometry(geometry, `${pointer}/geometry`);
  }

  #geometry(json: unknown, pointer: string): void {
    const { type, coordinates } = this.#members(json, pointer);
    if (type === 'LineString') this.#line(coordinates, `${pointer}/coordinates`);
    else if (type === 'MultiLineString')
      this.#list(coordinates, `${pointer}/coordinates`).forEach((line, index) => {
        this.#line(line, `${pointer}/coordinates/${index}`);
      });
    else if (!IGNORED_GEOMETRIES.has(String(type)))
      throw this.#points.errorAt(
        referenceTo(`${pointer}/type`),
        `the type is ${JSON.stringify(type) ?? 'missing'}`,
        EXPECTED,
      );
  }

  #line(json: unknown, pointer: string): void {
    this.#list(json, pointer).forEach((point, index) => {
      const pointPointer = `${pointer}/${index}`;
      const [longitudeDegrees, latitudeDegrees] = this.#list(point, pointPointer);
      if (typeof longitudeDegrees !== 'number' || typeof latitudeDegrees !== 'number')
        throw this.#points.errorAt(
          referenceTo(pointPointer),
          'this is not a point',
          '[longitude, latitude] in degrees',
        );
      this.#points.add({ latitudeDegrees, longitudeDegrees, atMs: null }, referenceTo(pointPointer));
    });
  }

  #members(json: unknown, pointer: string): Readonly<Record<string, unknown>> {
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as Record<string, unknown>;
    throw this.#points.errorAt(referenceTo(pointer), 'this is not an object', 'a GeoJSON object with a type');
  }

  #list(json: unknown, pointer: string): readonly unknown[] {
    if (Array.isArray(json)) return json;
    throw this.#points.errorAt(referenceTo(pointer), 'this is not a list', 'a list in square brackets');
  }
}

/** Valid geometries that are not lines. */
const IGNORED_GEOMETRIES = new Set(['Point', 'MultiPoint', 'Polygon', 'MultiPolygon', 'GeometryCollection']);

/** The part of an error that says where in the file a value is. */
function referenceTo(pointer: string): string {
  return pointer === '' ? '' : `: ${pointer}`;
}
