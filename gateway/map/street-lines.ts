/**
 * The setting `--map-streets`: lines of streets that the pages' maps draw, from a GeoJSON file (RFC 7946). Of the file
 * only the points of its lines count; pages get them as one MultiLineString, made anew, so that nothing else of the
 * file reaches them.
 */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { LockgateError } from '../../proto/errors.js';

/** A city of a million people has some 10 MB of streets, which a page can't draw at once; a district has less. */
export const MAX_STREET_FILE_BYTES = 8 * 1024 * 1024;
/** A page projects each point anew at each zoom. */
export const MAX_STREET_POINTS = 100_000;
/** Collections may contain collections. */
const MAX_DEPTH = 8;
/** Millionths of a degree are ten centimetres. */
const DECIMALS = 6;

/** Lines of streets, as pages get them. */
export interface StreetLines {
  /** GeoJSON, compressed by gzip. */
  readonly gzip: Buffer;
  /** The start of the content's hash: with it in the address, a page may keep the lines. */
  readonly version: string;
}

type Point = readonly [longitude: number, latitude: number];

/**
 * Reads a file.
 *
 * @throws LockgateError `input-setting` with what is wrong, without the file's name
 */
export function readStreetFile(file: string): StreetLines {
  return streetLines(readText(file));
}

/** The lines of a GeoJSON text. @throws LockgateError `input-setting` */
export function streetLines(text: string): StreetLines {
  const lines: Point[][] = [];
  addLines(lines, parse(text), 0);
  const points = lines.reduce((sum, line) => sum + line.length, 0);
  if (points === 0) throw wrong('it has no LineString or MultiLineString');
  if (points > MAX_STREET_POINTS)
    throw wrong(`its lines have more than ${MAX_STREET_POINTS.toLocaleString('en')} points`);
  const json = JSON.stringify({ type: 'MultiLineString', coordinates: lines });
  const version = createHash('sha256').update(json).digest('hex').slice(0, 16);
  return { gzip: gzipSync(json, { level: 9 }), version };
}

function readText(file: string): string {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const bytes = Buffer.alloc(MAX_STREET_FILE_BYTES + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(descriptor, bytes, length, bytes.length - length, null);
    if (length <= MAX_STREET_FILE_BYTES) return bytes.toString('utf8', 0, length);
  } catch (error) {
    throw wrong(`it can’t be read (${(error as NodeJS.ErrnoException).code})`);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
  throw wrong(`it has more than ${MAX_STREET_FILE_BYTES / 1024 ** 2} MiB`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw wrong('it is not JSON');
  }
}

/** Adds the lines of a GeoJSON object; other geometries have none. */
function addLines(lines: Point[][], value: unknown, depth: number): void {
  if (depth > MAX_DEPTH) throw wrong(`its collections are nested more than ${MAX_DEPTH} deep`);
  const { type, features, geometries, geometry, coordinates } = membersOf(value);
  if (type === 'FeatureCollection') for (const each of listOf(features)) addLines(lines, each, depth + 1);
  else if (type === 'GeometryCollection') for (const each of listOf(geometries)) addLines(lines, each, depth + 1);
  else if (type === 'Feature' && geometry !== null) addLines(lines, geometry, depth + 1);
  else if (type === 'LineString') lines.push(lineOf(coordinates));
  else if (type === 'MultiLineString') for (const each of listOf(coordinates)) lines.push(lineOf(each));
  else if (typeof type !== 'string') throw wrong('it is not GeoJSON');
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw wrong('it is not GeoJSON');
  return value as Readonly<Record<string, unknown>>;
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw wrong('it is not GeoJSON');
  return value;
}

function lineOf(value: unknown): Point[] {
  return listOf(value).map((position) => {
    const [longitude, latitude] = listOf(position);
    if (!isWithin(longitude, 180) || !isWithin(latitude, 90))
      throw wrong('a point of a line is not a longitude and a latitude in degrees');
    return [rounded(longitude), rounded(latitude)];
  });
}

function isWithin(value: unknown, max: number): value is number {
  return typeof value === 'number' && Math.abs(value) <= max;
}

function rounded(degrees: number): number {
  return Math.round(degrees * 10 ** DECIMALS) / 10 ** DECIMALS;
}

function wrong(what: string): LockgateError {
  return new LockgateError('input-setting', what);
}
